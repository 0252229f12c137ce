"""Initializers for single layers, in the form `init(key, shape, dtype)` of `jax.nn.initializers`.

There is a function for every scheme. It takes the role of a layer and returns two initializers, for its kernel and for
its bias. The widths come from the shapes. A factor ω inside the activation is divided out, so that what the model
computes has the law of the scheme's blueprint.

A SIREN in Flax, with any ω; `flax.nnx.Linear` has the same two arguments:

```python
class Siren(flax.linen.Module):
    moments: uniphase.Moments
    omega: float = 30.0

    @flax.linen.compact
    def __call__(self, x):
        for role in ("input", "hidden", "hidden"):
            init = uniphase.initializers.uniform_phase(role, self.moments, omega=self.omega)
            x = jnp.sin(self.omega * flax.linen.Dense(256, kernel_init=init, bias_init=init)(x))
        init = uniphase.initializers.uniform_phase("output", self.moments)
        return flax.linen.Dense(3, kernel_init=init, bias_init=init)(x)
```

Haiku's modules pass no key to their initializers, so each is wrapped:
`with_key = lambda shape, dtype: init(haiku.next_rng_key(), shape, dtype)`, then
`haiku.Linear(256, w_init=with_key, b_init=with_key)`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, PRNGKeyArray

from ..initialization.blueprint import LayerPlan, Role
from ..initialization.distributions import Constant, Distribution
from ..initialization.layers import plan_layer
from ..initialization.moments import Moments
from ..initialization.schemes import Scheme, get_scheme
from .network import draw

# Draws an array: init(key, shape, dtype), as in jax.nn.initializers.
Initializer = Callable[..., Array]


class LayerInitializers(NamedTuple):
    """The two initializers of a layer, under their names in Flax.

    The pair can be called itself, as `init(key, shape, dtype)`: it draws a kernel for the shape of a matrix, and a bias
    for that of a vector. Pass it for both; with `kernel_init` alone, Flax sets the biases to zero.

    !!! example
        ```python
        init = uniphase.initializers.uniform_phase("hidden", omega=30.0)
        kernel = init.kernel_init(jax.random.key(0), (64, 64), jnp.float32)
        bias = init.bias_init(jax.random.key(1), (64,), jnp.float32)
        layer = flax.linen.Dense(64, kernel_init=init, bias_init=init)
        ```
    """

    kernel_init: Initializer
    bias_init: Initializer

    def __call__(self, key: PRNGKeyArray, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        """A kernel, or a bias if `shape` has one axis."""
        return (self.bias_init if len(shape) == 1 else self.kernel_init)(key, shape, dtype)


def from_scheme(
    scheme: str,
    role: Role,
    moments: Moments | None = None,
    *,
    omega: float = 1.0,
    fan_in: int | None = None,
    in_axis: int = -2,
    out_axis: int = -1,
    **options: Any,
) -> LayerInitializers:
    """The initializers of a layer in any scheme, of which `uniform_phase`, `sm20` and so on are special cases.

    **Arguments:**

    - `scheme`: a name in `uniphase.SCHEMES`.
    - `role`: `"input"` for the layer of the coordinates, `"output"` for the last one, `"hidden"` for all others.
    - `moments`: those of the signal, if the scheme uses them for this role.
    - `omega`: the factor inside the activation of this layer; for an output layer, inside the activations before it.
    - `fan_in`: the number of inputs of the layer. Needed only where the law of the bias depends on it and it follows
        neither from the shape of the bias nor from the moments; an error says so.
    - `in_axis`, `out_axis`: the axes of a kernel. The default is for `(in, out)`, as in Flax and Haiku; pass
        `in_axis=-1, out_axis=-2` for `(out, in)`, as in Equinox. The same key gives the same function in both.
    - `options`: other arguments of the scheme.

    !!! example
        ```python
        init = uniphase.initializers.from_scheme("cvp26-1", "hidden", omega=30.0)
        kernel = init.kernel_init(jax.random.key(0), (64, 64), jnp.float32)
        ```
    """
    if role not in get_args(Role):
        raise ValueError(f"role is {role!r}; it must be one of {', '.join(get_args(Role))}")
    if not omega > 0:
        raise ValueError(f"omega is {omega}; it must be positive")
    if {in_axis % 2, out_axis % 2} != {0, 1} or not all(-2 <= axis < 2 for axis in (in_axis, out_axis)):
        raise ValueError(
            f"in_axis is {in_axis} and out_axis is {out_axis}; pass the two axes of a kernel, "
            "-2 and -1 for (in, out) or -1 and -2 for (out, in)"
        )
    layer = _Layer(get_scheme(scheme), role, moments, omega, fan_in, options)
    layer.plan(2, 2)  # what is missing is an error now, and not when the model is built

    def kernel_init(key: PRNGKeyArray, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        if len(shape) != 2:
            raise ValueError(f"the kernel has the shape {tuple(shape)}; it must be a matrix")
        columns, rows = shape[in_axis], shape[out_axis]
        plan = layer.plan(rows, columns)
        if (rows, columns) != (plan.rows, plan.columns):
            raise ValueError(
                f"the kernel of shape {tuple(shape)} maps {columns} to {rows} (in_axis is {in_axis}, out_axis is "
                f"{out_axis}), but {role} layers of {scheme} map {plan.columns} to {plan.rows}; pass the role and the "
                "axes as they are in the model"
            )
        weight = layer.sample(plan.weight, plan, (rows, columns), dtype, key)
        return weight.T if in_axis % 2 == 0 else weight

    def bias_init(key: PRNGKeyArray, shape: Sequence[int], dtype: DTypeLike | None = None) -> Array:
        plan = layer.plan_of_bias(shape[-1])
        return layer.sample(plan.bias or Constant(0.0), plan, tuple(shape), dtype, key)

    return LayerInitializers(kernel_init, bias_init)


class _Layer(NamedTuple):
    """The arguments of `from_scheme`."""

    scheme: Scheme
    role: Role
    moments: Moments | None
    omega: float
    fan_in: int | None
    options: dict[str, Any]

    def plan(self, rows: int, columns: int) -> LayerPlan:
        return plan_layer(
            self.scheme, self.role, (rows, columns), self.moments, omega=self.omega, options=self.options, uneven=True
        )

    def plan_of_bias(self, rows: int) -> LayerPlan:
        """The plan of the layer, given only the length of the bias."""
        columns = self.fan_in
        if columns is None and self.role == "hidden":
            columns = rows
        if columns is None and self.role == "input" and self.moments is not None:
            columns = self.moments.in_size
        if columns is not None:
            return self.plan(rows, columns)
        narrow, wide = self.plan(rows, 2), self.plan(rows, 4)
        if narrow.bias != wide.bias:
            raise ValueError(
                f"the biases of {self.role} layers in {self.scheme.name} depend on the number of inputs, which does "
                "not follow from their shape; pass fan_in="
            )
        return narrow

    def sample(
        self, law: Distribution, plan: LayerPlan, shape: tuple[int, ...], dtype: DTypeLike | None, key: PRNGKeyArray
    ) -> Array:
        """A sample such that omega · (W x + b) has the law of the plan's."""
        omega = 1.0 if self.role == "output" else self.omega
        dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
        return draw(law, shape, dtype, key) * (plan.omega / omega)


