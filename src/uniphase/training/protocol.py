"""The paper's protocol: full-batch Adam at constant rates, for several networks of one shape in one program.

Unlike `fit` it chooses nothing, guards against nothing and keeps everything: the loss of every step before its update,
whether finite or not, is the result. Networks may differ in their numbers, in ω and in their rates; so a sweep over
21 rates or 21 frequencies is compiled once. Up to rounding, the result of a network does not depend on the others.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field as dataclass_field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from ..fitting.loop import Checkpoint, State, Training
from ..fitting.observations import field_identity
from ..initialization.blueprint import Blueprint, LayerPlan
from ..initialization.distributions import Constant
from ..jax.network import CoordinateMLP, LayeredNetwork, Transposed, dtype_of, run_layers, trainable_arrays
from ..signals.fields import Field
from .checkpoints import TreeFiles
from .identity import identify
from .mup import Rates, role_rates
from .sampling import Samples
from .step import CompiledSteps, Problem, initial_state
from .terms import SampledValues

# Steps of one call of the compiled loop: at most this many, and few enough to take about this many seconds.
_CALL, _CALL_SECONDS = 200, 1.0


class ProtocolFit(NamedTuple):
    """The result of one network in `fit_together`.

    - `network`: after the last step.
    - `losses`: the mean squared error of every step, before its update.
    - `seconds`: the time that all networks took, divided by their number.
    """

    network: CoordinateMLP
    losses: Float[np.ndarray, " steps"]
    seconds: float


def fit_together(
    networks: Sequence[CoordinateMLP],
    field: Field,
    *,
    rates: Sequence[Rates],
    steps: int,
    epsilon: float = 1e-8,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    callback: Callable[[int], Any] | None = None,
) -> list[ProtocolFit]:
    """Train networks by full-batch Adam (β₁ = 0.9, β₂ = 0.999), independently of each other.

    **Arguments:**

    - `networks`: of the same shape. They may differ in ω.
    - `field`: what all are fitted to. The loss is the mean over all samples and channels.
    - `rates`: for each network.
    - `steps`: how many.
    - `epsilon`: Adam's ε. With 0, a parameter whose gradients were all zero stays where it is.
    - `checkpoint`, `checkpoint_seconds`: a file for the state, and how often it is written. An interrupt writes it too.
    - `resume`: go on from `checkpoint`, if it exists. The result is that of a run never interrupted, to the last bit.
    - `callback`: called now and then with the number of steps done.

    **Returns:**

    A `ProtocolFit` for each network. A network that diverges has losses that are infinite or NaN; the others go on.

    !!! example
        ```python
        fits = fit_together([network] * 3, field, rates=[Rates.uniform(10.0**-q) for q in (2, 3, 4)], steps=20)
        best = min(fits, key=lambda fit: fit.losses.mean())
        ```
    """
    _require_alike(networks, rates, field, steps)
    dtype, count = dtype_of(networks[0]), len(networks)
    omegas = jnp.asarray([[layer.omega for layer in network.layers] for network in networks], dtype)
    arrays = [jnp.stack(leaves) for leaves in zip(*map(jax.tree.leaves, networks), strict=True)]
    alike = _without_omegas(networks[0])
    stacked = _Tuned(_with_arrays(alike, arrays), omegas)
    parameters, frozen = eqx.partition(stacked, _trained(alike))
    static = eqx.filter(stacked, eqx.is_array, inverse=True)
    settings = _stacked_rates(networks, rates, alike, dtype)
    values = SampledValues(Samples.of(field, dtype), np.ones((), dtype))  # the plain mean squared error
    problem = Problem((values,), frozen, static, settings, _RoleAdam(epsilon), field.samples, count)
    losses = np.full((steps, count), np.nan, dtype)
    identity = "" if checkpoint is None else identify(epsilon, steps, stacked, settings, field_identity(field))
    file = Checkpoint(checkpoint, checkpoint_seconds, identity, TreeFiles())
    training = Training(CompiledSteps(problem, 0), _ConstantPlan(steps, callback), losses, file)
    state = State(parameters, initial_state(problem, parameters))
    state, _ = training.run(training.checkpoint.restore(state, losses) if resume else state)
    trained = jax.tree.leaves(eqx.combine(state.parameters, frozen).network)
    return [
        ProtocolFit(_with_arrays(network, [array[i] for array in trained]), losses[:, i], state.seconds / count)
        for i, network in enumerate(networks)
    ]


def _with_arrays(network: CoordinateMLP, arrays: Sequence[Array | float]) -> CoordinateMLP:
    return jax.tree.unflatten(jax.tree.structure(network), arrays)


class _Tuned(LayeredNetwork):
    """A network whose ω are an array, so that another ω is not another program."""

    network: CoordinateMLP
    omegas: Any  # (layers,)

    def weights(self) -> tuple[Float[Array, "_ _"], ...]:
        return self.network.weights()

    def columns(
        self, h: Float[Array, "in_size *n"], transposed: Transposed | None = None
    ) -> Float[Array, "out_size *n"]:
        return run_layers(self.network.layers, h, omegas=self.omegas, transposed=transposed)


@dataclass(frozen=True)
class _RoleAdam:
    """Adam with a rate for every array, which is the optimizer's setting."""

    epsilon: float

    def build(self, network: Any, settings: PyTree) -> optax.GradientTransformation:
        adam = optax.scale_by_adam(eps=self.epsilon)

        def update(updates, state, params=None):
            updates, state = adam.update(updates, state, params)
            # With ε = 0 Adam divides zero by zero where no gradient has ever been seen, or its square underflows.
            move = lambda update, rate, square: -rate * jnp.where(square == 0, 0, update)  # noqa: E731
            return jax.tree.map(move, updates, settings, state.nu), state  # pyright: ignore[reportAttributeAccessIssue]

        return optax.GradientTransformation(adam.init, update)


