import math
from dataclasses import replace

import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.recipe import (
    Recipe,
    Units,
    default_blueprint,
    default_rate,
    default_recipe,
    default_size,
    expected_snr,
    paper_recipe,
    size_to_hold,
)
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points

FIELD = load("camera", size=24)


def blueprint(depth: int, width: int = 16):
    """All that the rule looks at is the width and the roles of layers, which a blueprint has as well."""
    return uniform_phase(estimate_moments(FIELD), width=width, depth=depth)


def test_defaults_follow_from_the_signal():
    assert default_size(load("camera", size=256)) == (256, 3)
    assert default_size(load("camera")) == (288, 3)  # 256 · 2.62^(1/8) = 288.8
    assert default_size(Points(np.zeros((12_000_000, 1)), np.zeros((12_000_000, 3)))) == (544, 3)
    assert default_size(load("camera", size=128)) == (192, 3)
    assert default_size(FIELD) == (32, 3)
    assert default_size(Grid(np.arange(10.0)[:, None])) == (32, 3)
    assert default_recipe(FIELD, blueprint(4)) == Recipe("muon", 0.05, 0.001, 400, 576)
    photo = load("camera", size=128)  # 3.2 · 128 steps, rounded to tens
    assert default_recipe(photo, blueprint(3)) == Recipe("muon", 0.0625, 0.001, 410, 8192)
    assert default_recipe(photo, blueprint(3), draws=2).batch == 8192
    assert default_recipe(photo, blueprint(3), draws=4).batch == 4096  # of averages
    assert default_recipe(load("camera"), blueprint(3)) == Recipe("muon", 0.0625, 0.001, 1000, 8192)
    assert paper_recipe(FIELD) == Recipe("adam", 1e-4, 1.0, 3000, 576)


def test_a_network_that_can_hold_its_samples():
    """A hidden weight for each of several batches: a higher rate, which falls exponentially."""
    network = blueprint(3, width=60)  # 3 · 60² = 10,800 hidden weights
    as_many, one_more = (Points(np.zeros((samples, 1)), np.zeros((samples, 1))) for samples in (10_800, 10_801))
    held = default_recipe(as_many, network)
    assert held == Recipe("muon", 5 * 0.0625, 0.001, 400, 8192, "exponential")
    assert default_recipe(one_more, network) == Recipe("muon", 0.0625, 0.001, 400, 8192)
    one_batch, more = (Points(np.zeros((samples, 1)), np.zeros((samples, 1))) for samples in (8192, 8193))
    assert [default_recipe(field, network).fall for field in (one_batch, more)] == ["cosine", "exponential"]
    # 40 visits of 10,800 samples, 8192 at a time, are 52.7 steps
    assert [default_recipe(as_many, network, steps=n).fall for n in (52, 53)] == ["cosine", "exponential"]
    # tenfold in every 20 visits: 400 steps of a tenth of the samples are 40 of them
    for batch, final in ((1080, 1e-2), (1350, 10**-2.5), (1620, 1e-3), (2160, 1e-3)):
        few = default_recipe(as_many, network, batch=batch)
        assert few.final_fraction == pytest.approx(final, rel=1e-12)  # rounding
        assert replace(few, final_fraction=0.001, batch=8192) == held
    assert default_recipe(as_many, network, batch=1079).fall == "cosine"
    assert default_recipe(as_many, network, batch=10_800).fall == "cosine"  # all samples
    assert default_recipe(one_batch, network, batch=1024) == Recipe("muon", 0.0625, 0.001, 400, 1024)  # of its own
    assert default_recipe(as_many, network, steps=52) == Recipe("muon", 0.0625, 0.001, 52, 8192)
    # what never gets quiet: averages by random positions, noise; and equations, which have no number of values
    assert default_recipe(as_many, network, draws=4).fall == "cosine"
    assert default_recipe(as_many, network, noisy=True).fall == "cosine"
    assert default_recipe(None, network).fall == "cosine"
    assert default_recipe(as_many, None).fall == "cosine"


def test_rates_fall():
    shares = np.array([0.0, 0.5, 1.0])
    cosine = Recipe("muon", 2.0, 0.01, 10, 10)
    np.testing.assert_allclose(cosine.rates(shares), [2.0, 1.01, 0.02], rtol=1e-12)  # float64 rounding, here and below
    np.testing.assert_allclose(replace(cosine, fall="exponential").rates(shares), [2.0, 0.2, 0.02], rtol=1e-12)
    for fall in ("cosine", "exponential"):
        np.testing.assert_array_equal(Recipe("adam", 2.0, 1.0, 10, 10, fall).rates(shares), 2.0)