_DOCUMENTATION = """The initializers of a layer in the scheme `{name}`.

    {summary}

    **Arguments:** as for `from_scheme`.

    !!! example
        ```python
        init = uniphase.initializers.{function}("hidden")
        kernel = init.kernel_init(jax.random.key(0), (64, 64), jnp.float32)
        ```
    """


def _specialize(name: str):
    scheme = get_scheme(name)

    def initializers(
        role: Role,
        moments: Moments | None = None,
        *,
        omega: float = 1.0,
        fan_in: int | None = None,
        in_axis: int = -2,
        out_axis: int = -1,
        **options: Any,
    ) -> LayerInitializers:
        axes = {"in_axis": in_axis, "out_axis": out_axis}
        return from_scheme(name, role, moments, omega=omega, fan_in=fan_in, **axes, **options)

    initializers.__name__ = initializers.__qualname__ = scheme.blueprint.__name__
    initializers.__doc__ = inspect.cleandoc(_DOCUMENTATION).format(
        name=name, function=scheme.blueprint.__name__, summary=scheme.summary
    )
    return initializers


uniform_phase = _specialize("uniform-phase")
sm20 = _specialize("sm20")
siren = _specialize("siren")
cvp26_0 = _specialize("cvp26-0")
cvp26_1 = _specialize("cvp26-1")
tanh_pe = _specialize("tanh-pe")
relu = _specialize("relu")
silu = _specialize("silu")
gelu = _specialize("gelu")
