"""The plan of a fit: a rate that falls, progress, reasons to stop, and the guard against divergence."""

import dataclasses
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ..recipe import Recipe
from ..signals.fields import Extent
from .loop import State

# Steps of one call of the compiled loop. The guard looks at their mean loss, so it is part of what a fit computes.
_CALL = 10
# A fit diverges when its loss exceeds this multiple of its best; it stops after this many retries.
_EXPLOSION, _RETRIES = 10.0, 5
# A loss below which a fit has not diverged, relative to its multiple above, where 1 is the loss of the mean. A constant
# signal is known before the first step: the loss of a draw at 0.05 of its scale is 0.003, and the first steps, whose
# sizes do not depend on it, raise it to at most 0.2. And products of errors scatter around zero.
_KNOWN = 0.02
# Losses that scatter by more than their mean are averaged over this many steps.
_NOISY_STEPS = 100
_TELL_SECONDS = 0.5

Stop = Literal["steps", "seconds", "target", "noise"]


class Progress(NamedTuple):
    """The progress of a fit, as passed to `callback`.

    - `step`, `steps`: how far the fit is.
    - `mse`, `snr_db`, `psnr_db`: of the latest steps. For terms other than the values of a field, `mse` is the loss and
        `psnr_db` is NaN.
    - `steps_per_second`, `seconds_left`: speed, and the time that is left.
    - `stop`: why the fit ends, as `Fit.stop`; `None` while it goes on.
    - `seconds`, `rate`: the time that the steps took so far, and the learning rate.
    - `network`: as it is now, to look at: the next steps may change it.
    """

    step: int
    steps: int
    mse: float
    snr_db: float
    psnr_db: float
    steps_per_second: float
    seconds_left: float
    stop: Stop | None = None
    seconds: float = math.nan
    rate: float = math.nan
    network: Any = None


def progress_line(progress: Progress) -> None:
    """One line, written over itself."""
    line = f"step {progress.step}/{progress.steps}  SNR {progress.snr_db:.2f} dB  {progress.seconds_left:.0f} s left"
    print(f"\r{line:<60}", end="" if progress.stop is None else "\n", file=sys.stderr, flush=True)


class Diverged(RuntimeError):
    """A fit that exploded again and again, at ever smaller rates."""


@dataclass(frozen=True)
class FallingPlan:
    """A rate that falls with the share of steps or of time, and a guard against divergence."""

    recipe: Recipe
    seconds: float | None
    target_db: float | None
    scale: float  # what a loss of 1 is as a mean squared error
    noise: float  # the loss at which only noise is left to learn
    value_range: Extent | None
    relative: bool  # whether a loss of 1 is that of a network that knows nothing
    callback: Callable[[Progress], Any] | None
    network: Callable[[Any], Any] = lambda parameters: None  # made of parameters, to be looked at
    most: int = _CALL
    told: list[float] = dataclasses.field(default_factory=lambda: [0.0])

    @property
    def steps(self) -> int:
        return self.recipe.steps

    def count(self, state: State) -> int:
        """Ten steps; where the time is limited, as few as are left of it."""
        if self.seconds is None:
            return self.most
        if state.step == 0:
            return 1
        left = (self.seconds - state.seconds) * state.step / state.seconds
        return int(np.clip(left, 1, self.most))

    def factors(self, state: State) -> np.ndarray:
        recipe = self.recipe
        share = (state.step + np.arange(self.most)) / recipe.steps
        if self.seconds is not None:
            share = np.maximum(share, state.seconds / self.seconds)
        return np.float32(state.rate_scale) * recipe.rates(np.minimum(share, 1.0)).astype(np.float32)

    def review(self, good: State, state: State, losses: np.ndarray) -> State:
        """Back to the last good state with half the rate, if the loss exploded."""
        latest = losses[: state.step][-_NOISY_STEPS:].astype(np.float64)  # whose sums and squares do not overflow
        state = replace(state, latest=_clear_mean(latest))
        first = float(losses[0])
        least = _KNOWN if self.relative else abs(first) or math.inf
        # Of a few samples that stand out, one batch has most of the loss, and others, such as the first, may have none;
        # after an explosion most have much.
        best = min(state.best, max(1.0, first) if self.relative else first)
        usual = float(np.median(latest[-_CALL:]))
        if usual < best + (_EXPLOSION - 1) * max(abs(best), least):  # nan is not less either
            return replace(state, best=min(state.best, state.latest))
        retreats = state.retreats + 1
        if retreats > _RETRIES:
            raise Diverged(
                f"the fit diverged {retreats} times, although the learning rate was halved each time; start with a "
                "lower one"
            )
        warnings.warn(
            f"the loss exploded at step {state.step}; going on from step {good.step} with half the rate", stacklevel=2
        )
        return replace(good, rate_scale=state.rate_scale / 2, retreats=retreats, seconds=state.seconds)

    def after_call(self, state: State) -> str | None:
        now, stop = time.perf_counter(), self._stop(state)
        if self.callback is not None and (stop is not None or now - self.told[0] > _TELL_SECONDS):
            self.callback(self._progress(state, stop))
            self.told[0] = now
        return stop

    def _stop(self, state: State) -> Stop | None:
        if self.target_db is not None and _decibels(state.latest) >= self.target_db:
            return "target"
        if state.latest <= self.noise:
            return "noise"
        if self.seconds is not None and state.seconds >= self.seconds:
            return "seconds"
        return "steps" if state.step == self.steps else None

    def _progress(self, state: State, stop: Stop | None) -> Progress:
        mse, peak = self.scale * state.latest, math.nan
        if self.value_range is not None:
            low, high = self.value_range
            peak = _decibels(mse / (high - low) ** 2) if high > low else math.inf
        speed = state.step / state.seconds
        left = (self.steps - state.step) / speed if stop is None else 0.0
        left = left if self.seconds is None else min(left, max(0.0, self.seconds - state.seconds))
        rate, network = float(self.factors(state)[0]), self.network(state.parameters)
        numbers = mse, _decibels(state.latest), peak, speed, left
        return Progress(state.step, self.steps, *numbers, stop, state.seconds, rate, network)


def _clear_mean(losses: np.ndarray) -> float:
    """The mean of the last few losses, or of all where that does not stand out from its scatter."""
    few = losses[-_CALL:]
    with np.errstate(invalid="ignore"):  # an infinite loss has no scatter; it has diverged, as NaN has
        return float(few.mean() if few.mean() > few.std() else losses.mean())


def _decibels(loss: float) -> float:
    return -10 * math.log10(loss) if loss > 0 else math.inf
