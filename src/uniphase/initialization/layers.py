"""The layers of an existing model, and the laws that a scheme has for them.

A scheme describes a whole network of one width. To initialize a model that exists already, or one layer of it, its
sizes must be turned into those of a blueprint, and its layers compared with the blueprint's. Both frameworks share this
part. Each divides out the factor ω inside an activation: where a plan has `plan.omega` and the model has `omega`,
samples are multiplied by `plan.omega / omega`.
"""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .blueprint import LayerPlan, Role
from .distributions import Constant
from .moments import Moments, prescribe_moments
from .schemes import Scheme

# Hidden layers N → M with M ≠ N: only here does the network as a whole keep its moments.
_ANY_WIDTHS = ("uniform-phase",)


@runtime_checkable
class FoundLayer(Protocol):
    """A layer of a model, activation(omega · (W x + b)), with the arrays of its framework."""

    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> Any: ...  # (rows, columns)
    @property
    def bias(self) -> Any: ...  # (rows,), or None
    @property
    def activation(self) -> str: ...
    @property
    def omega(self) -> float: ...


def plan_layer(
    scheme: Scheme,
    role: Role,
    shape: tuple[int, int],
    moments: Moments | None = None,
    *,
    omega: float = 1.0,
    options: Mapping[str, Any] | None = None,
    uneven: bool = False,
) -> LayerPlan:
    """The layer of a role in a scheme's blueprint, for the sizes of one linear layer.

    Where the scheme or the moments require other sizes, the plan has those: the caller compares them.

    **Arguments:**

    - `scheme`, `role`: which layer of which scheme.
    - `shape`: `(rows, columns)` of the weights.
    - `moments`: those of the signal, if the scheme uses them for this role.
    - `omega`: the factor inside the activation of this layer, or for an output layer inside those before it.
    - `options`: other arguments of the scheme.
    - `uneven`: whether a hidden layer may change the width, if the scheme is exact then too.

    !!! example
        ```python
        plan_layer(get_scheme("sm20"), "hidden", (64, 64), omega=30.0).weight  # U(±√(6/64)/30)
        ```
    """
    rows, columns = shape
    first = _first_plan(scheme)
    width = rows * first.out_size // first.rows if role == "input" else columns
    target = (columns if role == "input" else 1, rows if role == "output" else 1) if moments is None else moments
    if role == "hidden":  # the same for every signal
        target = prescribe_moments(length_scale=1.0)
    known = inspect.signature(scheme.blueprint).parameters
    name = "hidden_omega" if role != "input" and "hidden_omega" in known else "omega"
    given = {name: omega} if name in known else {}
    plans = scheme.blueprint(target, width=width, depth=1, **{**given, **(options or {})}).layers
    plan = next(plan for plan in reversed(plans) if plan.role == role)
    may_widen = uneven and role == "hidden" and scheme.name in _ANY_WIDTHS
    return dataclasses.replace(plan, rows=rows) if may_widen else plan


def plan_layers(
    scheme: Scheme,
    layers: Sequence[FoundLayer],
    moments: Moments | None,
    options: Mapping[str, Any],
    *,
    uneven: bool = False,
) -> tuple[LayerPlan, ...]:
    """The layers of a scheme's blueprint for the sizes of a model, with the model's ω where the scheme has any.

    **Arguments:**

    - `scheme`, `moments`, `options`, `uneven`: as for `plan_layer`. `omega` and `hidden_omega` override the model's.
    - `layers`: the model, from the coordinates to the channels.
    """
    target = (layers[0].weight.shape[1], layers[-1].weight.shape[0]) if moments is None else moments
    encoded = _first_plan(scheme).activation == "sincos"  # comes on top of the layers that the depth counts
    known = inspect.signature(scheme.blueprint).parameters
    omegas = {"omega": layers[0].omega, "hidden_omega": layers[1].omega if len(layers) > 2 else 1.0}
    given = {name: omega for name, omega in omegas.items() if name in known}
    width, depth = layers[-1].weight.shape[1], max(0, len(layers) - 2 - encoded)
    plans = scheme.blueprint(target, width=width, depth=depth, **{**given, **options}).layers
    if not uneven or scheme.name not in _ANY_WIDTHS or len(plans) != len(layers):
        return plans
    return tuple(
        plan_layer(scheme, plan.role, layer.weight.shape, moments, options=options, uneven=True)
        for layer, plan in zip(layers, plans, strict=True)
    )


def require_fit(layers: Sequence[FoundLayer], plans: Sequence[LayerPlan], scheme: Scheme, *, one_by_one: str) -> None:
    """Check that a model has the layers of a plan, and biases where the scheme draws any.

    **Arguments:**

    - `layers`, `plans`, `scheme`: as for `plan_layers`.
    - `one_by_one`: the functions that initialize single layers, for the message.
    """
    expected = [f"{plan.columns} → {plan.rows}, {plan.activation}" for plan in plans]
    found = [f"{layer.weight.shape[1]} → {layer.weight.shape[0]}, {layer.activation}" for layer in layers]
    for layer, ours, theirs in zip(layers, found, expected, strict=False):
        if ours != theirs:
            raise ValueError(
                f"layer {layer.name!r} has {ours}, but {scheme.name} has {theirs} there; "
                f"pass a scheme that fits the model, or initialize its layers one by one ({one_by_one})"
            )
    if len(found) != len(expected):
        raise ValueError(
            f"the model has {len(found)} layers, but {scheme.name} has at least {len(expected)}; "
            "pass a model with an input and an output layer"
        )
    for layer, plan in zip(layers, plans, strict=True):
        require_bias(f"layer {layer.name!r}", layer.bias, plan, scheme)


def require_bias(what: str, bias: Any, plan: LayerPlan, scheme: Scheme) -> None:
    """Check that a layer has a bias if the plan has one that is not zero."""
    zero = plan.bias is None or (isinstance(plan.bias, Constant) and not np.any(plan.bias.value))
    if bias is None and not zero:
        raise ValueError(f"{what} has no bias, but {scheme.name} draws it from {plan.bias}; make the layer with a bias")


def _first_plan(scheme: Scheme) -> LayerPlan:
    """The first layer of a scheme, at the smallest size."""
    return scheme.blueprint(prescribe_moments(length_scale=1.0), width=2, depth=0).layers[0]
