"""Diagnostics: what a network does at initialization, or at any other time.

Activations are numbered from the coordinates, 0, through the output of the input layer, 1, to the channels at the end.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .moments import EPSILON, Moments, combine_statistics
from .networks import CoordinateMLP

# Positions whose Jacobians are held in memory at once.
_BLOCK = 256


def activations(network: CoordinateMLP, x: Float[Array, " in_size"]) -> list[Float[Array, " _"]]:
    """The position itself and the output of every layer.

    !!! example
        ```python
        h = activations(network, jnp.zeros(2))
        h[-1]  # the channels: network(jnp.zeros(2))
        ```
    """
    outputs = [x]
    for layer in network.layers:
        outputs.append(layer(outputs[-1]))
    return outputs


def jacobian(
    network: CoordinateMLP, x: Float[Array, " in_size"], start: int = 0, stop: int | None = None
) -> Float[Array, "rows columns"]:
    """The derivative of activation `stop` by activation `start`, at the position `x`.

    **Arguments:**

    - `network`, `x`: where to look.
    - `start`, `stop`: numbers of activations, `0 <= start <= stop <= len(network.layers)`. By default from the
        coordinates to the channels.

    !!! example
        ```python
        jacobian(network, x, 1, 5)  # through four hidden layers
        ```
    """
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

    return jax.jacfwd(between)(activations(network, x)[start])


@eqx.filter_jit
def jacobian_spectra(
    network: CoordinateMLP, positions: Float[Array, "samples in_size"], start: int = 0, stop: int | None = None
) -> Float[Array, "samples rank"]:
    """The singular values of `jacobian` at each position, from the largest to the smallest.

    !!! example
        ```python
        mean_spectrum = jacobian_spectra(network, positions, 1, 5).mean(axis=0)
        ```
    """
    return jax.lax.map(
        lambda x: jnp.linalg.svd(jacobian(network, x, start, stop), compute_uv=False), positions, batch_size=_BLOCK
    )


class PhaseStatistics(NamedTuple):
    """How the preactivations z of a sine layer lie, over all of its neurons and positions.

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


def phase_statistics(network: CoordinateMLP, positions: Float[Array, "samples in_size"]) -> list[PhaseStatistics]:
    """The wrapped-phase statistics of every sine layer.

    !!! example
        ```python
        for row in phase_statistics(network, positions):
            print(row)
        ```
    """
    sines = [number for number, layer in enumerate(network.layers, start=1) if layer.activation == "sine"]
    rows = _phase_sums(network, positions)
    return [PhaseStatistics(number, *map(float, row)) for number, row in zip(sines, rows, strict=True)]


@eqx.filter_jit
def _phase_sums(network: CoordinateMLP, positions: Array) -> list[list[Array]]:
    def preactivations(x):
        outputs = activations(network, x)
        return [layer.preactivation(h) for layer, h in zip(network.layers, outputs[:-1], strict=True)]

    rows = []
    for layer, z in zip(network.layers, jax.vmap(preactivations)(positions), strict=True):
        if layer.activation == "sine":
            resultants = [jnp.hypot(jnp.cos(n * z).mean(), jnp.sin(n * z).mean()) for n in (1, 2)]
            rows.append([z.mean(), z.std(), *resultants, jnp.square(jnp.cos(z)).mean()])
    return rows


def network_moments(
    network: CoordinateMLP, positions: Float[Array, "samples in_size"], *, epsilon: float = EPSILON
) -> Moments:
    """The moments of a network over some positions: what `estimate_moments` says of a field, with exact derivatives.

    !!! example
        ```python
        network_moments(network, positions).structure_tensor  # against estimate_moments(field).structure_tensor
        ```
    """
    values, products = _values_and_products(network, positions)
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
