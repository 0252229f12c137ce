from dataclasses import replace

import numpy as np
import pytest

from helpers.markup import SCRIPT, Seen
from helpers.results import plain_result
from uniphase.fitting.summary import losses_curve
from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.fields import Grid, Points

MOMENTS = prescribe_moments(length_scale=[1.0, 1.0])


def grid(*shape: int, **options) -> Grid:
    """The last coordinate, over the domain."""
    values = np.broadcast_to(np.linspace(0, 1, shape[-1]), shape)
    return Grid(values[..., None], **options)


def last(positions: np.ndarray) -> np.ndarray:
    return (positions[:, -1:] + 1) / 2


def test_a_fit_of_an_image():
    result = plain_result(grid(30, 40, medium="gray"), last, blueprint=uniform_phase(MOMENTS, width=8, depth=1))
    seen = Seen(result._repr_html_())
    assert seen.words[0] == "uniform-phase: 30 × 40 samples of 1 channel, as points"
    (picture,) = seen.images
    np.testing.assert_array_equal(picture, np.rint(255 * np.asarray(result.prediction)[..., 0]))
    assert "loss 1.0e+00 → 1.0e-03" in seen.words
    assert f"{result.metrics.snr_db:.4g}" in seen.words
    assert "50 steps of 4,096 samples in 1.5 s, by Muon" in seen.words
    assert "drawn from these laws" in seen.words
    assert "moments of the signal" not in seen.words


def test_a_name_that_looks_like_markup_is_text():
    blueprint = Blueprint(SCRIPT, uniform_phase(MOMENTS, width=8, depth=1).layers)
    seen = Seen(plain_result(grid(3, 4), last, blueprint=blueprint, moments=MOMENTS)._repr_html_())
    assert "script" not in seen.tags
    assert f"{SCRIPT}: 3 × 4 samples of 1 channel, as points" in seen.words


@pytest.mark.parametrize("align", ["centers", "corners"])
@pytest.mark.parametrize("shape", [(7, 9), (6, 7, 9), (3, 4, 7, 9)])
def test_a_picture_is_the_same_if_the_prediction_was_not_kept(shape, align):
    """Of more than two axes, in the middle of the first ones."""

    def network(positions):
        return 0.5 + 0.2 * positions[:, -1:] + 0.1 * positions[:, -2:-1] + 0.1 * positions[:, :1]

    field = Grid(np.linspace(0, 1, int(np.prod(shape))).reshape(*shape, 1), align=align)
    kept = plain_result(field, network)
    pictures = [Seen(result._repr_html_()).images[0] for result in (kept, replace(kept, prediction=None))]
    middle = network(field.coordinates()).reshape(shape)[tuple(n // 2 for n in shape[:-2])]
    for picture in pictures:
        np.testing.assert_allclose(picture, 255 * middle, rtol=0, atol=0.5 + 1e-9)  # rounding to a level


@pytest.mark.parametrize(
    ("field", "channels"),
    [
        (grid(900, 700), 1),
        (grid(4, 300, 250), 1),
        (grid(100_000), 1),
        (Points(np.random.default_rng(0).uniform(-1, 1, (50_000, 1)), np.zeros(50_000)), 1),
        (Points(np.random.default_rng(0).uniform(-1, 1, (500, 3)), np.zeros(500)), 1),
        (Grid(np.random.default_rng(0).random((300, 300, 3)), medium="rgb"), 3),
        (Grid(np.random.default_rng(0).random((300, 300, 3)), medium="lab"), 3),
    ],
    ids=["image", "volume", "sound", "scattered 1-D", "scattered 3-D", "rgb", "lab"],
)
def test_a_network_is_evaluated_at_few_points_and_the_page_is_small(field, channels):
    asked = []

    def network(positions):
        asked.append(len(positions))
        return np.random.default_rng(0).random((len(positions), channels))

    kept = plain_result(field, network)
    for result in (kept, replace(kept, prediction=None)):
        asked.clear()
        page = result._repr_html_()
        assert len(page) < 100_000
        assert sum(asked) <= 40_000
        seen = Seen(page)
        assert seen.images or len(seen.paths) == 3
    assert asked


def test_a_curve_of_the_signal_and_of_the_fit():
    x = np.random.default_rng(0).permutation(np.linspace(-1, 1, 50))
    result = plain_result(Points(x, x**2), lambda positions: positions**2 + 0.5)
    signal, fit, _ = Seen(result._repr_html_()).paths
    assert signal != fit
    assert signal.count("L") == fit.count("L") == 49
    horizontal = [float(pair.split()[0]) for pair in signal[1:].split("L")]
    assert horizontal == sorted(horizontal)
    assert Seen(replace(result, prediction=None)._repr_html_()).paths[1] == fit


def test_a_map_of_scattered_points_has_north_above():
    rng = np.random.default_rng(0)
    positions = rng.uniform((5, 45), (11, 48), (300, 2))
    (picture,) = Seen(plain_result(Points(positions, positions[:, 1]), lambda x: x[:, 1:])._repr_html_()).images
    assert (np.diff(picture.astype(int), axis=0) <= 0).all()
    assert np.ptp(picture) > 250
    assert (np.diff(picture.astype(int), axis=1) == 0).all()


def broken(positions):
    raise RuntimeError("out of order")


def test_a_network_that_fails_has_no_picture():
    result = replace(plain_result(grid(3, 4), last), prediction=None, network=broken)
    seen = Seen(result._repr_html_())
    assert seen.images == []
    assert f"{result.metrics.snr_db:.4g}" in seen.words


def test_a_fit_to_an_equation_has_no_picture():
    seen = Seen(plain_result(None, broken, stop="seconds", bits=8)._repr_html_())
    assert (seen.images, seen.tags.count("table")) == ([], 0)
    assert seen.words[0] == "function"
    assert "50 steps of 4,096 samples in 1.5 s, by Muon; time was up; hidden matrices in 8 bits" in seen.words


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_fit_that_failed_can_be_looked_at(value):
    field = grid(3, 4)
    result = plain_result(field, last, prediction=np.full((3, 4, 1), value), losses=np.full(50, value))
    assert Seen(result._repr_html_()).images


def test_losses_that_scatter_around_zero_are_averaged():
    losses = np.full(100, 0.5) + np.where(np.arange(100) % 2, 1.0, -1.0)
    seen = Seen(losses_curve(np.arange(1, 101), losses, 100))
    assert seen.paths[0].count("L") == 95
    assert seen.words == ["loss 3.0e-01 → 7.0e-01"]  # of five, two or three of a kind
    assert Seen(losses_curve(np.arange(2), np.array([-1.0, 0.0]), 2)).words == ["loss"]
