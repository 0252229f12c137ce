"""Initialization in place: the schemes for models that exist already, in the manner of `torch.nn.init`.

`initialize_` takes a whole model. For single layers, there is a function for every scheme, with the name of the scheme
and an underscore. A factor ω inside an activation is divided out, so that the function that the model computes has the
distribution of the scheme's blueprint, for any ω.
"""

import inspect
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..initialization.blueprint import LayerPlan, Role
from ..initialization.distributions import Constant
from ..initialization.layers import plan_layer, plan_layers, require_bias, require_fit
from ..initialization.moments import Moments
from ..initialization.schemes import get_scheme
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
    """Draw all weights and biases of a model again, in place.

    The model keeps its activations, its ω and its biases. For any ω, the function that it computes has the
    distribution of the scheme's blueprint; a bias that the blueprint does not have is set to zero.

    **Arguments:**

    - `model`: a module of linear layers of one width with activations between them: `nn.Sequential`, SIREN's code and
        its descendants, a `CoordinateMLP`. For one that cannot be read, a list of `(linear, activation, omega)`.
    - `moments`: those of the signal. Schemes that do not depend on the data need none.
    - `scheme`: a name in `uniphase.SCHEMES`.
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
    chain, entry = read_layers(model), get_scheme(scheme)
    plans = plan_layers(entry, chain.layers, moments, options)
    require_fit(chain.layers, plans, entry, one_by_one="uniform_phase_ and so on")
    _require_own_weights(chain)
    for layer, plan in zip(chain.layers, plans, strict=True):
        _fill_(layer.weight, layer.bias, plan, layer.omega, generator)
    return model


_DOCUMENTATION = """Draw one linear layer in place as the scheme `{name}` does.

    {summary}

    **Arguments:**

    - `layer`: an `nn.Linear`.
    - `role`: its place in the model: `"input"`, `"hidden"` or `"output"`.
    - `moments`: those of the signal, if the scheme depends on the data and the layer is the first or the last.
    - `omega`: the factor inside the activation of this layer, or for the last layer inside those before it.
    - `generator`: the randomness. Default: PyTorch's own.
    - `options`: other arguments of the scheme.

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
        shape = layer.out_features, layer.in_features
        plan = plan_layer(scheme, role, shape, moments, omega=omega, options=options)
        if shape != (plan.rows, plan.columns):
            raise ValueError(
                f"layer maps {layer.in_features} to {layer.out_features}, but a layer of the role {role!r} in {name} "
                f"maps {plan.columns} to {plan.rows}; pass role='input', 'hidden' or 'output' as in the model"
            )
        require_bias(f"layer {layer}", layer.bias, plan, scheme)
        _fill_(layer.weight, layer.bias, plan, 1.0 if role == "output" else omega, generator)
        return layer

    initializer_.__name__ = initializer_.__qualname__ = f"{scheme.blueprint.__name__}_"
    initializer_.__doc__ = inspect.cleandoc(_DOCUMENTATION).format(
        name=name, function=initializer_.__name__, summary=scheme.summary
    )
    return initializer_


uniform_phase_ = _layer_initializer("uniform-phase")
siren_ = _layer_initializer("siren")
sm20_ = _layer_initializer("sm20")
cvp26_0_ = _layer_initializer("cvp26-0")
cvp26_1_ = _layer_initializer("cvp26-1")
tanh_pe_ = _layer_initializer("tanh-pe")
relu_ = _layer_initializer("relu")
silu_ = _layer_initializer("silu")
gelu_ = _layer_initializer("gelu")


def _require_own_weights(chain: Chain) -> None:
    if len({id(layer.weight) for layer in chain.layers}) < len(chain.layers):
        raise ValueError("two layers of the model share their weights; every layer of a scheme has its own")


@torch.no_grad()
def _fill_(
    weight: Tensor, bias: Tensor | None, plan: LayerPlan, omega: float, generator: torch.Generator | None
) -> None:
    """Draw a layer's tensors, such that omega · (W x + b) has the distribution of the plan."""
    for tensor, law in ((weight, plan.weight), (bias, plan.bias)):
        if tensor is not None:
            sample = draw(law or Constant(0.0), tuple(tensor.shape), tensor.dtype, tensor.device, generator)
            tensor.copy_(sample * (plan.omega / omega))
