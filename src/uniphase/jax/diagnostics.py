"""Diagnostics: what a network does at initialization, or at any other time.

Activations are the outputs of layers. They are numbered from the coordinates, 0, through the output of the input layer,
1, to the channels at the end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..diagnosis.chain import read_chain
from ..diagnosis.examination import examine, in_units, require_same_function
from ..diagnosis.report import Report
from ..initialization.moments import Moments, combine_statistics, estimate_moments
from ..initialization.schemes import get_scheme
from ..signals.fields import Field
from .initialization import plan_chain, require_parameters
from .network import CoordinateMLP, in_columns, require_coordinates
from .reading import Chain, Parameters, as_function, read_layers

# Positions whose Jacobians are held in memory at once.
_BLOCK = 256


def layer_outputs(network: CoordinateMLP, x: Float[Array, "*batch in_size"]) -> list[Float[Array, "*batch _"]]:
    """The positions themselves and the output of every layer.

    **Arguments:**

    - `network`, `x`: a network, and one position or a row for each.

    !!! example
        ```python
        h = layer_outputs(network, jnp.zeros(2))
        h[-1]  # the channels: network(jnp.zeros(2))
        ```
    """
    require_coordinates(network, x)
    outputs = [x]
    for layer in network.layers:
        outputs.append(in_columns(layer, outputs[-1]))
    return outputs


def jacobian(
    network: CoordinateMLP, x: Float[Array, " in_size"], start: int = 0, stop: int | None = None
) -> Float[Array, "rows columns"]:
    """The derivative of activation `stop` by activation `start`, at the position `x`.

    **Arguments:**

    - `network`, `x`: a network and one position.
    - `start`, `stop`: numbers of activations, `0 <= start <= stop <= len(network.layers)`. By default from the
        coordinates to the channels.

    !!! example
        ```python
        jacobian(network, x, 1, 5)  # through four hidden layers
        ```
    """
    require_coordinates(network, x)
    if x.ndim != 1:
        raise ValueError(f"x has the shape {x.shape}, but jacobian takes one position; call it under jax.vmap for more")
    stop = len(network.layers) if stop is None else stop
    if not 0 <= start <= stop <= len(network.layers):
        raise ValueError(
            f"start is {start} and stop is {stop}; activations are numbered 0 to {len(network.layers)}, and start "
            "must not be after stop"
        )

    def between(h):
        for layer in network.layers[start:stop]:
            h = layer(h)
        return h

    return jax.jacfwd(between)(layer_outputs(network, x)[start])


@eqx.filter_jit
def jacobian_spectra(
    network: CoordinateMLP, positions: Float[Array, "*batch in_size"], start: int = 0, stop: int | None = None
) -> Float[Array, "*batch rank"]:
    """The singular values of `jacobian` at each position, from the largest to the smallest.

    **Arguments:**

    - `network`, `start`, `stop`: as for `jacobian`.
    - `positions`: a row for each.

    !!! example
        ```python
        mean_spectrum = jacobian_spectra(network, positions, 1, 5).mean(axis=0)
        ```
    """
    spectra = jax.lax.map(
        lambda x: jnp.linalg.svd(jacobian(network, x, start, stop), compute_uv=False),
        _rows(network, positions),
        batch_size=_BLOCK,
    )
    return spectra.reshape(*positions.shape[:-1], -1)


def _rows(network: CoordinateMLP, positions: Float[Array, "*batch in_size"]) -> Float[Array, "samples in_size"]:
    require_coordinates(network, positions)
    return positions.reshape(-1, positions.shape[-1])


class PhaseStatistics(NamedTuple):
    """How the preactivations z of a sine layer are distributed, over all of its neurons and positions.

    - `layer`: the number of the activation that they lead to.
    - `mean`, `std`: of z, unwrapped.
    - `resultant`, `second_resultant`: |mean of exp(iz)| and |mean of exp(2iz)|: 0 for phases uniform around the circle,
        1 for phases all equal.
    - `squared_slope`: the mean of cos² z, which is 1/2 for uniform phases.
    """

    layer: int
    mean: float
    std: float
    resultant: float
    second_resultant: float
    squared_slope: float


def phase_statistics(network: CoordinateMLP, positions: Float[Array, "*batch in_size"]) -> list[PhaseStatistics]:
    """The statistics of the phases of every sine layer.

    **Arguments:**

    - `network`: layers without sines are left out.
    - `positions`: a row for each.

    !!! example
        ```python
        for row in phase_statistics(network, positions):
            print(row)
        ```
    """
    sines = [number for number, layer in enumerate(network.layers, start=1) if layer.activation == "sine"]
    rows = _phase_sums(network, _rows(network, positions))
    return [PhaseStatistics(number, *map(float, row)) for number, row in zip(sines, rows, strict=True)]


@eqx.filter_jit
def _phase_sums(network: CoordinateMLP, positions: Array) -> list[list[Array]]:
    def preactivations(x):
        outputs = layer_outputs(network, x)
        return [layer.preactivation(h) for layer, h in zip(network.layers, outputs[:-1], strict=True)]

    rows = []
    for layer, z in zip(network.layers, jax.vmap(preactivations)(positions), strict=True):
        if layer.activation == "sine":
            resultants = [jnp.hypot(jnp.cos(n * z).mean(), jnp.sin(n * z).mean()) for n in (1, 2)]
            rows.append([z.mean(), z.std(), *resultants, jnp.square(jnp.cos(z)).mean()])
    return rows


def network_moments(
    network: CoordinateMLP, positions: Float[Array, "*batch in_size"], *, epsilon: float | None = None
) -> Moments:
    """The moments of a network over some positions, as `estimate_moments` for a field, with exact derivatives.

    **Arguments:**

    - `network`: whose moments.
    - `positions`: a row for each.
    - `epsilon`: the ridge, as for `estimate_moments`.

    !!! example
        ```python
        network_moments(network, positions).structure_tensor  # against estimate_moments(field).structure_tensor
        ```
    """
    values, products = _values_and_products(network, _rows(network, positions))
    values = np.asarray(values, dtype=np.float64)
    covariance = np.atleast_2d(np.cov(values.T, ddof=1))
    return combine_statistics(values.mean(axis=0), covariance, np.asarray(products, np.float64), epsilon=epsilon)


@eqx.filter_jit
def _values_and_products(network: CoordinateMLP, positions: Array) -> tuple[Array, Array]:
    def at(x):
        slopes = jax.jacfwd(network)(x)
        return network(x), jnp.einsum("ka,lb->kalb", slopes, slopes)

    values, products = jax.lax.map(at, positions, batch_size=_BLOCK)
    return values, products.mean(axis=0)


def diagnose(
    model: Any,
    field: Field,
    moments: Moments | None = None,
    *,
    layers: Mapping[str, Sequence[Any]] | None = None,
    seed: int = 0,
) -> Report:
    """Examine a network before it is trained: what is right and wrong with it for a signal, in numbers and in words.

    **Arguments:**

    - `model`: maps one position to the channels there: a `CoordinateMLP`, a module or function of any JAX library that
        consists of linear layers and activations, or a pair `(apply, params)`; see `initialize`. With `layers`, any
        function.
    - `field`: the signal that it is meant for.
    - `moments`: of the signal. Default: estimated from the field.
    - `layers`: for models that cannot be read, `(weight, bias, activation, omega)` for each layer by name, in the order
        in which the model applies activation(omega · (W x + b)). The activation is "sine", "sincos", "tanh", "relu",
        "silu", "gelu" or "linear"; a bias may be `None`.
    - `seed`: of the samples that are measured and of the networks that it is compared with.

    **Returns:**

    A `Report`, which prints as a table and a list of verdicts, with a call that fixes what was found.

    !!! example
        ```python
        siren = CoordinateMLP(sm20((2, 1), width=64, depth=2, omega=30.0), key=jax.random.key(0))
        print(diagnose(siren, field))

        w, b, v = np.ones((64, 2)), np.linspace(-3, 3, 64), np.full((1, 64), 0.1)
        one_layer = lambda x: v @ jnp.sin(30 * (w @ x + b))
        print(diagnose(one_layer, field, layers={"inner": (w, b, "sine", 30.0), "outer": (v, None, "linear", 1.0)}))
        ```
    """
    given = estimate_moments(field) if moments is None else moments
    if layers is not None:
        stated = read_chain(layers)
        require_same_function(stated, field, as_function(model))
        return examine(stated, field, given, seed=seed)
    chain = read_layers(model, field.in_size)
    fix, outer = _fix(model, chain, given), chain.outer
    if not outer.is_identity:  # what stands behind the last activation is a choice of units for the values
        field, given = in_units(field, given, outer.scale, outer.shift)
    return examine(chain.readings(), field, given, fix=fix, seed=seed)


def _fix(model: Any, chain: Chain, moments: Moments) -> str | None:
    """The call that initializes a user's model, if it fits; otherwise the fix is a new CoordinateMLP."""
    scheme = get_scheme("uniform-phase")
    try:
        plan_chain(chain, moments, scheme, **scheme.fit)
        require_parameters(chain, Parameters(model))
    except ValueError:
        return None
    if isinstance(model, tuple):
        return "params = uniphase.initialize((apply, params), moments, key=key)"
    return "model = uniphase.initialize(model, moments, key=key)"