def test_a_target_decides_the_size():
    photo = load("camera", size=128)
    widths = [default_size(photo, target)[0] for target in (15.0, 25.0, 40.0)]
    assert widths == sorted(set(widths))
    noise = Grid(np.random.default_rng(0).normal(size=(2048, 2048, 1)))
    assert default_size(noise, 40.0) == (1024, 3)
    blueprint = default_blueprint(photo, estimate_moments(photo), target_db=25.0)
    assert blueprint.width == widths[1]
    assert expected_snr(photo, blueprint.parameters) >= 28  # 3 dB to spare
    narrower = default_blueprint(photo, estimate_moments(photo), width=blueprint.width - 32)
    assert expected_snr(photo, narrower.parameters) < 28
    points = Points(photo.coordinates(), photo.flat_values())
    assert default_size(points, 25.0) == default_size(photo)


def test_a_time_bounds_the_size():
    photo = load("camera")
    assert [default_size(photo, seconds=seconds)[0] for seconds in (0.001, 10.0, 30.0, 3600.0)] == [64, 128, 192, 288]
    assert default_size(photo, 300.0, 30.0) == (192, 3)
    assert default_size(FIELD, seconds=0.001) == (32, 3)  # a small network is not made larger


def test_a_network_that_is_too_small_is_told():
    photo = load("camera", size=128)
    found = size_to_hold(photo, 5_000, 12.0)
    assert found is not None
    width, expected = found
    assert width % 32 == 0
    assert expected == 30.0
    worse = size_to_hold(photo, 5_000, 8.0)
    assert worse is not None
    assert worse[0] > width
    assert size_to_hold(photo, 5_000, 30.0) is None  # held
    assert size_to_hold(photo, 17_000, 12.0) is None  # more parameters than values
    noise = Grid(np.random.default_rng(0).normal(size=(2048, 2048, 1)))
    found = size_to_hold(noise, 50_000, 0.1)
    assert found is not None
    assert found[0] == 1024
    assert 0.1 < found[1] < 30
    assert size_to_hold(Points(photo.coordinates(), photo.flat_values()), 5_000, 12.0) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be positive"),
        ({"batch": -1}, "batch is -1; it must be positive"),
        ({"learning_rate": math.nan}, "learning_rate is nan; it must be positive"),
    ],
)
def test_bad_recipes(options, message):
    good = {"optimizer": "muon", "learning_rate": 0.1, "final_fraction": 0.1, "steps": 10, "batch": 10}
    with pytest.raises(ValueError, match=message):
        Recipe(**{**good, **options})


def test_rate_goes_by_depth_alone():
    rates = {(width, depth): default_rate(blueprint(depth, width)) for width in (8, 32) for depth in (1, 3)}
    assert rates == {(8, 1): 0.125, (32, 1): 0.125, (8, 3): 0.0625, (32, 3): 0.0625}


def test_units_are_factors_of_the_moments():
    field = Grid(np.random.default_rng(0).normal(size=(12, 16, 2)), extents=((2.0, 5.0), (-1.0, 9.0)))
    moments = estimate_moments(field)
    units = Units.of(field, moments, 32)
    positions = field.coordinates()
    np.testing.assert_allclose(units.center, positions.mean(axis=0), rtol=1e-12)  # float64 rounding, here and below
    whitened = (positions - units.center) @ units.input_factor
    np.testing.assert_allclose(whitened.T @ whitened / len(positions), np.eye(2), rtol=0, atol=1e-12)
    covariance = moments.regularized_covariance
    np.testing.assert_allclose(units.output_factor @ units.output_factor.T, covariance / 16, rtol=1e-12)
    np.testing.assert_allclose(units.offset**2, np.diag(covariance), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:the signal is constant")
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("channels", [[1, 1, 1], [1, 0, 1], [1e-6, 1.0, 1e6]])
def test_units_of_singular_signals(scale, channels):
    """Constant signals, constant channels and channels that repeat each other, in any units."""
    field = Grid(scale * FIELD.values * np.array(channels))
    moments = estimate_moments(field)
    units = Units.of(field, moments, 32)
    covariance = moments.regularized_covariance
    np.testing.assert_allclose(units.output_factor @ units.output_factor.T, covariance / 16, rtol=1e-9)  # rounding
    assert (units.offset > 0).all()
    assert uniform_phase(moments, width=32, depth=1).out_size == 3


@pytest.mark.parametrize("direction", [[1.0, 0.0], [1.0, 2.0], [1e-9, 2e9]])
def test_positions_on_a_line_have_no_units(direction):
    """Moments may be given for positions that none can be estimated from."""
    line = Points(np.linspace(0, 1, 50)[:, None] * direction, np.linspace(0, 1, 50))
    with pytest.raises(ValueError, match="positions lie in fewer than 2 dimensions"):
        Units.of(line, estimate_moments(FIELD), 32)
