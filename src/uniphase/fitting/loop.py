"""The loop around the steps: one for fits in either framework and for the laboratory's protocol alike.

Between calls of the steps come progress, stopping, checkpoints and, where the plan has one, the guard against
divergence. A step depends on its number and the seed only, so that a run that was interrupted goes on to the same bits.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..signals.paths import FilePath, remove_leftovers

_NUMBERS = ("step", "seconds", "rate_scale", "best", "latest", "retreats")


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands.

    - `parameters`, `optimizer`: after `step` steps, which took `seconds`.
    - `latest`, `best`: the mean loss of the latest steps, and the least so far, as a plan keeps them.
    - `rate_scale`, `retreats`: factor on the learning rate, and number of divergences so far.
    """

    parameters: Any
    optimizer: Any
    step: int = 0
    seconds: float = 0.0
    rate_scale: float = 1.0
    best: float = math.inf
    latest: float = math.inf
    retreats: int = 0


@runtime_checkable
class Plan(Protocol):
    """What distinguishes one kind of run from another."""

    @property
    def steps(self) -> int:
        """The steps of the whole run."""
        ...

    @property
    def most(self) -> int:
        """The most steps of one call."""
        ...

    def count(self, state: State) -> int:
        """How many steps the next call takes."""
        ...

    def factors(self, state: State) -> np.ndarray:
        """`most` factors, by which the next updates are multiplied."""
        ...

    def review(self, good: State, state: State, losses: np.ndarray) -> State:
        """The state to go on from: `state`, or one made from the last `good` one."""
        ...

    def after_call(self, state: State) -> str | None:
        """Called after every call that went well. A reason to stop, or `None`."""
        ...


@runtime_checkable
class Steps(Protocol):
    """The steps of a framework."""

    def __call__(
        self, parameters: Any, optimizer: Any, factors: np.ndarray, first: int, count: int
    ) -> tuple[Any, Any, np.ndarray]:
        """`count` steps, the first of which has the number `first`: new parameters, new state and `count` losses.

        What was given stays as it was, for the loop to go back to.
        """
        ...


@runtime_checkable
class StateFiles(Protocol):
    """How a framework writes the arrays of a state, and reads them."""

    def save(self, path: FilePath, tree: Any, header: Mapping[str, Any]) -> None:
        """Write arrays and a header that JSON can hold, whole or not at all."""
        ...

    def load(self, path: FilePath, like: Any) -> tuple[Any, dict[str, Any]]:
        """Arrays of the structure of `like`, and the header."""
        ...


class Checkpoint:
    """The file of a run's state.

    **Arguments:**

    - `path`, `seconds`: where it is, and how often it is written. No path: never.
    - `identity`: what must agree for a state to belong to this run.
    - `files`: how it is written.
    """

    def __init__(self, path: FilePath | None, seconds: float, identity: str, files: StateFiles):
        self.path, self.seconds, self.identity, self.files = path, seconds, identity, files
        self._written = time.perf_counter()

    def restore(self, like: State, losses: np.ndarray) -> State:
        """The state of the file, if there is one; its losses are copied into `losses`."""
        if self.path is None:
            return like
        remove_leftovers(self.path)
        if not Path(self.path).exists():
            return like
        (parameters, optimizer, stored), header = self.files.load(self.path, (like.parameters, like.optimizer, losses))
        if header.get("identity") != self.identity:
            raise ValueError(
                f"{self.path}: a checkpoint of another run (network, data or settings differ); remove it, or repeat "
                "what it was made with"
            )
        numbers: Any = header.get("numbers")
        if not _are_numbers(numbers, len(losses)):
            raise ValueError(f"{self.path}: a damaged checkpoint (its numbers are {numbers}); remove it")
        losses[...] = stored
        return State(parameters, optimizer, **numbers)

    def write_if_due(self, state: State, losses: np.ndarray) -> None:
        if self.path is not None and time.perf_counter() - self._written > self.seconds:
            self.write(state, losses)

    def write(self, state: State, losses: np.ndarray) -> None:
        if self.path is None or state.step == 0:
            return
        # A loss that is not finite does not fit JSON; without it, `State` has infinity.
        numbers = {key: value for key in _NUMBERS if math.isfinite(value := getattr(state, key))}
        arrays = state.parameters, state.optimizer, losses
        self.files.save(self.path, arrays, {"identity": self.identity, "numbers": numbers})
        self._written = time.perf_counter()


def _are_numbers(numbers: Any, steps: int) -> bool:
    """Whether these are the numbers of a state, as `Checkpoint` writes them."""
    if not (isinstance(numbers, dict) and "step" in numbers and numbers.keys() <= set(_NUMBERS)):
        return False
    whole = all(type(numbers.get(name, 0)) is int for name in ("step", "retreats"))
    return whole and 0 < numbers["step"] <= steps and all(isinstance(x, int | float) for x in numbers.values())


@dataclass(frozen=True, eq=False)
class Training:
    """A run that is ready.

    - `losses`: of every step, before its update, filled in as the run goes on: `(steps, *networks)`.
    """

    steps: Steps
    plan: Plan
    losses: np.ndarray
    checkpoint: Checkpoint

    def run(self, state: State) -> tuple[State, str]:
        """Go on from a state to the end; return the last state and why it ended."""
        good, begun = state, time.perf_counter() - state.seconds
        try:
            while state.step < self.plan.steps:
                state = replace(self._advance(state), seconds=time.perf_counter() - begun)
                reviewed = self.plan.review(good, state, self.losses)
                if reviewed.retreats > state.retreats:
                    state = reviewed
                    continue
                good = state = reviewed
                self.checkpoint.write_if_due(state, self.losses)
                called = time.perf_counter()
                if reason := self.plan.after_call(state):
                    return state, reason
                begun += time.perf_counter() - called  # what somebody looks at is no part of the run's time
        except KeyboardInterrupt:
            self.checkpoint.write(good, self.losses)
            raise
        return state, "steps"

    def _advance(self, state: State) -> State:
        """A call of the steps."""
        count = min(self.plan.count(state), self.plan.steps - state.step)
        factors = self.plan.factors(state)
        parameters, optimizer, recent = self.steps(state.parameters, state.optimizer, factors, state.step, count)
        self.losses[state.step : state.step + count] = recent
        return replace(state, parameters=parameters, optimizer=optimizer, step=state.step + count)
