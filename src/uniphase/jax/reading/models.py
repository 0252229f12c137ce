"""Reading: a model of any JAX library as the layers that it computes.

JAX gives the program of a model, and every operation in it is followed; see `following`. So what counts is what the
model computes, not which library its modules come from. What was read is compared with what the program computes, layer
by layer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, PyTree

from ...diagnosis.chain import LayerReading, layer_name, preactivation
from ...initialization.activations import ACTIVATIONS
from ..network import CoordinateMLP
from .chain import Chain, assemble
from .following import Followed, Follower, unknown
from .operations import GELU_TOLERANCE
from .values import Constant, NotReadError, Opaque, Positions, Signal, Stored, as_signal

AnyModel = TypeVar("AnyModel")

_COUNT = 7  # of positions
# Rounding of a sum of products, in units of ε times the sum of their sizes. It is a few even for thousands of terms.
_ROUNDING = 32.0
_WAY_OUT = (
    "initialize its layers one by one with uniphase.initializers; diagnose takes them as "
    "layers={name: (weight, bias, activation, omega), ...}"
)
_PASS = (
    "pass a module that maps a position (in_size,) to the channels, or a pair (apply, params) for which "
    "apply(params, position) does"
)


class Parameters:
    """A model as a function of its arrays.

    **Arguments:**

    - `model`: a callable pytree, such as a module of Equinox or Flax nnx; or a pair `(apply, params)`.

    - `tree`: what holds the arrays: the model, or the `params` of a pair.
    - `arrays`: all of them, by their paths.
    """

    def __init__(self, model: Any):
        if not callable(model) and not (isinstance(model, tuple) and len(model) == 2 and callable(model[0])):
            raise ValueError(f"model is a {type(model).__name__}; {_PASS}")
        pair = cast(tuple[Callable[..., Any], Any], model) if isinstance(model, tuple) else (_call, model)
        self.apply, self.tree = pair
        name = getattr(self.apply, "__qualname__", "apply") if isinstance(model, tuple) else type(model).__name__
        self.kind = f"the model {name}"
        self.arrays = arrays_of(self.tree)

    def call(self, arrays: Mapping[str, Any], x: Any) -> Any:
        """The model with other arrays at one position."""
        return self.apply(replace_arrays(self.tree, arrays), x)


def _call(model: Any, x: Any) -> Any:
    return model(x)


def arrays_of(tree: PyTree) -> dict[str, Any]:
    """The arrays of a tree by their paths, which are the same for a module and for the state that nnx splits off."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {_name(path): leaf for path, leaf in leaves if _is_array(leaf)}


def replace_arrays(tree: AnyModel, arrays: Mapping[str, Any]) -> AnyModel:
    """A tree with other arrays at some of its paths."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return jax.tree.unflatten(structure, [arrays.get(_name(path), leaf) for path, leaf in leaves])


def _is_array(leaf: Any) -> bool:
    return eqx.is_array(leaf) or isinstance(leaf, np.ndarray | jax.ShapeDtypeStruct)


def _name(path: Sequence[Any]) -> str:
    parts = [str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path]
    return ".".join(parts).removesuffix(".value")  # of the variables of nnx


def as_function(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The model as a function of positions `(samples, in_size)` that gives `(samples, out_size)`, in NumPy."""
    parameters = Parameters(model)
    scalar = getattr(model, "in_size", None) == "scalar"

    def values(positions: np.ndarray) -> np.ndarray:
        rows = jnp.asarray(positions[:, 0] if scalar else positions)
        return np.asarray(jax.vmap(lambda x: parameters.apply(parameters.tree, x))(rows)).reshape(len(positions), -1)

    return values


def read_layers(model: Any, in_size: int | None = None) -> Chain:
    """Read a model as a chain of linear layers with activations between them.

    **Arguments:**

    - `model`: a module that maps one position to the channels there, of Equinox, Flax nnx or your own; or a pair
        `(apply, params)` of Flax linen or Haiku, for which `apply(params, position)` does.
    - `in_size`: the number of coordinates, for a model that does not say.

    !!! example
        ```python
        for layer in read_layers(eqx.nn.MLP(2, 3, 64, 2, activation=jnp.sin, key=key)).layers:
            print(layer.name, layer.weight.shape, layer.activation, layer.omega)
        ```
    """
    parameters, failed = Parameters(model), []
    shapes = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), parameters.arrays)
    for positions in _candidates(parameters, in_size):
        try:
            program, shape = jax.make_jaxpr(parameters.call, return_shape=True)(shapes, positions[0])
        except Exception as error:  # a user's model may raise anything
            failed.append(str(error).strip().partition("\n")[0] or type(error).__name__)
            continue
        if not isinstance(shape, jax.ShapeDtypeStruct):
            raise ValueError(f"{parameters.kind} returns a {type(shape).__name__}, not an array; {_PASS}")
        try:
            return _read(parameters, program, positions)
        except NotReadError as error:
            raise ValueError(f"{parameters.kind} {error}, which is not read; {_WAY_OUT}") from None
    raise ValueError(f"{parameters.kind} does not take a position ({failed[0]}); {_PASS}")


