"""Initialization of a whole model that exists already, of any JAX library."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

from ..initialization.blueprint import LayerPlan
from ..initialization.distributions import Constant, Distribution
from ..initialization.layers import plan_layers, require_fit
from ..initialization.moments import Moments
from ..initialization.schemes import Scheme, get_scheme
from .network import draw
from .reading import AnyModel, Chain, Parameters, ReadLayer, Stored, read_layers, replace_arrays


@overload
def initialize(
    model: tuple[Callable[..., Any], PyTree],
    moments: Moments | None = None,
    scheme: str = "uniform-phase",
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> PyTree: ...
@overload
def initialize(
    model: AnyModel,
    moments: Moments | None = None,
    scheme: str = "uniform-phase",
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> AnyModel: ...
def initialize(
    model: Any,
    moments: Moments | None = None,
    scheme: str = "uniform-phase",
    *,
    key: PRNGKeyArray,
    **options: Any,
) -> Any:
    """A copy of a model, or of its parameters, with all weights and biases drawn anew.

    The model keeps its activations, its ω and the maps around it (2x - 1 of the positions, y/2 + 1/2 of the outputs).
    With all of them, the function that it computes has the law of the scheme's blueprint; a bias that the blueprint
    does not have is set to zero. Before a final sigmoid or tanh, that holds for the moments with which the signal's own
    come out of it. Layers may have different widths if the scheme is uniform-phase, and must have one width otherwise.

    **Arguments:**

    - `model`: linear layers with activations between them, in any JAX library: a module of Equinox, Flax nnx or your
        own that maps one position to the channels there; or a pair `(apply, params)` for which
        `apply(params, position)` does, as in Flax linen and Haiku.
    - `moments`: those of the signal. Schemes that use no data need none.
    - `scheme`: a name in `uniphase.SCHEMES`.
    - `key`: the randomness.
    - `options`: of the scheme. Its `omega` and `hidden_omega` default to those of the model, and the `output_scale` of
        uniform-phase to 0.05: the model then starts near the mean of the signal, from where it trains better. With
        `output_scale=1.0` its outputs have the covariance of the signal, as in the paper.

    **Returns:**

    The new model, or of a pair the new `params`. It can be called under `jit`, and under `vmap` over keys for an
    ensemble of networks. For single layers of your own model, see `uniphase.initializers`.

    !!! example
        ```python
        import equinox as eqx

        siren = eqx.nn.MLP(2, 1, 64, 3, activation=lambda z: jnp.sin(30.0 * z), key=jax.random.key(0))
        siren = initialize(siren, estimate_moments(field), key=jax.random.key(1))

        def apply(params, x):
            for w, b in params[:-1]:
                x = jnp.sin(30.0 * (w @ x + b))
            return params[-1][0] @ x + params[-1][1]

        params = [(jnp.zeros((64, 2)), jnp.zeros(64)), (jnp.zeros((1, 64)), jnp.zeros(1))]
        params = initialize((apply, params), estimate_moments(field), key=jax.random.key(1))
        ```
    """
    chain, chosen = read_layers(model, None if moments is None else moments.in_size), get_scheme(scheme)
    plans = plan_chain(chain, moments, chosen, **{**chosen.fit, **options})
    parameters = Parameters(model)
    require_parameters(chain, parameters)
    drawn = dict(parameters.arrays)
    for layer, plan, layer_key in zip(chain.layers, plans, jax.random.split(key, len(plans)), strict=True):
        for stored, numbers in _draw_layer(layer, plan, layer_key):
            drawn[stored.name] = stored.restore(numbers, jnp.asarray(drawn[stored.name]))
    return replace_arrays(parameters.tree, drawn)


def plan_chain(chain: Chain, moments: Moments | None, scheme: Scheme, **options: Any) -> tuple[LayerPlan, ...]:
    """A scheme's plans for the layers of a model, or a `ValueError` that says what does not fit."""
    layers = [_Total.of(layer) for layer in chain.layers]
    inner = None if moments is None else _inner_moments(chain, moments)
    plans = plan_layers(scheme, layers, inner, options, uneven=True)
    require_fit(layers, plans, scheme, one_by_one="uniphase.initializers")
    return plans


def _inner_moments(chain: Chain, moments: Moments) -> Moments:
    """Moments of other sizes are left as they are: the plans then do not fit, layer by layer."""
    sizes = (chain.in_size, chain.out_size)
    return chain.inner_moments(moments) if (moments.in_size, moments.out_size) == sizes else moments


@dataclass(frozen=True, eq=False)
class _Total:
    """A layer with all that multiplies its weights as its ω, which a scheme with an ω then takes for its own."""

    name: str
    weight: Any
    bias: Any
    activation: str
    omega: float

    @staticmethod
    def of(layer: ReadLayer) -> "_Total":
        return _Total(layer.name, layer.weight, layer.bias, layer.activation, abs(layer.omega * layer.gain))


def require_parameters(chain: Chain, parameters: Parameters) -> None:
    """Check that every layer has numbers of its own, in the tree."""
    stored = [each for layer in chain.layers for each in (layer.stored, layer.stored_bias) if each is not None]
    for each in stored:
        if each.name not in parameters.arrays:
            raise ValueError(
                f"{parameters.kind} has weights that are not in its tree ({each.name}), so that they cannot be "
                "replaced; pass a pair (apply, params) with all of them in params"
            )
    for one, other in itertools.combinations(stored, 2):
        if one.overlaps(other):
            raise ValueError(
                f"two layers share the numbers of {one.name!r}, but every layer of a scheme has its own; give each its "
                "own, or initialize the layers one by one (uniphase.initializers)"
            )


def _draw_layer(layer: ReadLayer, plan: LayerPlan, key: PRNGKeyArray) -> list[tuple[Stored, Array]]:
    """Numbers such that omega · (gain W u + b) + shift has the law of the plan's, by the keys of a `CoordinateMLP`."""
    weight_key, bias_key = jax.random.split(key)
    drawn = [(layer.stored, _sample(plan.weight, layer.weight, plan.omega / (layer.omega * layer.gain), weight_key))]
    if layer.stored_bias is not None:
        law = plan.bias or Constant(0.0)
        numbers = _sample(law, layer.bias, plan.omega / layer.omega, bias_key)
        shift = np.zeros(1) if layer.shift is None else layer.shift / layer.omega
        drawn.append((layer.stored_bias, numbers - jnp.asarray(shift, numbers.dtype) if shift.any() else numbers))
    return drawn


def _sample(law: Distribution, like: Any, factor: float, key: PRNGKeyArray) -> Array:
    return draw(law, like.shape, like.dtype, key) * factor