@dataclass
class _ConstantPlan:
    """All steps at constant rates, in calls that take about a second."""

    steps: int
    callback: Callable[[int], Any] | None
    most: int = _CALL
    _next: int = 1
    _begun: float = dataclass_field(default_factory=time.perf_counter)

    def count(self, state: State) -> int:
        self._begun = time.perf_counter()
        return self._next

    def factors(self, state: State) -> np.ndarray:
        return np.ones(self.most, np.float32)

    def review(self, good: State, state: State, losses: np.ndarray) -> State:
        return state

    def after_call(self, state: State) -> str | None:
        taken = min(self._next, self.steps)
        self._next = int(np.clip(taken * _CALL_SECONDS / (time.perf_counter() - self._begun), 1, self.most))
        if self.callback is not None:
            self.callback(state.step)
        return None


def _trained(network: CoordinateMLP) -> PyTree[bool]:
    """Which arrays of a tuned network are trained."""
    return _Tuned(trainable_arrays(network), False)


def _without_omegas(network: CoordinateMLP) -> CoordinateMLP:
    """The structure of a network, the same for any ω, with shapes in place of its arrays."""
    zero, plans = Constant(0.0), []
    for layer in network.layers:
        rows, columns = layer.weight.shape
        bias = None if layer.bias is None else zero
        plans.append(LayerPlan(layer.role, rows, columns, layer.activation, zero, bias, trainable=layer.trainable))
    return eqx.filter_eval_shape(CoordinateMLP, Blueprint("", tuple(plans)), key=jax.random.key(0))


def _stacked_rates(
    networks: Sequence[CoordinateMLP], rates: Sequence[Rates], alike: CoordinateMLP, dtype: jnp.dtype
) -> PyTree[Array]:
    """The rate of every trained array, `(networks, 1, ...)`."""
    each = [jax.tree.leaves(role_rates(network, rate)) for network, rate in zip(networks, rates, strict=True)]
    shaped = [
        jnp.asarray(of_array, dtype).reshape(-1, *[1] * array.ndim)
        for array, of_array in zip(jax.tree.leaves(alike), zip(*each, strict=True), strict=True)
    ]
    return eqx.filter(_Tuned(_with_arrays(alike, shaped), None), _trained(alike))


def _require_alike(networks: Sequence[CoordinateMLP], rates: Sequence[Rates], field: Field, steps: int) -> None:
    if not networks or len(rates) != len(networks):
        raise ValueError(f"there are {len(networks)} networks and {len(rates)} rates; pass one rate for each network")
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be at least 1")
    first = _shape(networks[0])
    for i, network in enumerate(networks):
        if _shape(network) != first:
            raise ValueError(f"networks[{i}] differs from networks[0] in shape; train networks of one shape together")
    sizes = networks[0].layers[0].weight.shape[1], networks[0].layers[-1].weight.shape[0]
    if sizes != (field.in_size, field.out_size):
        raise ValueError(
            f"networks map {sizes[0]} coordinates to {sizes[1]} channels, but the field has {field.in_size} and "
            f"{field.out_size}; draw them from the moments of the field"
        )


def _shape(network: CoordinateMLP) -> list:
    return [
        (layer.weight.shape, layer.weight.dtype, layer.bias is None, layer.activation, layer.role, layer.trainable)
        for layer in network.layers
    ]
