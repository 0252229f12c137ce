"""The paper's protocol: full-batch Adam at constant rates, for several networks of one shape in one program.

Unlike `fit` it chooses nothing, guards against nothing and keeps everything: the loss of every step before its update,
whether finite or not, is the result. Networks may differ in their numbers, in ω and in their rates; so a sweep over
21 rates or 21 frequencies is compiled once. Up to rounding, what a network comes to does not depend on those beside it.
"""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from ..jax.network import CoordinateMLP
from ..signals.fields import Field
from .backprop import Chain, Parameters, loss_and_gradients, parameters_of, transposes, with_parameters
from .checkpoints import load_state, save_state
from .mup import Rates, role_rates
from .sampling import block_size

# Steps of one call of the compiled loop: at most so many, and few enough to come back after about so many seconds.
_CALL, _CALL_SECONDS = 200, 1.0


class Trace(NamedTuple):
    """What became of a network.

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
) -> list[Trace]:
    """Train networks by full-batch Adam (β₁ = 0.9, β₂ = 0.999), each by itself.

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

    A `Trace` for each network. A network that diverges has losses that are infinite or NaN; the others go on.

    !!! example
        ```python
        traces = fit_together([network] * 3, field, rates=[Rates.uniform(10.0**-q) for q in (2, 3, 4)], steps=20)
        best = min(traces, key=lambda trace: trace.losses.mean())
        ```
    """
    _require_alike(networks, rates, field, steps)
    plan = _Plan.of(networks[0], epsilon)
    task = _Task.of(networks, field, rates)
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(parameters_of, networks))
    losses = np.full((len(networks), steps), np.nan, task.omegas.dtype)
    state = _State(parameters, cast(Any, plan.adam.init(parameters)), losses)
    identity = _digest((parameters, task), plan)
    if resume and checkpoint is not None and os.path.exists(checkpoint):
        state = _restore(checkpoint, state, identity)
    count, saved = 1, time.perf_counter()
    try:
        while state.step < steps:
            begun = time.perf_counter()
            count = min(count, steps - state.step)
            state = _advance(state, task, plan, count)
            elapsed = time.perf_counter() - begun
            state = state._replace(seconds=state.seconds + elapsed)
            count = int(np.clip(count * _CALL_SECONDS / elapsed, 1, _CALL))
            if callback is not None:
                callback(state.step)
            if checkpoint is not None and time.perf_counter() - saved > checkpoint_seconds:
                _save(checkpoint, state, identity)
                saved = time.perf_counter()
    except KeyboardInterrupt:
        if checkpoint is not None and state.step > 0:
            _save(checkpoint, state, identity)
        raise
    return [
        Trace(with_parameters(network, parameters), state.losses[i], state.seconds / len(networks))
        for i, network in enumerate(networks)
        for parameters in [jax.tree.map(lambda array, i=i: array[i], state.parameters)]
    ]


class _State(NamedTuple):
    """Where a run stands. Every array has the networks along its first axis."""

    parameters: Parameters
    adam: optax.ScaleByAdamState
    losses: np.ndarray  # (networks, steps)
    step: int = 0
    seconds: float = 0.0


class _Plan(NamedTuple):
    """What is compiled in."""

    activations: tuple[str, ...]
    trainable: tuple[bool, ...]
    epsilon: float

    @staticmethod
    def of(network: CoordinateMLP, epsilon: float) -> "_Plan":
        layers = network.layers
        return _Plan(tuple(layer.activation for layer in layers), tuple(layer.trainable for layer in layers), epsilon)

    @property
    def adam(self) -> optax.GradientTransformation:
        return optax.scale_by_adam(eps=self.epsilon)


class _Task(NamedTuple):
    """What a run does not change: the samples in blocks, and what sets the networks apart."""

    positions: Array  # (blocks, in_size, n)
    values: Array  # (blocks, out_size, n)
    shares: Array  # (blocks, n): the weight of a sample in the loss, zero for those that fill up the last block
    omegas: Array  # (networks, layers)
    rates: PyTree[Array]  # (networks, 1, ...) for every parameter

    @staticmethod
    def of(networks: Sequence[CoordinateMLP], field: Field, rates: Sequence[Rates]) -> "_Task":
        dtype = networks[0].layers[0].weight.dtype
        at_once = 1 if _one_by_one() else len(networks)
        blocks = -(-field.samples // block_size(networks[0].width * at_once))
        size = -(-field.samples // blocks)

        def cut(rows: np.ndarray) -> Array:
            rows = np.pad(rows.astype(dtype), ((0, blocks * size - len(rows)), (0, 0)))
            return jnp.asarray(rows.reshape(blocks, size, -1).swapaxes(1, 2))

        trees = [parameters_of(role_rates(network, rate)) for network, rate in zip(networks, rates, strict=True)]
        return _Task(
            cut(field.coordinates()),
            cut(field.flat_values()),
            cut(np.full((field.samples, 1), 1 / (field.samples * field.out_size)))[:, 0],
            jnp.asarray([[layer.omega for layer in network.layers] for network in networks], dtype),
            jax.tree.map(
                lambda a, *rates: jnp.asarray(rates, dtype).reshape(-1, *[1] * a.ndim),
                parameters_of(networks[0]),
                *trees,
            ),
        )


def _advance(state: _State, task: _Task, plan: _Plan, count: int) -> _State:
    parameters, adam, losses = _steps(state.parameters, state.adam, task, plan, jnp.int32(count))
    record = state.losses.copy()
    record[:, state.step : state.step + count] = np.asarray(losses)[:count].T
    return state._replace(parameters=parameters, adam=adam, losses=record, step=state.step + count)


@eqx.filter_jit
def _steps(
    parameters: Parameters, adam: optax.ScaleByAdamState, task: _Task, plan: _Plan, count: Array
) -> tuple[Parameters, optax.ScaleByAdamState, Array]:
    """`count` steps; their losses are the first rows of the last result."""

    def of_network(parameters: Parameters, omegas: Array) -> tuple[Array, Parameters]:
        chain, transposed = Chain(plan.activations, plan.trainable, omegas), transposes(parameters)

        def add_block(total, block):
            part = loss_and_gradients(parameters, transposed, chain, *block)
            return jax.tree.map(jnp.add, total, part), None

        zero = jnp.zeros((), omegas.dtype), jax.tree.map(jnp.zeros_like, parameters)
        return jax.lax.scan(add_block, zero, (task.positions, task.values, task.shares))[0]

    def step(i, carry):
        parameters, adam, losses = carry
        loss, gradients = _each(of_network, parameters, task.omegas)
        with jax.numpy_dtype_promotion("standard"):  # Optax's bias correction mixes integers and floats
            updates, adam = cast(Any, plan.adam.update(gradients, adam))
        parameters = jax.tree.map(_move, parameters, task.rates, updates, adam.nu)
        return parameters, adam, losses.at[i].set(loss)

    losses = jnp.zeros((_CALL, len(task.omegas)), task.omegas.dtype)
    return jax.lax.fori_loop(0, count, step, (parameters, adam, losses))


def _each(function: Callable, *stacked: PyTree) -> PyTree:
    """The function of every network."""
    if _one_by_one():
        return jax.lax.map(lambda arguments: function(*arguments), stacked)
    return jax.vmap(function)(*stacked)


def _one_by_one() -> bool:
    """Networks take turns on a CPU, which a single one keeps busy; elsewhere all go at once."""
    # Within one program, 21 networks of width 16 take 1.2 to 1.4 times as long at once (two cores) as in turns.
    return jax.default_backend() == "cpu"


def _move(array: Array, rate: Array, update: Array, second_moment: Array) -> Array:
    # With ε = 0 Adam divides zero by zero where no gradient has ever been seen, or its square underflows.
    return array - rate * jnp.where(second_moment == 0, 0, update)


def _require_alike(networks: Sequence[CoordinateMLP], rates: Sequence[Rates], field: Field, steps: int) -> None:
    if not networks or len(rates) != len(networks):
        raise ValueError(f"there are {len(networks)} networks and {len(rates)} rates; pass one of each, or more")
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


def _digest(tree: PyTree, plan: _Plan) -> str:
    """What must agree for a checkpoint to belong to a run: all that it starts from."""
    digest = hashlib.sha256(repr(plan).encode())
    for leaf in jax.tree.leaves(tree):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()


def _save(path: str | os.PathLike[str], state: _State, identity: str) -> None:
    save_state(path, state[:3], {"identity": identity, "step": state.step, "seconds": state.seconds})


def _restore(path: str | os.PathLike[str], like: _State, identity: str) -> _State:
    (parameters, adam, losses), header = load_state(path, like[:3])
    if header["identity"] != identity:
        raise ValueError(f"{path}: a checkpoint of another run; remove it, or repeat the settings it was made with")
    return _State(parameters, adam, np.asarray(losses), header["step"], header["seconds"])
