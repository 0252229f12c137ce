"""Initialization in place: the schemes for models that exist already, in the manner of `torch.nn.init`.

`initialize_` takes a whole model. For single layers, there is a function for every scheme, with the name of the scheme
and an underscore. A factor ω inside an activation is divided out, so that the function that the model computes has the
distribution of the scheme's blueprint, for any ω.
"""

import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..initialization.blueprint import LayerPlan, Role
from ..initialization.distributions import Constant, Distribution
from ..initialization.layers import plan_layers, require_fit
from ..initialization.moments import Moments
from ..initialization.schemes import Scheme, get_scheme
from .init import draw_layer_
from .network import draw
from .reading import Chain, Model, ReadLayer, Stored, read_layers

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

    The model keeps its activations, its ω, its biases and the maps around it (2x - 1 of the positions, y/2 + 1/2 of the
    outputs). With all of them, the function that it computes has the distribution of the scheme's blueprint; a bias
    that the blueprint does not have is set to zero. Before a final sigmoid or tanh, that holds for the moments with
    which the signal's own come out of it.

    **Arguments:**

    - `model`: a module of linear layers with activations between them: `nn.Sequential`, SIREN's code and its
        descendants, residual blocks of sines, a `CoordinateMLP`. For one that computes in code that cannot be followed,
        `StatedLayers`.
    - `moments`: those of the signal. Schemes that do not depend on the data need none.
    - `scheme`: a name in `uniphase.SCHEMES`.
    - `generator`: the randomness. Default: PyTorch's own.
    - `options`: of the scheme. Its `omega` and `hidden_omega` default to those of the model, and the `output_scale` of
        uniform-phase to 0.05: the model then starts near the mean of the signal, from where it trains better. With
        `output_scale=1.0` its outputs have the covariance of the signal, as in the paper.

    **Returns:**

    The model.

    !!! example
        ```python
        initialize_(model, estimate_moments(field))
        initialize_(model, estimate_moments(field), output_scale=1.0)
        initialize_(model, scheme="sm20", official_output=True)
        ```
    """
    chain, chosen = read_layers(model), get_scheme(scheme)
    draw_layers_(chain, plan_chain(chain, moments, chosen, {**chosen.fit, **options}), generator)
    return model


def plan_chain(
    chain: Chain, moments: Moments | None, scheme: Scheme, options: Mapping[str, Any]
) -> tuple[LayerPlan, ...]:
    """What a scheme has for each layer of a model, after a check that it fits.

    **Arguments:**

    - `chain`: the model, as it was read.
    - `moments`, `scheme`, `options`: as for `initialize_`.
    """
    _require_own_numbers(chain)
    _require_no_sums(chain, scheme)
    layers = [_Total.of(layer) for layer in chain.layers]
    inner = None if moments is None else chain.inner_moments(moments)
    plans = plan_layers(scheme, layers, inner, options, uneven=True)
    require_fit(layers, plans, scheme, one_by_one="uniform_phase_ and so on")
    return plans


def draw_layers_(chain: Chain, plans: Sequence[LayerPlan], generator: torch.Generator | None) -> None:
    """Draw the numbers of all layers of a model in place.

    **Arguments:**

    - `chain`: the model, as it was read.
    - `plans`: a plan for each layer.
    - `generator`: the randomness.
    """
    for layer, plan in zip(chain.layers, plans, strict=True):
        _draw_layer(layer, plan, generator)


@dataclass(frozen=True, eq=False)
class _Total:
    """A layer with all that multiplies its weights as its ω, which a scheme with an ω then takes for its own."""

    name: str
    weight: Tensor
    bias: Tensor | None
    activation: str
    omega: float

    @staticmethod
    def of(layer: ReadLayer) -> "_Total":
        return _Total(layer.name, layer.weight, layer.bias, layer.activation, abs(layer.omega * layer.gain))


_DOCUMENTATION = """Draw one linear layer in place as the scheme `{name}` does.

    {summary}

    **Arguments:**

    - `layer`: an `nn.Linear`.
    - `role`: its place in the model: `"input"`, `"hidden"` or `"output"`. Default: hidden, for a layer that does not
        change the width.
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
        role: Role | None = None,
        moments: Moments | None = None,
        *,
        omega: float = 1.0,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> AnyLinear:
        draws = {"omega": omega, "generator": generator, "options": options}
        weight = layer.weight if isinstance(layer.weight, nn.Parameter) else torch.empty_like(layer.weight)
        draw_layer_(scheme, weight, layer.bias, role, moments, **draws)
        if weight is not layer.weight:  # it is computed, under a weight norm
            stored = read_layers(layer).layers[0].stored
            assert stored is not None
            stored.write_(weight)
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


def _require_own_numbers(chain: Chain) -> None:
    stored = [each for layer in chain.layers for each in (layer.stored, layer.stored_bias) if each is not None]
    for one, other in itertools.combinations(stored, 2):
        if one.overlaps(other):
            raise ValueError(
                f"layers {one.layer_name!r} and {other.layer_name!r} share their numbers, but every layer of a scheme "
                "has its own; give each its own, or initialize the layers one by one (uniform_phase_ and so on)"
            )


def _require_no_sums(chain: Chain, scheme: Scheme) -> None:
    """Only sines of uniform phases are known to be uncorrelated."""
    summing = [layer.name for layer in chain.layers if len(layer.inputs) > 1]
    if summing and scheme.name != "uniform-phase":
        raise ValueError(
            f"layer {summing[0]!r} takes a sum of layers, for which {scheme.name} has no law; pass "
            "scheme='uniform-phase', or initialize the layers one by one (uniform_phase_ and so on)"
        )


def _draw_layer(layer: ReadLayer, plan: LayerPlan, generator: torch.Generator | None) -> None:
    """Draw a layer's numbers, such that its argument ω(W u + b) + shift has the distribution of the plan's."""
    assert layer.stored is not None
    _draw_into(layer.stored, plan.weight, plan.omega / (layer.omega * layer.gain), generator)
    if layer.stored_bias is not None:
        shift = None if layer.shift is None else -layer.shift / layer.omega
        _draw_into(layer.stored_bias, plan.bias, plan.omega / layer.omega, generator, shift)


def _draw_into(
    stored: Stored,
    law: Distribution | None,
    factor: float,
    generator: torch.Generator | None,
    shift: Tensor | None = None,
) -> None:
    tensor = stored.tensor
    sample = factor * draw(law or Constant(0.0), tuple(stored.index.shape), tensor.dtype, tensor.device, generator)
    stored.write_(sample if shift is None else sample + shift.to(sample))