def _candidates(parameters: Parameters, in_size: int | None) -> Iterator[Float[np.ndarray, "n ..."]]:
    """Positions in the shapes that a model may take. One of its matrices has a row or a column for each coordinate."""
    matrices = [array for array in parameters.arrays.values() if array.ndim > 1]
    sizes = [*([] if in_size is None else [in_size]), *(size for matrix in matrices for size in matrix.shape[-2:])]
    dtypes = [array.dtype for array in parameters.arrays.values() if jnp.issubdtype(array.dtype, jnp.floating)]
    dtype = dtypes[0] if dtypes else jnp.result_type(float)
    rng = np.random.default_rng(0)
    for shape in ("d", "1 d", ""):
        for size in dict.fromkeys(sizes or [1, 2, 3]) if shape else [1]:
            rows = rng.uniform(-1, 1, (_COUNT, size)).astype(dtype)
            yield rows.reshape(_COUNT, *({"d": size, "1": 1}[axis] for axis in shape.split()))


def _read(parameters: Parameters, program: Any, positions: np.ndarray) -> Chain:
    rng = np.random.default_rng(0)
    numbers = {name: _numbers(array, rng) for name, array in parameters.arrays.items()}
    follower, found = Follower(), []

    def run(arrays: Mapping[str, Any], x: Any) -> list[Any]:
        operands = [Followed(_stored(name, parameters.arrays[name]), arrays[name]) for name in sorted(arrays)]
        index = np.arange(x.size).reshape(x.shape)
        found[:] = follower.follow(program, [*operands, Followed(Signal.of(Positions(), x.size, index), x)])
        return [found[0].seen, *(seen for _, seen in follower.seen.values())]

    with jax.ensure_compile_time_eval():  # so that a model can be read under `jit`
        output, *outputs = jax.jit(jax.vmap(run, (None, 0)))(numbers, positions)
    value = found[0].value
    if isinstance(value, Opaque):
        raise NotReadError(value.reason.removeprefix("the model "))
    if isinstance(value, Constant):
        raise NotReadError("returns what does not depend on the position")
    signal = as_signal(value)
    if not np.array_equal(signal.index.ravel(), np.arange(signal.size)):
        raise NotReadError("returns its channels in another order, or only some of them")
    checked, activations = assemble(signal, numbers | follower.constants)
    pairs = zip(follower.seen.items(), outputs, strict=True)
    seen = {atom: of.sorted(np.asarray(rows, np.float64)) for (atom, (of, _)), rows in pairs}
    _require_agreement(checked, positions, [seen[atom] for atom in activations], output)
    return _named(assemble(signal, parameters.arrays | follower.constants)[0], parameters.tree)


def _stored(name: str, array: Any) -> Constant:
    if not _is_known(array):
        return unknown(name, array.shape)
    return Constant(array.shape, lambda: np.asarray(array), Stored.whole(name, array.shape) if array.ndim else None)


def _is_known(array: Any) -> bool:
    return not isinstance(array, Tracer | jax.ShapeDtypeStruct)


def _numbers(array: Any, rng: np.random.Generator) -> Any:
    """The numbers of an array; where they are not known, or not finite any more, others in their place."""
    if _is_known(array) and not (jnp.issubdtype(array.dtype, jnp.floating) and not np.isfinite(array).all()):
        return array
    return np.asarray(rng.standard_normal(array.shape) / max(array.shape, default=1) ** 0.5, array.dtype)


def _named(chain: Chain, tree: Any) -> Chain:
    """A network of this package has names for its layers."""
    if not isinstance(tree, CoordinateMLP):
        return chain
    count = len(chain.layers)
    layers = (layer.renamed(layer_name(index, count)) for index, layer in enumerate(chain.layers))
    return Chain(tuple(layers), chain.before, chain.after, chain.squash)


def _require_agreement(chain: Chain, positions: np.ndarray, seen: Sequence[np.ndarray], output: Any) -> None:
    """Compare the outputs of all layers with those in the model."""
    readings, h = chain.readings(), np.asarray(positions, np.float64).reshape(_COUNT, -1)
    outer = chain.outer
    last = (np.asarray(output, np.float64).reshape(_COUNT, -1) - outer.shift) / outer.scale
    epsilon = max(float(jnp.finfo(output.dtype).eps), 0.0 if jax.default_backend() == "cpu" else 1e-3)
    for number, layer in enumerate(readings):
        found = ACTIVATIONS[layer.activation].value(preactivation(layer, h))
        model = last if number == len(readings) - 1 else seen[number]
        allowed = _ROUNDING * epsilon * (1 + _sizes(layer, h)) + (GELU_TOLERANCE if layer.activation == "gelu" else 0.0)
        if found.shape != model.shape or (np.abs(found - model) > allowed).any():
            raise NotReadError(f"computes something else than layer {layer.name!r} ({layer.activation}) that was read")
        h = model


def _sizes(layer: LayerReading, h: np.ndarray) -> np.ndarray:
    """The sum of the sizes of all that is added in each preactivation."""
    bias = None if layer.bias is None else np.abs(layer.bias)
    sizes = preactivation(LayerReading(layer.name, np.abs(layer.weight), bias, "linear", layer.omega), np.abs(h))
    return np.tile(sizes, ACTIVATIONS[layer.activation].outputs)
