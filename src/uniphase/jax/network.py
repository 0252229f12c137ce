"""Networks: a blueprint with its random numbers drawn, as an Equinox module."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from ..initialization.activations import get_activation, load_function
from ..initialization.blueprint import Blueprint, LayerPlan, Role
from ..initialization.distributions import Law


@functools.cache
def activation_function(name: str) -> Callable[[Array], Array]:
    """The activation of a name, as JAX has it."""
    return load_function(get_activation(name).jax)


class Layer(eqx.Module):
    """activation(omega · (W x + b))."""

    weight: Float[Array, "rows columns"]
    bias: Float[Array, " rows"] | None
    activation: str = eqx.field(static=True)
    omega: float = eqx.field(static=True)
    role: Role = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)

    def __init__(self, plan: LayerPlan, *, dtype: jnp.dtype, key: PRNGKeyArray):
        weight_key, bias_key = jax.random.split(key)
        self.weight = _draw(plan.weight, (plan.rows, plan.columns), dtype, weight_key)
        self.bias = None if plan.bias is None else _draw(plan.bias, (plan.rows,), dtype, bias_key)
        self.activation, self.omega, self.role, self.trainable = plan.activation, plan.omega, plan.role, plan.trainable

    def preactivation(self, x: Float[Array, "columns *n"]) -> Float[Array, "rows *n"]:
        """omega · (W x + b)."""
        weight = self.weight if self.trainable else jax.lax.stop_gradient(self.weight)
        z = weight @ x
        z = z if self.bias is None else z + self.bias.reshape(-1, *[1] * (x.ndim - 1))
        return z if self.omega == 1 else self.omega * z

    def activate(self, z: Float[Array, "rows *n"]) -> Float[Array, "out_size *n"]:
        return activation_function(self.activation)(z)

    def __call__(self, x: Float[Array, "columns *n"]) -> Float[Array, "out_size *n"]:
        return self.activate(self.preactivation(x))


class CoordinateMLP(eqx.Module):
    """A network that maps one position to the channels there.

    It is an Equinox module, so `jax.vmap(network)` takes many positions and `eqx.filter_jit`, `jax.grad`, `jax.jacfwd`
    and `jax.hessian` work on it as on any function. It also takes many positions in the columns of a matrix, and gives
    their channels in columns: the layout in which all products of a training step are fast, on a CPU above all.

    **Arguments:**

    - `blueprint`: what to draw.
    - `dtype`: of the weights. Default: JAX's default floating-point type.
    - `key`: the randomness. The same key gives the same draws whatever the scales of the laws and whatever ω.

    !!! example
        ```python
        network = CoordinateMLP(sm20((2, 3), width=64, depth=2), key=jax.random.key(0))
        color = network(jnp.array([0.1, -0.3]))
        colors = jax.vmap(network)(positions)  # (samples, 3)
        colors = network(positions.T)  # (3, samples): the same, faster
        ```
    """

    layers: tuple[Layer, ...]

    def __init__(self, blueprint: Blueprint, *, dtype: jnp.dtype | type | None = None, key: PRNGKeyArray):
        dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
        keys = jax.random.split(key, len(blueprint.layers))
        self.layers = tuple(Layer(plan, dtype=dtype, key=k) for plan, k in zip(blueprint.layers, keys, strict=True))

    @property
    def width(self) -> int:
        """The number of inputs of the last layer."""
        return self.layers[-1].weight.shape[1]

    def __call__(self, x: Float[Array, "in_size *n"]) -> Float[Array, "out_size *n"]:
        for layer in self.layers:
            x = layer(x)
        return x


def _draw(law: Law, shape: tuple[int, ...], dtype: jnp.dtype, key: PRNGKeyArray) -> Array:
    if law.standard == "normal":
        standard = jax.random.normal(key, shape, dtype)
    elif law.standard == "uniform":
        standard = jax.random.uniform(key, shape, dtype)
    else:
        standard = jnp.zeros(shape, dtype)
    return law.sample(standard, lambda numbers: jnp.asarray(numbers, dtype))
