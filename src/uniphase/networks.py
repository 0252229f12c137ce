"""Networks: a blueprint with its random numbers drawn, as an Equinox module."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .blueprints import Activation, Blueprint, LayerPlan, Role
from .laws import Law
from .sine import cosine, sine

ACTIVATIONS = {
    "sine": sine,
    "sincos": lambda z: jnp.concatenate([sine(z), cosine(z)], axis=-1),
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "linear": lambda z: z,
}


class Layer(eqx.Module):
    """activation(omega · (W x + b))."""

    weight: Float[Array, "rows columns"]
    bias: Float[Array, " rows"] | None
    activation: Activation = eqx.field(static=True)
    omega: float = eqx.field(static=True)
    role: Role = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)

    def __init__(self, plan: LayerPlan, *, dtype: jnp.dtype, key: PRNGKeyArray):
        weight_key, bias_key = jax.random.split(key)
        self.weight = _draw(plan.weight, (plan.rows, plan.columns), dtype, weight_key)
        self.bias = None if plan.bias is None else _draw(plan.bias, (plan.rows,), dtype, bias_key)
        self.activation, self.omega, self.role, self.trainable = plan.activation, plan.omega, plan.role, plan.trainable

    def preactivation(self, x: Float[Array, " columns"]) -> Float[Array, " rows"]:
        """omega · (W x + b)."""
        weight = self.weight if self.trainable else jax.lax.stop_gradient(self.weight)
        z = weight @ x
        z = z if self.bias is None else z + self.bias
        return z if self.omega == 1 else self.omega * z

    def __call__(self, x: Float[Array, " columns"]) -> Float[Array, " out_size"]:
        return ACTIVATIONS[self.activation](self.preactivation(x))


class CoordinateMLP(eqx.Module):
    """A network that maps one position to the channels there.

    It is an Equinox module, so `jax.vmap(network)` takes many positions and `eqx.filter_jit`, `jax.grad`, `jax.jacfwd`
    and `jax.hessian` work on it as on any function.

    **Arguments:**

    - `blueprint`: what to draw.
    - `dtype`: of the weights. Default: JAX's default floating-point type.
    - `key`: the randomness. The same key gives the same draws whatever the scales of the laws and whatever ω.

    !!! example
        ```python
        network = CoordinateMLP(sm20((2, 3), width=64, depth=2), key=jax.random.key(0))
        color = network(jnp.array([0.1, -0.3]))
        colors = jax.vmap(network)(positions)
        ```
    """

    layers: tuple[Layer, ...]

    def __init__(self, blueprint: Blueprint, *, dtype: jnp.dtype | type | None = None, key: PRNGKeyArray):
        dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
        keys = jax.random.split(key, len(blueprint.layers))
        self.layers = tuple(Layer(plan, dtype=dtype, key=k) for plan, k in zip(blueprint.layers, keys, strict=True))

    def __call__(self, x: Float[Array, " in_size"]) -> Float[Array, " out_size"]:
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
