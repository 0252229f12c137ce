import numpy as np
import pytest

from helpers.excess import excess
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.squashing import transform_moments, unsquash_moments

MEAN, COVARIANCE = np.array([0.5, 0.3]), np.array([[0.08, 0.02], [0.02, 0.03]])
MOMENTS = prescribe_moments(mean=MEAN, covariance=COVARIANCE, length_scale=[0.1, 0.4])


def squashed(name: str, v: np.ndarray) -> np.ndarray:
    return np.tanh(v) if name == "tanh" else 1 / (1 + np.exp(-v))


SQUASHES = [("sigmoid", 1.0, 0.0), ("tanh", 0.5, 0.5), ("sigmoid", -3.0, 2.0)]


@pytest.mark.parametrize(("name", "scale", "shift"), SQUASHES)
def test_a_gaussian_comes_out_with_the_given_mean_and_variances(name, scale, shift):
    inner = unsquash_moments(MOMENTS, name, np.full(2, scale), np.full(2, shift))
    rng = np.random.default_rng(0)
    v = rng.multivariate_normal(inner.mean, inner.regularized_covariance, 100_000)
    y = scale * squashed(name, v) + shift
    assert excess(y, MEAN) < 1
    assert excess((y - MEAN) ** 2, np.diag(COVARIANCE)) < 1
    wider = scale * squashed(name, inner.mean + 1.1 * (v - inner.mean)) + shift
    assert excess((wider - MEAN) ** 2, np.diag(COVARIANCE)) > 1  # told apart


@pytest.mark.parametrize(("name", "scale", "shift"), SQUASHES)
def test_slopes_come_out_with_the_given_structure(name, scale, shift):
    """A Gaussian field and its slopes at one place are independent; the slopes have the covariance that Ω says."""
    inner = unsquash_moments(MOMENTS, name, np.full(2, scale), np.full(2, shift))
    rng, count = np.random.default_rng(0), 100_000
    v = rng.multivariate_normal(inner.mean, inner.covariance, count)
    # A column of J for each coordinate, with the covariance Σ Ω_aa / c over the channels.
    columns = [
        rng.multivariate_normal(np.zeros(2), inner.covariance * inner.structure_tensor[a, a] / 2, count)
        for a in range(2)
    ]
    f = squashed(name, v)
    slope = scale * (1 - f**2 if name == "tanh" else f * (1 - f))
    precision = np.linalg.inv(COVARIANCE)
    for a, column in enumerate(columns):
        along = slope * column
        found = np.einsum("mk,kl,ml->m", along, precision, along)[:, None]
        # The correlation of the outputs is not quite that before the squash: one percent of Ω here.
        assert abs(found.mean() / MOMENTS.structure_tensor[a, a] - 1) < 0.02
        assert excess(found, 1.2 * MOMENTS.structure_tensor[a, a]) > 1


def test_values_at_the_two_ends_are_given_a_finite_spread():
    moments = prescribe_moments(mean=[0.5], covariance=[0.2499], length_scale=[1.0])
    assert unsquash_moments(moments, "sigmoid", np.ones(1), np.zeros(1)).covariance == pytest.approx(9.0)
    assert unsquash_moments(moments, "tanh", np.full(1, 0.5), np.full(1, 0.5)).covariance == pytest.approx(9.0 / 4)


def test_a_small_spread_is_mapped_by_the_slope():
    moments = prescribe_moments(mean=[0.25], covariance=[1e-10], length_scale=[0.3])
    inner = unsquash_moments(moments, "sigmoid", np.ones(1), np.zeros(1))
    assert inner.mean == pytest.approx(np.log(0.25 / 0.75))
    assert inner.covariance == pytest.approx(1e-10 / (0.25 * 0.75) ** 2)
    np.testing.assert_allclose(inner.structure_tensor, moments.structure_tensor, rtol=1e-4)  # curvature times spread


@pytest.mark.parametrize(("mean", "name"), [([0.5, -0.1], "sigmoid"), ([1.0, 0.5], "tanh")])
def test_a_mean_that_cannot_be_reached(mean, name):
    moments = prescribe_moments(mean=mean, covariance=[0.1, 0.1], length_scale=[1.0])
    with pytest.raises(ValueError, match=rf"the mean of the signal is .* ends with {name}, .* rescale the signal into"):
        unsquash_moments(moments, name, np.ones(2), np.zeros(2))


def test_other_units():
    inner = transform_moments(MOMENTS, np.array([2.0, 0.5]), np.array([10.0, -1.0]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(inner.mean, [6.0, 1.7])
    np.testing.assert_allclose(inner.covariance, [[8.0, -0.2], [-0.2, 0.03]])
    np.testing.assert_allclose(inner.structure_tensor, MOMENTS.structure_tensor * [[0.25, 1.0], [1.0, 4.0]])
