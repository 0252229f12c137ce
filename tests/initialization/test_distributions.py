import json
import math

import numpy as np
import pytest

from uniphase.initialization.distributions import (
    ColumnNormal,
    Constant,
    Given,
    Normal,
    RowNormal,
    Uniform,
    as_matrix,
    distribution_from_dict,
    distribution_to_dict,
)

COVARIANCE = as_matrix([[4.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 1.0]])
SINGULAR = as_matrix(np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]))
LAWS = [
    Normal(0.3),
    Uniform(math.pi),
    RowNormal(COVARIANCE),
    ColumnNormal(COVARIANCE),
    RowNormal(SINGULAR),
    Constant(0.5),
    Constant((1.0, 2.0, 3.0)),
]
DRAWS = 200_000


def sample(law, shape, seed=0):
    """The laws need nothing but NumPy's random bits."""
    rng = np.random.default_rng(seed)
    draw = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}[law.standard](shape)
    return law.sample(draw, np.asarray)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_exact_variance(law):
    """The sample variance of each entry, within six of its standard errors."""
    samples = np.stack([sample(law, (3, 3), seed) for seed in range(20_000)])
    squares = (samples - samples.mean(axis=0)) ** 2
    error = squares.std(axis=0) / math.sqrt(len(samples))
    assert (np.abs(squares.mean(axis=0) - law.variance()) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("covariance", [COVARIANCE, SINGULAR], ids=["regular", "singular"])
@pytest.mark.parametrize("law", [RowNormal, ColumnNormal])
def test_correlated_laws(law, covariance):
    """Rows or columns have the covariance, within six standard errors of each entry."""
    weights = sample(law(covariance), (DRAWS, 3) if law is RowNormal else (3, DRAWS))
    rows = weights if law is RowNormal else weights.T
    products = np.einsum("mi,mj->mij", rows, rows)
    error = products.std(axis=0) / math.sqrt(DRAWS)
    assert (np.abs(products.mean(axis=0) - covariance) < 6 * error).all()


def test_uniform_is_bounded_and_constant_is_constant():
    assert np.abs(sample(Uniform(0.25), (1000,))).max() <= 0.25
    np.testing.assert_array_equal(sample(Constant((1.0, 2.0)), (2,)), [1, 2])
    np.testing.assert_array_equal(sample(Constant(3.0), (4,)), [3, 3, 3, 3])


def test_a_change_of_units_scales_the_sample():
    """The same draw in other units of the coordinates: W' S = W, so that the function is the same."""
    scale = np.array([1000.0, 0.01, 3.0])
    scaled = RowNormal(as_matrix(np.asarray(COVARIANCE) / np.outer(scale, scale)))
    np.testing.assert_allclose(sample(scaled, (50, 3)) * scale, sample(RowNormal(COVARIANCE), (50, 3)), rtol=1e-12)


def test_laws_compare_by_their_numbers():
    assert RowNormal(COVARIANCE) == RowNormal(as_matrix(np.asarray(COVARIANCE)))
    assert len({Normal(1.0), Normal(1.0), Uniform(1.0), Constant(1.0)}) == 3


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (Normal(0.08838834), "N(0, 0.08839²)"),
        (Uniform(math.pi), "U(±3.142)"),
        (RowNormal(((87.02186, 10.91), (10.91, 114.8))), "rows N(0, [[87.02, 10.91], [10.91, 114.8]])"),
        (ColumnNormal(((1.0,),)), "columns N(0, [[1]])"),
        (Constant(0.0), "0"),
        (Constant((0.5, 1.0)), "[0.5, 1]"),
        (Constant((0.0,) * 9), "9 numbers"),
    ],
)
def test_laws_print(law, text):
    assert str(law) == text


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws_survive_json(law):
    assert distribution_from_dict(distribution_to_dict(law)) == law
    assert distribution_from_dict(json.loads(json.dumps(distribution_to_dict(law)))) == law


def test_a_law_as_a_dict():
    assert distribution_to_dict(Normal(0.5)) == {"law": "Normal", "std": 0.5}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"law": "Cauchy", "scale": 1.0}, "law is 'Cauchy'; it must be one of Normal, Uniform, RowNormal"),
        ({"std": 1.0}, "law is None; it must be one of"),
        ({"law": "Normal"}, r"the law Normal has the numbers \[\]; it must have \['std'\]"),
        ({"law": "Normal", "half_width": 1.0}, r"the law Normal has the numbers \['half_width'\]"),
    ],
)
def test_a_dict_that_is_no_law(entries, message):
    with pytest.raises(ValueError, match=message):
        distribution_from_dict(entries)


def test_given_weights_have_no_distribution():
    assert str(Given()) == "given"
    assert distribution_from_dict(distribution_to_dict(Given())) == Given()
    assert np.isnan(Given().variance())
    with pytest.raises(ValueError, match="so there is no distribution to draw them from; pass the blueprint"):
        sample(Given(), (3, 3))


def test_a_number_that_this_version_does_not_know_is_ignored():
    assert distribution_from_dict({"law": "Normal", "std": 1.0, "unknown": [1]}) == Normal(1.0)
