import jax
import numpy as np
import pytest

from uniphase.cli.measuring import excerpt, measure, sample_seconds, spread_strides
from uniphase.initialization.schemes import get_scheme
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import predict
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate

RNG = np.random.default_rng(0)
FIELD = Grid(RNG.normal(size=(20, 30, 2)).astype(np.float32), medium=None)


@pytest.fixture(scope="module")
def network() -> CoordinateMLP:
    return CoordinateMLP(get_scheme("relu").blueprint((2, 2), width=8, depth=1), key=jax.random.key(0))


@pytest.mark.parametrize("sampling", ["points", "averages"])
def test_some_samples_are_those_of_all(network, sampling):
    """Every third along each axis, with its own cell."""
    told = []
    whole = measure(network, FIELD, sampling, 600, lambda *stage: told.append(stage))
    assert told[-2:] == [("measuring", 600, 600), ("comparing", 0, 0)]
    assert whole.field is FIELD
    expected = predict(network, FIELD, average=sampling == "averages")
    np.testing.assert_array_equal(whole.prediction, expected)
    assert whole.metrics == evaluate(expected, FIELD)
    some = measure(network, FIELD, sampling, 100, lambda *_: None)
    # other batches are rounded elsewhere
    np.testing.assert_allclose(some.prediction, expected[::3, ::3], rtol=0, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_array_equal(some.field.values, FIELD.values[::3, ::3])
    assert some.metrics.ssim is None
    assert some.metrics.channels[0].ssim is None
    assert some.metrics.mse == pytest.approx(evaluate(expected, FIELD).mse, rel=0.5)  # 140 squares: four times 12 %


def test_some_of_scattered_points(network):
    points = Points(RNG.normal(size=(100, 2)), RNG.normal(size=(100, 2)))
    some = measure(network, points, "points", 40, lambda *_: None)
    np.testing.assert_array_equal(some.field.positions, points.positions[::3])
    np.testing.assert_allclose(some.prediction, predict(network, points)[::3], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "most", "strides"),
    [
        ((3000, 4000), 12_000_000, (1, 1)),
        ((3000, 4000), 1_000_000, (5, 5)),
        ((2, 1000), 100, (1, 21)),
        ((300,), 100, (3,)),
    ],
)
def test_strides_are_odd_and_leave_both_ends_of_short_axes(shape, most, strides):
    field = Grid(np.broadcast_to(np.float32(0), (*shape, 1)), value_range=(0.0, 1.0))
    assert spread_strides(field, most) == strides


def test_an_excerpt_is_the_middle():
    sound = Grid(np.arange(100, dtype=np.float32)[:, None], medium="sound", rate=10.0)
    part, indices = excerpt(sound, 10)
    np.testing.assert_array_equal(indices, np.arange(45, 55))
    np.testing.assert_array_equal(part.values[:, 0], indices)
    assert excerpt(sound, 1000)[0].samples == 100


def test_what_a_sample_costs(network):
    """Not what compiling costs, which takes a thousand times as long as evaluating 600 samples."""
    assert 0 < sample_seconds(network, FIELD, "averages") < 1e-3
