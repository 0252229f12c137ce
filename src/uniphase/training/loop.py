"""Training: one loop that fits a network to a field, with nothing to choose.

The rule is `default_recipe`: Muon in the units of the signal, at a rate that depends on the depth alone. The steps run
in a compiled loop; between its calls come progress, stopping, checkpoints and the guard against divergence. A step
depends on its number and the seed only, so that a fit that was interrupted goes on to the same bits.
"""

import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Float

from ..initialization.moments import Moments, estimate_moments
from ..jax.network import CoordinateMLP
from ..jax.render import render
from ..recipe import Optimizer, Recipe, Units, default_recipe
from ..signals.fields import Field, Grid
from ..signals.metrics import Metrics, evaluate
from .backprop import Chain, loss_and_gradients, parameters_of, transposes, with_parameters
from .checkpoints import load_state, save_state
from .optimizers import muon_in_units, signal_units
from .sampling import Samples, block_size, draw_batch, replicate

# Steps of one call of the compiled loop. The guard looks at their mean loss, so it is part of what a fit computes.
_CALL = 10
# A fit that comes to this many times its best loss has diverged; after so many halvings of the rate it is given up.
_EXPLOSION, _RETRIES = 10.0, 5
_TELL_SECONDS = 0.5


class Progress(NamedTuple):
    """What a callback of `fit` is told: the loss is the mean squared error over the latest steps."""

    step: int
    steps: int
    mse: float
    snr_db: float
    psnr_db: float
    steps_per_second: float
    seconds_left: float


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of `fit`.

    - `network`: the fitted network.
    - `metrics`, `test_metrics`: over all samples of the field, and of the test field if there was one.
    - `losses`: the mean squared error of every step, before its update and on its batch.
    - `stop`: why it ended: `"steps"`, `"seconds"` or `"target"`.
    - `steps`, `seconds`, `recipe`: what was done.
    """

    network: CoordinateMLP
    metrics: Metrics
    test_metrics: Metrics | None
    losses: Float[np.ndarray, " steps"]
    stop: Literal["steps", "seconds", "target"]
    steps: int
    seconds: float
    recipe: Recipe


class Diverged(RuntimeError):
    """A fit that exploded again and again, at ever smaller rates."""


def fit(
    network: CoordinateMLP,
    field: Field,
    *,
    recipe: Recipe | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    test: Field | None = None,
    moments: Moments | None = None,
    seed: int = 0,
    callback: Callable[[Progress], Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 10.0,
    resume: bool = False,
) -> Fit:
    """Fit a network to a field.

    **Arguments:**

    - `network`, `field`: what to fit to what.
    - `recipe`: how. Default: `default_recipe`.
    - `steps`: that many steps, in place of the recipe's.
    - `seconds`: end after this time. The rate falls with whichever of time and steps is further.
    - `target_db`: end when the signal-to-noise ratio of the latest steps reaches this.
    - `test`: a field to measure at the end, e.g. the same image at a higher resolution.
    - `moments`: those of the field, if they are known already.
    - `seed`: of the batches.
    - `callback`: called about once a second with a `Progress`.
    - `checkpoint`, `checkpoint_seconds`: a file for the state of the fit, and how often it is written. An interrupt
        writes it as well.
    - `resume`: go on from `checkpoint`, if it exists. The result is that of a fit never interrupted, to the last bit.

    **Returns:**

    A `Fit`. If the loss explodes, the fit goes back to its last good state with half the rate, with a warning; after a
    few times it raises `Diverged`.

    !!! example
        ```python
        result = fit(network, field, steps=20)
        print(result.metrics.snr_db)
        ```
    """
    recipe = default_recipe(field, network) if recipe is None else recipe
    recipe = recipe if steps is None else replace(recipe, steps=steps)
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds is {seconds}; it must be positive")
    if target_db is not None and not math.isfinite(target_db):
        raise ValueError(f"target_db is {target_db}; it must be finite")
    moments = estimate_moments(field) if moments is None else moments
    task = _Task.of(network, field, moments, recipe, seed)
    state = task.start(network)
    if resume and checkpoint is not None and os.path.exists(checkpoint):
        state = task.restore(checkpoint, state)
    good, told, saved, begun = state, 0.0, time.perf_counter(), time.perf_counter() - state.seconds
    stop: Literal["steps", "seconds", "target"] = "steps"
    try:
        while state.step < recipe.steps:
            share = 0.0 if seconds is None else min(1.0, state.seconds / seconds)
            state = task.advance(state, share)
            state = replace(state, seconds=time.perf_counter() - begun)
            if not state.latest < _EXPLOSION * min(state.best, state.losses[0]):  # nan is not less either
                state = _retreat(good, state)
                continue
            good = state = replace(state, best=min(state.best, state.latest))
            now = time.perf_counter()
            if callback is not None and (now - told > _TELL_SECONDS or state.step == recipe.steps):
                callback(task.progress(state, field, seconds))
                told = now
            if checkpoint is not None and now - saved > checkpoint_seconds:
                task.save(checkpoint, state)
                saved = now
            if target_db is not None and _decibels(state.latest) >= target_db:
                stop = "target"
                break
            if seconds is not None and state.seconds >= seconds:
                stop = "seconds"
                break
    except KeyboardInterrupt:
        if checkpoint is not None and good.step > 0:
            task.save(checkpoint, good)
        raise
    losses = task.scale * state.losses[: state.step].astype(np.float64)
    del task  # and with it the samples on the device, before the predictions take as much memory
    return Fit(
        state.network,
        measure(state.network, field),
        None if test is None else measure(state.network, test),
        losses,
        stop,
        state.step,
        state.seconds,
        recipe,
    )


def measure(network: CoordinateMLP, field: Field) -> Metrics:
    """The metrics of a network over all samples of a field.

    !!! example
        ```python
        measure(network, field).snr_db
        ```
    """
    if isinstance(field, Grid):
        prediction = render(network, field.shape, extents=field.extents, align=field.align)
    else:
        positions = jnp.asarray(field.positions, network.layers[0].weight.dtype)
        prediction = np.asarray(_evaluate(network, positions))
    return evaluate(prediction, field)


@eqx.filter_jit
def _evaluate(network: CoordinateMLP, positions: Array) -> Array:
    return jax.lax.map(network, positions, batch_size=block_size(network.width))


@dataclass(frozen=True, eq=False)
class _State:
    """Where a fit stands. Losses are in units of the variance of the signal."""

    network: CoordinateMLP
    optimizer: optax.OptState
    losses: np.ndarray  # (recipe.steps,)
    step: int = 0
    seconds: float = 0.0
    rate_scale: float = 1.0
    best: float = math.inf
    latest: float = math.inf
    retreats: int = 0


def _retreat(good: _State, exploded: _State) -> _State:
    """Back to the last good state, with half the rate."""
    retreats = exploded.retreats + 1
    message = f"the loss exploded at step {exploded.step}"
    if retreats > _RETRIES:
        raise Diverged(f"{message}, for the {retreats}th time although the rate was halved each time; lower it")
    warnings.warn(f"{message}; going on from step {good.step} with half the rate", stacklevel=3)
    return replace(good, rate_scale=exploded.rate_scale / 2, retreats=retreats, seconds=exploded.seconds)


@dataclass(frozen=True, eq=False)
class _Task:
    """All of a fit that does not change while it runs."""

    samples: Samples
    units: Units
    scale: float  # the variance of the signal over all samples and channels
    recipe: Recipe
    seed: int
    identity: dict[str, Any]  # what must agree for a checkpoint to belong to this fit

    @staticmethod
    def of(network: CoordinateMLP, field: Field, moments: Moments, recipe: Recipe, seed: int) -> "_Task":
        samples = Samples.of(field, network.layers[0].weight.dtype)
        scale = float(np.trace(moments.regularized_covariance)) / moments.out_size + float(np.var(moments.mean))
        keys = ("mean", "covariance", "structure_tensor")
        identity = {
            "recipe": asdict(recipe),
            "seed": seed,
            "layers": [[*layer.weight.shape, layer.activation, layer.omega] for layer in network.layers],
            "samples": field.samples,
            "moments": {key: getattr(moments, key).tolist() for key in keys},
        }
        units = replicate(signal_units(network, field, moments))
        return _Task(samples, units, scale, recipe, seed, identity)

    def start(self, network: CoordinateMLP) -> _State:
        optimizer = _optimizer(network, self.recipe.optimizer, self.units).init(eqx.filter(network, eqx.is_array))
        losses = np.full(self.recipe.steps, np.nan, np.float32)
        return _State(replicate(network), replicate(optimizer), losses)

    def advance(self, state: _State, share_of_time: float) -> _State:
        """A call of the compiled loop; the rate falls with the share of steps or of time, whichever is larger."""
        recipe = self.recipe
        count = min(_CALL, recipe.steps - state.step)
        rates = np.empty(_CALL, np.float32)
        for i in range(_CALL):
            share = max(share_of_time, (state.step + i) / recipe.steps)
            fall = (1 + math.cos(math.pi * min(1.0, share))) / 2
            rates[i] = recipe.learning_rate * (recipe.final_fraction + (1 - recipe.final_fraction) * fall)
        network, optimizer, losses = _steps(
            state.network,
            state.optimizer,
            self.samples,
            self.units,
            np.asarray(self.scale, state.network.layers[0].weight.dtype),
            np.float32(state.rate_scale) * rates,
            np.uint32(self.seed),
            np.int32(state.step),
            np.int32(count),
            recipe.optimizer,
            recipe.batch,
        )
        record = state.losses.copy()
        record[state.step : state.step + count] = losses[:count]
        latest = float(record[state.step : state.step + count].mean())
        return replace(
            state, network=network, optimizer=optimizer, losses=record, step=state.step + count, latest=latest
        )

    def progress(self, state: _State, field: Field, seconds: float | None) -> Progress:
        mse = self.scale * state.latest
        low, high = field.value_range
        speed = state.step / state.seconds
        left = (self.recipe.steps - state.step) / speed
        left = left if seconds is None else min(left, max(0.0, seconds - state.seconds))
        peak = _decibels(mse / (high - low) ** 2) if high > low else math.inf
        return Progress(state.step, self.recipe.steps, mse, _decibels(state.latest), peak, speed, left)

    def save(self, path: str | os.PathLike[str], state: _State) -> None:
        numbers = {key: getattr(state, key) for key in ("step", "seconds", "rate_scale", "best", "latest", "retreats")}
        arrays = (eqx.filter(state.network, eqx.is_array), state.optimizer, state.losses)
        if jax.process_index() == 0:
            save_state(path, arrays, {"identity": self.identity, "numbers": numbers})

    def restore(self, path: str | os.PathLike[str], like: _State) -> _State:
        arrays, static = eqx.partition(like.network, eqx.is_array)
        (network, optimizer, losses), header = load_state(path, (arrays, like.optimizer, like.losses))
        if header["identity"] != self.identity:
            raise ValueError(f"{path}: a checkpoint of another fit; remove it, or repeat the settings it was made with")
        return _State(eqx.combine(network, static), optimizer, np.asarray(losses), **header["numbers"])


def _decibels(loss: float) -> float:
    return -10 * math.log10(loss) if loss > 0 else math.inf


def _optimizer(network: CoordinateMLP, name: Optimizer, units: Units) -> optax.GradientTransformation:
    return muon_in_units(network, units) if name == "muon" else optax.scale_by_adam()


@eqx.filter_jit
def _steps(
    network: CoordinateMLP,
    state: optax.OptState,
    samples: Samples,
    units: Units,
    scale: ArrayLike,
    rates: ArrayLike,
    seed: ArrayLike,
    first: ArrayLike,
    count: ArrayLike,
    name: Optimizer,
    batch: int,
) -> tuple[CoordinateMLP, optax.OptState, Float[Array, " steps"]]:
    """`count` steps at the given rates, the first of which has the number `first`."""
    rates = jnp.asarray(rates)
    optimizer = _optimizer(network, name, units)
    arrays, static = eqx.partition(network, eqx.is_array)
    key = jax.random.key(seed)
    block = block_size(network.width)

    def step(i, carry):
        arrays, state, losses = carry
        indices, weights = draw_batch(jax.random.fold_in(key, first + i), samples, batch, block)
        loss, gradients = _loss_and_gradients(eqx.combine(arrays, static), samples, indices, weights, scale)
        with jax.numpy_dtype_promotion("standard"):  # Optax's bias correction mixes integers and floats
            updates, state = optimizer.update(gradients, state, arrays)
        arrays = jax.tree.map(lambda a, u: a - rates[i].astype(a.dtype) * u, arrays, updates)
        return arrays, state, losses.at[i].set(loss.astype(losses.dtype))

    arrays, state, losses = jax.lax.fori_loop(0, count, step, (arrays, state, jnp.zeros_like(rates)))
    return eqx.combine(arrays, static), state, losses


def _loss_and_gradients(
    network: CoordinateMLP, samples: Samples, indices: Array, weights: Array, scale: ArrayLike
) -> tuple[Array, Any]:
    """The mean squared error in units of `scale`, and its gradients, a block at a time."""
    parameters, chain = parameters_of(network), Chain.of(network)
    transposed, dtype = transposes(parameters), parameters[0][0].dtype

    def add_block(total, block):
        indices, weights = block
        positions, values = samples.at(indices, dtype)
        shares = weights.ravel().astype(dtype) / (values.shape[1] * scale)
        part = loss_and_gradients(parameters, transposed, chain, positions.T, values.T, shares)
        return jax.tree.map(jnp.add, total, part), None

    zero = jnp.zeros((), dtype), jax.tree.map(jnp.zeros_like, parameters)
    loss, gradients = jax.lax.scan(add_block, zero, (indices, weights))[0]
    return loss, with_parameters(network, gradients)
