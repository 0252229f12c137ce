"""Initialization in place: the schemes for models that exist already, in the manner of `torch.nn.init`.

`initialize_` takes a whole model; for one layer of a model of your own make there is a function for every scheme, with
the name of the scheme and an underscore. All work on the function, not on the numbers: a factor ω inside an activation
is divided out, so that what the model computes has the law of the scheme's blueprint.
"""

import inspect
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ..initialization.blueprint import Blueprint, LayerPlan, Role
from ..initialization.distributions import Constant, Law
from ..initialization.moments import Moments, prescribe_moments
from ..initialization.schemes import Scheme, get_scheme
from .network import draw
from .reading import Chain, Model, read_layers

AnyModel = TypeVar("AnyModel", bound=Model)
AnyLinear = TypeVar("AnyLinear", bound=nn.Linear)


def initialize_(
    model: AnyModel,
    moments: Moments | None = None,
    scheme: str = "uniform-phase",
    *,
    generator: torch.Generator | None = None,
    **options: Any,
) -> AnyModel:
    """Draw all weights and biases of a model anew, in place.

    The model keeps its activations, its ω and its biases. Whatever its ω are, the function that it computes has the law
    of the scheme's blueprint; a bias that the blueprint does not have is set to zero.

    **Arguments:**

    - `model`: a module of linear layers of one width with activations between them: `nn.Sequential`, SIREN's code and
        its descendants, a `CoordinateMLP`. For one that cannot be read, a list of `(linear, activation, omega)`.
    - `moments`: those of the signal. Schemes that look at no data need none.
    - `scheme`: a name out of `uniphase.SCHEMES`.
    - `generator`: the randomness. Default: PyTorch's own.
    - `options`: of the scheme. Its `omega` and `hidden_omega` default to those of the model.

    **Returns:**

    The model.

    !!! example
        ```python
        initialize_(model, estimate_moments(field))
        initialize_(model, scheme="sm20", official_output=True)
        ```
    """
    chain = read_layers(model)
    blueprint = _blueprint(chain, moments, get_scheme(scheme), options)
    _require_fit(chain, blueprint)
    for layer, plan in zip(chain.layers, blueprint.layers, strict=True):
        _fill_(layer.weight, layer.bias, plan, layer.omega, generator)
    return model


_DOCUMENTATION = """Draw one linear layer in place as the scheme `{name}` does.

    {summary}

    **Arguments:**

    - `layer`: an `nn.Linear`.
    - `role`: where it stands: `"input"`, `"hidden"` or `"output"`.
    - `moments`: those of the signal, if the scheme looks at data and the layer is the first or the last.
    - `omega`: the factor inside the activation of this layer, or for the last layer inside those before it.
    - `generator`: the randomness. Default: PyTorch's own.
    - `options`: others of the scheme.

    **Returns:**

    The layer.

    !!! example
        ```python
        {function}(torch.nn.Linear(64, 64), omega=30.0)
        ```
    """


