"""Networks: a blueprint with its random numbers drawn, as an Equinox module."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from ..initialization.activations import get_activation, load_function
from ..initialization.blueprint import Blueprint, LayerPlan, Role
from ..initialization.distributions import Distribution

Network = Callable[..., Any]
# A copy of Wᵀ for each layer, or None where no gradient goes through it.
Transposed = tuple[Float[Array, "_ _"] | None, ...]


@functools.cache
def activation_function(name: str) -> Callable[[Array], Array]:
    """The JAX function of an activation."""
    return load_function(get_activation(name).jax)


def _product(weight: Float[Array, "rows columns"], x: Float[Array, "columns *n"]) -> Float[Array, "rows *n"]:
    # Phases reach hundreds of radians, and by default accelerators keep eight to eleven bits of the factors.
    return jnp.matmul(weight, x, precision=jax.lax.Precision.HIGHEST)


@jax.custom_vjp
def _product_with_copy(weight: Array, transposed: Array, x: Array) -> Array:
    """W x, whose backward pass multiplies by a copy of Wᵀ. It can be differentiated backward, and once."""
    return _product(weight, x)


_product_with_copy.defvjp(
    lambda weight, transposed, x: (_product(weight, x), (transposed, x)),
    lambda saved, g: (_product(g, saved[1].T), jnp.zeros_like(saved[0]), _product(saved[0], g)),
)


class Layer(eqx.Module):
    """activation(omega · (W x + b)), of one vector or of the columns of a matrix."""

    weight: Float[Array, "rows columns"]
    bias: Float[Array, " rows"] | None
    activation: str = eqx.field(static=True)
    omega: float = eqx.field(static=True)
    role: Role = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)

    def __init__(self, plan: LayerPlan, *, dtype: jnp.dtype, key: PRNGKeyArray):
        weight_key, bias_key = jax.random.split(key)
        self.weight = draw(plan.weight, (plan.rows, plan.columns), dtype, weight_key)
        self.bias = None if plan.bias is None else draw(plan.bias, (plan.rows,), dtype, bias_key)
        self.activation, self.omega, self.role, self.trainable = plan.activation, plan.omega, plan.role, plan.trainable

    def preactivation(
        self,
        x: Float[Array, "columns *n"],
        omega: Float[Array, ""] | None = None,
        transposed: Float[Array, "columns rows"] | None = None,
    ) -> Float[Array, "rows *n"]:
        """omega · (W x + b).

        **Arguments:**

        - `x`: one vector, or the columns of a matrix.
        - `omega`: in place of the layer's own.
        - `transposed`: a copy of Wᵀ, for a faster backward pass; see `transposed_weights`.
        """
        weight, bias = (self.weight, self.bias) if self.trainable else jax.lax.stop_gradient((self.weight, self.bias))
        z = _product(weight, x) if transposed is None else _product_with_copy(weight, transposed, x)
        z = z if bias is None else z + bias.reshape(-1, *[1] * (x.ndim - 1))
        if omega is not None:
            return omega * z
        return z if self.omega == 1 else self.omega * z

    def activate(self, z: Float[Array, "rows *n"]) -> Float[Array, "out_size *n"]:
        return activation_function(self.activation)(z)

    def __call__(self, x: Float[Array, "columns *n"]) -> Float[Array, "out_size *n"]:
        return self.activate(self.preactivation(x))


class LayeredNetwork(eqx.Module):
    """A network of layers that work on columns: the kind that has a fast path for training."""

    takes_batches: ClassVar[bool] = True

    @abstractmethod
    def weights(self) -> tuple[Float[Array, "_ _"], ...]:
        """The matrix of every layer."""

    @abstractmethod
    def columns(
        self, h: Float[Array, "in_size *n"], transposed: Transposed | None = None
    ) -> Float[Array, "out_size *n"]:
        """The channels of one position, or a column of them for each column of positions.

        **Arguments:**

        - `h`: the positions.
        - `transposed`: the network's `transposed_weights`, for a faster backward pass.
        """

    def __call__(self, x: Float[Array, "*batch in_size"]) -> Float[Array, "*batch out_size"]:
        require_coordinates(self, x)
        return in_columns(self.columns, x)


class CoordinateMLP(LayeredNetwork):
    """A network that maps positions to the channels there.

    It takes one position or any batch of them, `(*batch, in_size)`, and gives `(*batch, out_size)`. It is an Equinox
    module, so `eqx.filter_jit`, `jax.vmap`, `jax.grad`, `jax.jacfwd` and `jax.hessian` work on it as on any function.
    A batch is faster than `jax.vmap`: all layers then work on matrices with a column for each position, in which all
    products of a training step are fast, on a CPU above all.

    **Arguments:**

    - `blueprint`: what to draw.
    - `dtype`: of the weights. Default: JAX's default floating-point type.
    - `key`: the randomness. The same key gives the same draws for any scales of the laws and any ω.

    !!! example
        ```python
        network = CoordinateMLP(sm20((2, 3), width=64, depth=2), key=jax.random.key(0))
        color = network(jnp.array([0.1, -0.3]))  # (3,)
        colors = network(positions)  # (samples, 3)
        ```
    """

    layers: tuple[Layer, ...]

    def __init__(self, blueprint: Blueprint, *, dtype: jnp.dtype | type | None = None, key: PRNGKeyArray):
        dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
        keys = jax.random.split(key, len(blueprint.layers))
        self.layers = tuple(Layer(plan, dtype=dtype, key=k) for plan, k in zip(blueprint.layers, keys, strict=True))

    @property
    def in_size(self) -> int:
        """The number of coordinates."""
        return self.layers[0].weight.shape[1]

    @property
    def out_size(self) -> int:
        """The number of channels."""
        return self.layers[-1].weight.shape[0]

    @property
    def width(self) -> int:
        """The number of inputs of the last layer."""
        return self.layers[-1].weight.shape[1]

    def weights(self) -> tuple[Float[Array, "_ _"], ...]:
        return tuple(layer.weight for layer in self.layers)

    def columns(
        self, h: Float[Array, "in_size *n"], transposed: Transposed | None = None
    ) -> Float[Array, "out_size *n"]:
        return run_layers(self.layers, h, transposed=transposed)


def run_layers(
    layers: Sequence[Layer],
    h: Float[Array, "in_size *n"],
    *,
    omegas: Float[Array, " layers"] | None = None,
    transposed: Transposed | None = None,
) -> Float[Array, "out_size *n"]:
    """All layers, one after the other, with `omegas` in place of their own."""
    copies = [None] * len(layers) if transposed is None else transposed
    for layer, omega, copy in zip(layers, [None] * len(layers) if omegas is None else omegas, copies, strict=True):
        h = layer.activate(layer.preactivation(h, omega, copy))
    return h


def transposed_weights(network: Any) -> Transposed | None:
    """A copy of every Wᵀ that the backward pass of a `LayeredNetwork` multiplies by; `None` for other networks.

    A subclass with its own `__call__` computes something else than its columns, so it is one of the others.

    XLA takes Wᵀ g as a product with a transposed factor, which took 1.3 times as long as others on a CPU. A copy a step
    is cheaper, if a step has several blocks. Without the barrier, the compiler would put it back into the product.
    """
    if not isinstance(network, LayeredNetwork) or type(network).__call__ is not LayeredNetwork.__call__:
        return None
    return (None, *(jax.lax.optimization_barrier(weight.T) for weight in network.weights()[1:]))


def in_columns(function: Callable[[Array], Array], x: Float[Array, "*batch size"]) -> Float[Array, "*batch _"]:
    """Apply a function of columns to rows."""
    if x.ndim == 1:
        return function(x)
    outputs = function(x.reshape(-1, x.shape[-1]).T).T
    return outputs.reshape(*x.shape[:-1], outputs.shape[-1])


def require_coordinates(network: Any, x: Array) -> None:
    """Positions have one row for each, and as many coordinates as the network takes."""
    require_vectors(network)
    size = getattr(network, "in_size", None)
    if isinstance(size, int) and x.shape[-1:] != (size,):
        raise ValueError(
            f"positions have the shape {x.shape}, but the network takes {size} coordinates; pass (*batch, {size}), "
            "with a row for each position"
        )
    if x.ndim == 0:
        raise ValueError("positions have the shape (); pass (*batch, in_size), with a row for each position")


def require_vectors(network: Any) -> None:
    """A network takes positions as vectors, even if they have a single coordinate."""
    if getattr(network, "in_size", None) == "scalar":
        raise ValueError(
            f"the {type(network).__name__} has in_size='scalar', but a position is a vector; make it with in_size=1"
        )


def evaluate_rows(
    network: Network, positions: Float[Array, "n in_size"], transposed: Transposed | None = None
) -> Float[Array, "n out_size"]:
    """The values of any network, a row for each position.

    An Equinox module usually maps one position; one whose `takes_batches` is true maps rows of them by itself.
    """
    if transposed is not None:
        return in_columns(lambda h: cast(LayeredNetwork, network).columns(h, transposed), positions)
    if getattr(network, "takes_batches", False):
        return network(positions)
    require_coordinates(network, positions)
    return jax.vmap(network)(positions).reshape(len(positions), -1)


def dtype_of(network: PyTree) -> jnp.dtype:
    """The type of a network's parameters."""
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    if not leaves:
        raise ValueError(f"the network {type(network).__name__} has no arrays of floating-point numbers to train")
    return leaves[0].dtype


def widest_layer(network: PyTree) -> int:
    """The largest side of a network's matrices, which decides how many positions fit into memory at once."""
    sides = [max(leaf.shape) for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_array)) if leaf.ndim >= 2]
    return max(sides, default=1)


def trainable_arrays(network: PyTree) -> PyTree[bool]:
    """A tree of the network's structure, true for the arrays that training may change."""

    def trained(part: Any) -> PyTree[bool]:
        free = not isinstance(part, Layer) or part.trainable
        return jax.tree.map(
            lambda leaf: free and (eqx.is_inexact_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)), part
        )

    return jax.tree.map(trained, network, is_leaf=lambda part: isinstance(part, Layer))


def draw(law: Distribution, shape: tuple[int, ...], dtype: jnp.dtype, key: PRNGKeyArray) -> Array:
    """A sample of a law."""
    if law.standard == "normal":
        standard = jax.random.normal(key, shape, dtype)
    elif law.standard == "uniform":
        standard = jax.random.uniform(key, shape, dtype)
    else:
        standard = jnp.zeros(shape, dtype)
    return law.sample(standard, lambda numbers: jnp.asarray(numbers, dtype))
