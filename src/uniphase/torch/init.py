"""Initialization of single tensors in place, in the manner of `torch.nn.init`, for models that are built by hand.

There is a function for every scheme, with the name of the scheme and an underscore. It draws the weights and the bias
of one layer, activation(omega · (W x + b)), as the scheme's blueprint does; for whole models there is `initialize_`,
and for `nn.Linear` there are functions of the same names in `uniphase.torch`.

!!! example
    ```python
    moments = estimate_moments(field)
    weights = [torch.empty(64, 2), torch.empty(64, 64), torch.empty(1, 64)]
    biases = [torch.empty(64), torch.empty(64), torch.empty(1)]
    for weight, bias, role in zip(weights, biases, ("input", "hidden", "output")):
        init.uniform_phase_(weight, bias, role, moments)
    ```
"""

import inspect
from typing import Any

import torch
from torch import Tensor

from ..initialization.blueprint import Role
from ..initialization.distributions import Constant
from ..initialization.layers import plan_layer, require_bias
from ..initialization.moments import Moments
from ..initialization.schemes import Scheme, get_scheme
from .network import fill_

_DOCUMENTATION = """Draw the weights and the bias of one layer in place as the scheme `{name}` does.

    {summary}

    **Arguments:**

    - `weight`: of shape `(rows, columns)`, as in `nn.Linear`. For a matrix of shape `(columns, rows)` pass its view
        `matrix.T`.
    - `bias`: of shape `(rows,)`, or `None`. A bias that the scheme does not have is set to zero.
    - `role`: the place of the layer in the model: `"input"`, `"hidden"` or `"output"`. Default: hidden, for a layer
        that does not change the width.
    - `moments`: those of the signal, if the scheme depends on the data and the layer is the first or the last.
    - `omega`: the factor inside the activation of this layer, or for the last layer inside those before it.
    - `generator`: the randomness. Default: PyTorch's own.
    - `options`: other arguments of the scheme.

    **Returns:**

    The weights.

    !!! example
        ```python
        init.{function}(torch.empty(64, 64), torch.empty(64), omega=30.0)
        ```
    """


def _tensor_initializer(name: str):
    scheme = get_scheme(name)

    def initializer_(
        weight: Tensor,
        bias: Tensor | None = None,
        role: Role | None = None,
        moments: Moments | None = None,
        *,
        omega: float = 1.0,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> Tensor:
        draw_layer_(scheme, weight, bias, role, moments, omega=omega, generator=generator, options=options)
        return weight

    initializer_.__name__ = initializer_.__qualname__ = f"{scheme.blueprint.__name__}_"
    initializer_.__doc__ = inspect.cleandoc(_DOCUMENTATION).format(
        name=name, function=initializer_.__name__, summary=scheme.summary
    )
    return initializer_


def draw_layer_(
    scheme: Scheme,
    weight: Tensor,
    bias: Tensor | None,
    role: Role | None,
    moments: Moments | None,
    *,
    omega: float,
    generator: torch.Generator | None,
    options: dict[str, Any],
) -> None:
    """Draw the weights and the bias of one layer in place. The arguments are those of the functions of this module."""
    _require_shapes(weight, bias)
    shape = weight.shape[0], weight.shape[1]
    place: Role = role or "hidden"
    plan = plan_layer(scheme, place, shape, moments, omega=omega, options=options, uneven=role is not None)
    if shape != (plan.rows, plan.columns):
        raise ValueError(
            f"weight has the shape {shape}, but in {scheme.name} a layer of the role {place!r} has "
            f"{(plan.rows, plan.columns)}; pass role='input', 'hidden' or 'output' as in the model"
        )
    require_bias("the layer", bias, plan, scheme)
    factor = plan.omega if place == "output" else plan.omega / omega
    fill_(weight, plan.weight, factor=factor, generator=generator)
    if bias is not None:
        fill_(bias, plan.bias or Constant(0.0), factor=factor, generator=generator)


def _require_shapes(weight: Tensor, bias: Tensor | None) -> None:
    if weight.ndim != 2:
        raise ValueError(f"weight has the shape {tuple(weight.shape)}; pass a matrix (rows, columns)")
    if bias is not None and tuple(bias.shape) != (len(weight),):
        raise ValueError(
            f"bias has the shape {tuple(bias.shape)}, but weight has {len(weight)} rows; pass a bias for each row, or "
            "the transposed view of a matrix (columns, rows)"
        )


uniform_phase_ = _tensor_initializer("uniform-phase")
siren_ = _tensor_initializer("siren")
sm20_ = _tensor_initializer("sm20")
cvp26_0_ = _tensor_initializer("cvp26-0")
cvp26_1_ = _tensor_initializer("cvp26-1")
tanh_pe_ = _tensor_initializer("tanh-pe")
relu_ = _tensor_initializer("relu")
silu_ = _tensor_initializer("silu")
gelu_ = _tensor_initializer("gelu")
