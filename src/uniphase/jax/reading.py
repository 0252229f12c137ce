"""Reading: a user's Equinox model as the chain of layers that it computes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..diagnosis.chain import LayerReading, evaluate_chain, layer_name, recognize_activation
from .network import CoordinateMLP, Layer

AnyModel = TypeVar("AnyModel")

_POSITIONS = 64


@dataclass(frozen=True, eq=False)
class ReadLayer:
    """activation(omega · (W x + b)), as a model computes it. The name is its path in the model."""

    name: str
    weight: Float[Array, "rows columns"]
    bias: Float[Array, " rows"] | None
    activation: str
    omega: float


def read_layers(model: Any) -> list[ReadLayer]:
    """Read an Equinox model as a chain of linear layers with activations between them.

    **Arguments:**

    - `model`: a `CoordinateMLP`, an `eqx.nn.MLP`, or an `eqx.nn.Sequential` of linear layers and functions.

    !!! example
        ```python
        for layer in read_layers(eqx.nn.MLP(2, 3, 64, 2, activation=jnp.sin, key=key)):
            print(layer.name, layer.weight.shape, layer.activation, layer.omega)
        ```
    """
    if isinstance(model, CoordinateMLP):
        count = len(model.layers)
        return [
            ReadLayer(layer_name(index, count), layer.weight, layer.bias, layer.activation, layer.omega)
            for index, layer in enumerate(model.layers)
        ]
    parts = list(_parts(model))
    if not parts or not isinstance(parts[0][1], eqx.nn.Linear):
        first = type(parts[0][1] if parts else model).__name__
        raise ValueError(
            f"the model begins with {first}, and only linear layers can be read; "
            "pass layers={name: (weight, bias, activation, omega), ...}"
        )
    layers = []
    starts = [index for index, (_, part) in enumerate(parts) if isinstance(part, eqx.nn.Linear)]
    for start, stop in zip(starts, [*starts[1:], len(parts)], strict=True):
        name, linear = parts[start]
        activation, omega = _activation(name, [part for _, part in parts[start + 1 : stop]])
        layers.append(ReadLayer(name, linear.weight, linear.bias, activation, omega))
    return layers


def replace_arrays(model: AnyModel, arrays: Sequence[tuple[Array, Array | None]]) -> AnyModel:
    """The model with other weights and biases, given in the order and the shapes of `read_layers`."""
    remaining, replacements = iter(arrays), []
    for module in _modules(model):
        if module.weight.ndim == 2:
            group = next(remaining)
        else:
            weights, biases = zip(*[next(remaining) for _ in module.weight], strict=True)
            group = jnp.stack(weights), None if module.bias is None else jnp.stack(biases)
        replacements.extend(array for array in group if array is not None)

    def where(tree):
        return [array for module in _modules(tree) for array in (module.weight, module.bias) if array is not None]

    return eqx.tree_at(where, model, replacements)


def as_function(model: Callable[..., Any]) -> Callable[[np.ndarray], np.ndarray]:
    """The model as a function of positions `(samples, in_size)` that gives `(samples, out_size)`, in NumPy."""
    scalar = getattr(model, "in_size", None) == "scalar"

    def values(positions: np.ndarray) -> np.ndarray:
        rows = jnp.asarray(positions[:, 0] if scalar else positions)
        return np.asarray(jax.vmap(model)(rows)).reshape(len(positions), -1)

    return values


def require_whole(model: Any, layers: Sequence[ReadLayer]) -> None:
    """Check that a model is the layers read from it and nothing else: a user's subclass can override anything.

    Both are compared with random weights, so that those of the model may be anything, even traced.
    """
    rng = np.random.default_rng(0)
    chain = [_with_random_numbers(layer, rng) for layer in layers]
    positions = rng.uniform(-1, 1, (_POSITIONS, layers[0].weight.shape[1])).astype(layers[0].weight.dtype)
    with jax.ensure_compile_time_eval():
        arrays = [
            (
                jnp.asarray(ours.weight, layer.weight.dtype),
                None if ours.bias is None else jnp.asarray(ours.bias, layer.weight.dtype),
            )
            for ours, layer in zip(chain, layers, strict=True)
        ]
        values = as_function(replace_arrays(model, arrays))(positions).astype(np.float64)
    expected = evaluate_chain(chain, positions)
    # The weights keep phases within some turns, so that low precision costs less; a layer read wrongly costs it all.
    if values.shape != expected.shape or not np.abs(values - expected).max() < 0.1 * np.abs(expected).max():
        raise ValueError(
            f"the model {type(model).__name__} computes something else than the layers read from it, "
            f"{', '.join(layer.name for layer in layers)}; draw its layers one by one with uniphase.initializers"
        )


def _with_random_numbers(layer: ReadLayer, rng: np.random.Generator) -> LayerReading:
    weight = rng.standard_normal(layer.weight.shape) / (layer.omega * layer.weight.shape[1] ** 0.5)
    bias = None if layer.bias is None else rng.standard_normal(layer.bias.shape) / layer.omega
    return LayerReading(layer.name, weight, bias, layer.activation, layer.omega)


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The linear layers and the functions between them, in the order in which they are applied."""
    if isinstance(model, eqx.nn.MLP):
        linears = [linear for layer in model.layers for linear in _unstack(layer)]
        for index, linear in enumerate(linears):
            yield f"{name}layers.{index}", linear
            last = index == len(linears) - 1
            yield f"{name}activation", model.final_activation if last else model.activation
    elif isinstance(model, eqx.nn.Sequential):
        for index, layer in enumerate(model.layers):
            yield from _parts(layer, f"{name}layers.{index}.")
    else:
        yield name.removesuffix("."), model


def _unstack(linear: eqx.nn.Linear) -> list[eqx.nn.Linear]:
    """The layers of an MLP with `scan=True`, which keeps the hidden ones in one array."""
    if linear.weight.ndim == 2:
        return [linear]
    return [jax.tree.map(lambda leaf, i=i: leaf[i], linear) for i in range(len(linear.weight))]


def _modules(model: Any) -> Iterator[eqx.nn.Linear | Layer]:
    """The modules that hold the weights of the layers; those of a scanned MLP hold several."""
    if isinstance(model, eqx.nn.Linear | Layer):
        yield model
    elif isinstance(model, eqx.nn.MLP | eqx.nn.Sequential | CoordinateMLP):
        for layer in model.layers:
            yield from _modules(layer)


def _activation(name: str, functions: list[Any]) -> tuple[str, float]:
    def composed(z: np.ndarray) -> np.ndarray:
        h = jnp.asarray(z)
        for function in functions:
            h = function(h)
        return np.asarray(h)

    try:
        with jax.ensure_compile_time_eval():  # so that a model can be read under `jit`
            return recognize_activation(composed)
    except Exception as error:  # any function may stand here, and may fail in any way
        raise ValueError(
            f"cannot read what follows {name}: {error}; pass layers={{name: (weight, bias, activation, omega), ...}}"
        ) from error
