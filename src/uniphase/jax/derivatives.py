"""Derivatives of a network by its coordinates, for many positions at once and in one forward pass.

A layer takes h, its slopes along the coordinates and its Laplacian to the same of its output f(z): with the slopes s_i
and the Laplacian q of z, those of f(z) are f'(z) s_i and f'(z) q + f''(z) Σ s_i². So a Laplacian of d coordinates costs
d + 2 products a layer, where differentiating twice along each axis would cost about 3d.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .network import CoordinateMLP, Network, evaluate_rows, in_columns, require_coordinates


def gradient(network: Network, x: Float[Array, "*batch in_size"]) -> Float[Array, "*batch out_size in_size"]:
    """The derivative of every channel by every coordinate, at one position or at many.

    **Arguments:**

    - `network`: a `CoordinateMLP`, any Equinox module, or a function of one position.
    - `x`: positions, a row for each.

    !!! example
        ```python
        gradient(network, jnp.zeros(2))  # (out_size, 2)
        gradient(network, positions)  # (samples, out_size, 2)
        ```
    """
    require_coordinates(network, x)
    _, along = jax.linearize(functools.partial(_values, network), x)
    return jnp.stack([along(axis) for axis in _axes(x)], axis=-1)


def laplacian(network: Network, x: Float[Array, "*batch in_size"]) -> Float[Array, "*batch out_size"]:
    """The sum of the second derivatives of every channel, at one position or at many.

    It can be differentiated further, by the parameters for a loss that contains it, or by the coordinates.

    **Arguments:** as for `gradient`.

    !!! example
        ```python
        laplacian(network, positions)  # (samples, out_size)
        ```
    """
    require_coordinates(network, x)
    if not isinstance(network, CoordinateMLP):
        function = functools.partial(_values, network)
        return sum((_derivatives(function, x, axis)[1] for axis in _axes(x)), start=jnp.zeros((), x.dtype))
    return in_columns(functools.partial(_laplacian_of_columns, network), x)


def _laplacian_of_columns(network: CoordinateMLP, x: Float[Array, "in_size *n"]) -> Float[Array, "out_size *n"]:
    slopes, curvature = [jnp.zeros_like(x).at[i].set(1) for i in range(len(x))], jnp.zeros_like(x)
    h = x
    for layer in network.layers:
        z, along = jax.linearize(layer.preactivation, h)
        slopes, curvature = [along(slope) for slope in slopes], along(curvature)
        derivatives = [_derivatives(layer.activate, z, slope) for slope in slopes]
        curvature = _derivatives(layer.activate, z, curvature)[0] + sum(second for _, second in derivatives)
        h, slopes = layer.activate(z), [first for first, _ in derivatives]
    return curvature


def _values(network: Network, x: Float[Array, "*batch in_size"]) -> Float[Array, "*batch out_size"]:
    if x.ndim == 1:
        return network(x)
    values = evaluate_rows(network, x.reshape(-1, x.shape[-1]))
    return values.reshape(*x.shape[:-1], -1)


def _axes(x: Array) -> list[Array]:
    """The unit vector of each coordinate, at every position."""
    return [jnp.zeros_like(x).at[..., i].set(1) for i in range(x.shape[-1])]


def _derivatives(function: Callable[[Array], Array], z: Array, direction: Array) -> tuple[Array, Array]:
    """The first and second derivative of a function along a direction."""

    def first(z):
        return jax.jvp(function, (z,), (direction,))[1]

    return jax.jvp(first, (z,), (direction,))
