import math
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.fits import FIELD, network
from uniphase.fitting.loop import State
from uniphase.fitting.plan import Diverged, FallingPlan
from uniphase.recipe import Recipe
from uniphase.signals.fields import Grid
from uniphase.training.fit import fit


def plan(callback, *, seconds=None, target_db=None, noise=-math.inf) -> FallingPlan:
    return FallingPlan(Recipe("adam", 0.1, 0.1, 100, 10), seconds, target_db, 1.0, noise, None, True, callback)


# Stopping and progress.


@pytest.mark.parametrize(
    ("options", "stop"),
    [({"target_db": 20.0}, "target"), ({"noise": 0.01}, "noise"), ({"seconds": 5.0}, "seconds"), ({}, "steps")],
)
def test_the_last_progress_is_that_of_the_end(options, stop, monkeypatch):
    """However long ago the one before was."""
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", math.inf)
    seen = []
    falling = plan(seen.append, **options)
    middle = State(None, None, step=30, seconds=1.0, latest=0.5)
    assert falling.after_call(middle) is None
    assert seen == []
    end = replace(middle, step=100 if stop == "steps" else 40, seconds=6.0, latest=0.01)
    assert falling.after_call(end) == stop
    assert [(progress.step, progress.stop, progress.seconds_left) for progress in seen] == [(end.step, stop, 0.0)]


class Clock:
    """Every look at it takes a tenth of a second."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 0.1
        return self.now


def test_stops_at_a_target_and_at_a_time(monkeypatch):
    result = fit(network(), FIELD, steps=2000, target_db=6.0)
    assert result.stop == "target"
    assert result.steps < 2000
    clock = Clock()
    for module in ("loop", "plan"):
        monkeypatch.setattr(f"uniphase.fitting.{module}.time", clock)
    result = fit(network(), FIELD, steps=2000, seconds=1.0)
    assert result.stop == "seconds"
    assert result.steps < 2000
    assert 1.0 <= result.seconds < 1.3  # it looks two or three times in each call of the compiled steps


def test_a_callback_gets_the_progress():
    seen = []
    fit(network(), FIELD, steps=30, callback=seen.append)
    assert seen[-1].step == seen[-1].steps == 30
    assert (seen[-1].stop, seen[-1].seconds_left) == ("steps", 0)
    assert seen[-1].psnr_db > seen[-1].snr_db  # the range of the image is more than its deviation


# Diverging.


def test_a_fit_that_explodes_goes_back_with_a_smaller_step():
    recipe = Recipe("adam", 3.0, 1.0, 40, 10**9)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(network(), FIELD, recipe=recipe)
    assert any("exploded at step" in str(warning.message) for warning in caught)
    assert np.isfinite(result.losses).all()
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(result.network))


@pytest.mark.filterwarnings("ignore:the signal is constant")
@pytest.mark.parametrize("sampling", ["points", "averages"])
@pytest.mark.parametrize("value", [0.0, 255.0, -32767.0, 1e9])
def test_a_constant_signal_is_known_before_the_first_step(value, sampling):
    """The first steps move away from it, which is not an explosion. (Warnings are errors here.)"""
    result = fit(Grid(np.full((8, 8, 1), value), sampling=sampling), steps=40, progress=False)
    assert result.metrics.mse < 0.1 * result.losses[0]


@pytest.mark.parametrize("sampling", ["points", "averages"])
def test_a_sample_that_stands_out_is_no_explosion(sampling):
    """One batch of eight has all of the loss, and the first has none. (Warnings are errors here.)"""
    values = np.zeros((16, 16, 1))
    values[4, 9] = 1.0
    result = fit(Grid(values, sampling=sampling), recipe=Recipe("muon", 0.0625, 0.001, 80, 32), seed=1, progress=False)
    assert result.losses[0] < 0.1 * values.var() < 2 * values.var() < result.losses.max()
    assert result.metrics.snr_db > 0


def test_a_fit_that_keeps_diverging_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            Diverged, match="the fit diverged 6 times, although the learning rate was halved each time; start with"
        ):
            fit(network(), FIELD, recipe=Recipe("adam", 1e30, 1.0, 40, 10**9))
