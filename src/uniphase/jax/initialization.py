"""Initialization of a whole Equinox model that exists already."""

from typing import Any

import jax
from jaxtyping import Array, PRNGKeyArray

from ..initialization.blueprint import LayerPlan
from ..initialization.distributions import Constant
from ..initialization.layers import plan_layers, require_fit
from ..initialization.moments import Moments
from ..initialization.schemes import Scheme, get_scheme
from .network import draw
from .reading import AnyModel, ReadLayer, read_layers, replace_arrays, require_whole


def initialize(
    model: AnyModel,
    moments: Moments | None = None,
    scheme: str = "uniform-phase",
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> AnyModel:
    """A copy of an Equinox model with all weights and biases drawn anew.

    The model keeps its activations and its ω. For any ω, the function that it computes has the law of the scheme's
    blueprint; a bias that the blueprint does not have is set to zero. Layers may have different widths if the
    scheme is uniform-phase, and must have one width otherwise.

    **Arguments:**

    - `model`: a `CoordinateMLP`, an `eqx.nn.MLP`, or an `eqx.nn.Sequential` of linear layers and functions.
    - `moments`: those of the signal. Schemes that use no data need none.
    - `scheme`: a name in `uniphase.SCHEMES`.
    - `key`: the randomness.
    - `options`: of the scheme. Its `omega` and `hidden_omega` default to those of the model, and the `output_scale` of
        uniform-phase to 0.05: the model then starts near the mean of the signal, from where it trains better. With
        `output_scale=1.0` its outputs have the covariance of the signal, as in the paper.

    **Returns:**

    The new model. It can be called under `jit`, and under `vmap` over keys for an ensemble of networks. For models of
    Flax and Haiku, and for single layers of your own model, see `uniphase.initializers`.

    !!! example
        ```python
        import equinox as eqx

        siren = eqx.nn.MLP(2, 1, 64, 3, activation=lambda z: jnp.sin(30.0 * z), key=jax.random.key(0))
        siren = initialize(siren, estimate_moments(field), key=jax.random.key(1))
        ```
    """
    layers, chosen = read_layers(model), get_scheme(scheme)
    plans = fitting_plans(layers, moments, chosen, **{**chosen.fit, **options})
    require_whole(model, layers)
    keys = jax.random.split(key, len(layers))
    return replace_arrays(model, [_draw_layer(*each) for each in zip(layers, plans, keys, strict=True)])


def fitting_plans(
    layers: list[ReadLayer], moments: Moments | None, scheme: Scheme, **options: Any
) -> tuple[LayerPlan, ...]:
    """A scheme's plans for the layers of a model, or a `ValueError` that says what does not fit."""
    plans = plan_layers(scheme, layers, moments, options, uneven=True)
    require_fit(layers, plans, scheme, one_by_one="uniphase.initializers")
    return plans


def _draw_layer(layer: ReadLayer, plan: LayerPlan, key: PRNGKeyArray) -> tuple[Array, Array | None]:
    """Arrays such that omega · (W x + b) has the law of the plan's, with the keys that `CoordinateMLP` uses."""
    weight_key, bias_key = jax.random.split(key)
    scale = plan.omega / layer.omega
    weight = draw(plan.weight, layer.weight.shape, layer.weight.dtype, weight_key) * scale
    if layer.bias is None:
        return weight, None
    return weight, draw(plan.bias or Constant(0.0), layer.bias.shape, layer.bias.dtype, bias_key) * scale
