"""The loop around the steps: one for fits and for the laboratory's protocol alike.

Between calls of the compiled steps come progress, stopping, checkpoints and, where the plan has one, the guard against
divergence. A step depends on its number and the seed only, so that a run that was interrupted goes on to the same bits.
"""

import math
import os
import time
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import jax
import numpy as np
import optax
from jaxtyping import PyTree

from .checkpoints import load_state, save_state
from .step import Problem, take_steps

_NUMBERS = ("step", "seconds", "rate_scale", "best", "latest", "retreats")


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands.

    - `parameters`, `optimizer`: after `step` steps, which took `seconds`.
    - `latest`, `best`: the mean loss of the latest call, and the least of all calls.
    - `rate_scale`, `retreats`: factor on the learning rate, and number of divergences so far.
    """

    parameters: PyTree
    optimizer: optax.OptState
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
        """The most steps of one call of the compiled loop."""
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


class Checkpoint:
    """The file of a run's state.

    **Arguments:**

    - `path`, `seconds`: where it is, and how often it is written. No path: never.
    - `identity`: what must agree for a state to belong to this run.
    """

    def __init__(self, path: str | os.PathLike[str] | None, seconds: float, identity: str):
        self.path, self.seconds, self.identity = path, seconds, identity
        self._written = time.perf_counter()

    def restore(self, like: State, losses: np.ndarray) -> State:
        """The state of the file, if there is one; its losses are copied into `losses`."""
        if self.path is None or not os.path.exists(self.path):
            return like
        (parameters, optimizer, stored), header = load_state(self.path, (like.parameters, like.optimizer, losses))
        if header["identity"] != self.identity:
            raise ValueError(
                f"{self.path}: a checkpoint of another run (network, data or settings differ); remove it, or repeat "
                "what it was made with"
            )
        losses[...] = stored
        return State(parameters, optimizer, **header["numbers"])

    def write_if_due(self, state: State, losses: np.ndarray) -> None:
        if self.path is not None and time.perf_counter() - self._written > self.seconds:
            self.write(state, losses)

    def write(self, state: State, losses: np.ndarray) -> None:
        if self.path is None or state.step == 0:
            return
        # A loss that is not finite does not fit JSON; without it, `State` has infinity.
        numbers = {key: value for key in _NUMBERS if math.isfinite(value := getattr(state, key))}
        if jax.process_index() == 0:
            arrays = state.parameters, state.optimizer, losses
            save_state(self.path, arrays, {"identity": self.identity, "numbers": numbers})
        self._written = time.perf_counter()


@dataclass(frozen=True, eq=False)
class Training:
    """A run that is ready.

    - `losses`: of every step, before its update, filled in as the run goes on: `(steps, *networks)`.
    """

    problem: Problem
    plan: Plan
    seed: int
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
                if reason := self.plan.after_call(state):
                    return state, reason
        except KeyboardInterrupt:
            self.checkpoint.write(good, self.losses)
            raise
        return state, "steps"

    def _advance(self, state: State) -> State:
        """A call of the compiled loop."""
        count = min(self.plan.count(state), self.plan.steps - state.step)
        parameters, optimizer, losses = take_steps(
            self.problem,
            state.parameters,
            state.optimizer,
            self.plan.factors(state),
            np.uint32(self.seed),
            np.int32(state.step),
            np.int32(count),
        )
        recent = np.asarray(losses)[:count]
        self.losses[state.step : state.step + count] = recent
        with np.errstate(over="ignore"):  # a loss near the end of float32 has diverged, which the plan sees
            latest = float(recent.mean())
        return replace(state, parameters=parameters, optimizer=optimizer, step=state.step + count, latest=latest)