def _layer_initializer(name: str):
    scheme = get_scheme(name)

    def initializer_(
        layer: AnyLinear,
        role: Role = "hidden",
        moments: Moments | None = None,
        *,
        omega: float = 1.0,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> AnyLinear:
        plan = _plan(scheme, layer, role, moments, omega, options)
        if (layer.out_features, layer.in_features) != (plan.rows, plan.columns):
            raise ValueError(
                f"layer maps {layer.in_features} to {layer.out_features}, but a layer of the role {role!r} in {name} "
                f"maps {plan.columns} to {plan.rows}; pass role='input', 'hidden' or 'output' as it stands"
            )
        _require_bias(f"layer {layer}", layer.bias, plan, name)
        _fill_(layer.weight, layer.bias, plan, 1.0 if role == "output" else omega, generator)
        return layer

    initializer_.__name__ = initializer_.__qualname__ = f"{scheme.blueprint.__name__}_"
    initializer_.__doc__ = inspect.cleandoc(_DOCUMENTATION).format(
        name=name, function=initializer_.__name__, summary=scheme.summary
    )
    return initializer_


uniform_phase_ = _layer_initializer("uniform-phase")
sm20_ = _layer_initializer("sm20")
cvp26_0_ = _layer_initializer("cvp26-0")
cvp26_1_ = _layer_initializer("cvp26-1")
tanh_pe_ = _layer_initializer("tanh-pe")
relu_ = _layer_initializer("relu")
silu_ = _layer_initializer("silu")
gelu_ = _layer_initializer("gelu")


def _blueprint(chain: Chain, moments: Moments | None, scheme: Scheme, options: dict[str, Any]) -> Blueprint:
    """The blueprint of a scheme for a model's sizes, with the model's ω where the scheme has any."""
    target = (chain.in_size, chain.out_size) if moments is None else moments
    encoded = _probe(scheme).activation == "sincos"  # comes on top of the layers that the depth counts
    known = inspect.signature(scheme.blueprint).parameters
    hidden = [layer.omega for layer in chain.layers if layer.role == "hidden"]
    omegas = {"omega": chain.layers[0].omega, "hidden_omega": hidden[0] if hidden else 1.0}
    defaults = {name: omega for name, omega in omegas.items() if name in known}
    depth = max(0, len(chain.layers) - 2 - encoded)
    return scheme.blueprint(target, width=chain.width, depth=depth, **{**defaults, **options})


def _plan(
    scheme: Scheme, layer: nn.Linear, role: Role, moments: Moments | None, omega: float, options: dict[str, Any]
) -> LayerPlan:
    """The layer of a role in the blueprint of a scheme, for the sizes of a linear layer."""
    rows, columns = layer.weight.shape
    first = _probe(scheme)
    width = rows * first.out_size // first.rows if role == "input" else columns
    target = (columns if role == "input" else 1, rows if role == "output" else 1) if moments is None else moments
    if role == "hidden":  # the same for every signal
        target = prescribe_moments(length_scale=1.0)
    known = inspect.signature(scheme.blueprint).parameters
    name = "omega" if role == "input" else "hidden_omega"
    options = {name: omega, **options} if name in known else options
    plans = scheme.blueprint(target, width=width, depth=1, **options).layers
    return next(plan for plan in reversed(plans) if plan.role == role)


def _probe(scheme: Scheme) -> LayerPlan:
    """The first layer of a scheme, at the smallest size."""
    return scheme.blueprint(prescribe_moments(length_scale=1.0), width=2, depth=0).layers[0]


def _require_fit(chain: Chain, blueprint: Blueprint) -> None:
    """The model has the layers of the blueprint, each with its own tensors."""
    expected = [f"{plan.columns} → {plan.rows}, {plan.activation}" for plan in blueprint.layers]
    found = [f"{layer.weight.shape[1]} → {layer.weight.shape[0]}, {layer.activation}" for layer in chain.layers]
    for layer, ours, theirs in zip(chain.layers, found, expected, strict=False):
        if ours != theirs:
            raise ValueError(
                f"layer {layer.name!r} has {ours}, but {blueprint.scheme} has {theirs} there; "
                "pass a scheme that fits the model, or initialize its layers one by one (uniform_phase_ and so on)"
            )
    if len(found) != len(expected):
        raise ValueError(
            f"the model has {len(found)} layers, but {blueprint.scheme} has at least {len(expected)}; "
            "pass a model with an input and an output layer"
        )
    if len({id(layer.weight) for layer in chain.layers}) < len(chain.layers):
        raise ValueError("two layers of the model share their weights; every layer of a scheme has its own")
    for layer, plan in zip(chain.layers, blueprint.layers, strict=True):
        _require_bias(f"layer {layer.name!r}", layer.bias, plan, blueprint.scheme)


def _require_bias(what: str, bias: Tensor | None, plan: LayerPlan, scheme: str) -> None:
    if bias is None and not _is_zero(plan.bias):
        raise ValueError(f"{what} has no bias, but {scheme} draws it from {plan.bias}; make the layer with bias=True")


def _is_zero(law: Law | None) -> bool:
    return law is None or (isinstance(law, Constant) and not np.any(law.value))


@torch.no_grad()
def _fill_(
    weight: Tensor, bias: Tensor | None, plan: LayerPlan, omega: float, generator: torch.Generator | None
) -> None:
    """Draw a layer's tensors, such that omega · (W x + b) has the law of the plan's."""
    for tensor, law in ((weight, plan.weight), (bias, plan.bias)):
        if tensor is not None:
            sample = draw(law or Constant(0.0), tuple(tensor.shape), tensor.dtype, tensor.device, generator)
            tensor.copy_(sample * (plan.omega / omega))
