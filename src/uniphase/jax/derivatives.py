"""Derivatives of a network by its coordinates, for many positions at once and in one pass forward.

A layer takes h, its slopes along the coordinates and its Laplacian to the same of its output f(z): with the slopes s_i
and the Laplacian q of z, those of f(z) are f'(z) s_i and f'(z) q + f''(z) Σ s_i². So a Laplacian of d coordinates costs
d + 2 products a layer, where differentiating twice along each axis would cost about 3d.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .network import CoordinateMLP


def gradient(network: CoordinateMLP, x: Float[Array, "in_size *n"]) -> Float[Array, "out_size in_size *n"]:
    """The derivative of every channel by every coordinate, at one position or at the positions in the columns of `x`.

    !!! example
        ```python
        gradient(network, jnp.zeros(2))  # (out_size, 2)
        ```
    """
    _, along = jax.linearize(network, x)
    return jnp.stack([along(axis) for axis in _axes(x)], axis=1)


def laplacian(network: CoordinateMLP, x: Float[Array, "in_size *n"]) -> Float[Array, "out_size *n"]:
    """The sum of the second derivatives of every channel, at one position or at the positions in the columns of `x`.

    It can be differentiated further, by the parameters for a loss that contains it, or by the coordinates.

    !!! example
        ```python
        laplacian(network, positions.T)  # (out_size, samples)
        ```
    """
    h, slopes, curvature = x, _axes(x), jnp.zeros_like(x)
    for layer in network.layers:
        z, along = jax.linearize(layer.preactivation, h)
        slopes, curvature = [along(slope) for slope in slopes], along(curvature)
        derivatives = [_derivatives(layer.activate, z, slope) for slope in slopes]
        curvature = _derivatives(layer.activate, z, curvature)[0] + sum(second for _, second in derivatives)
        h, slopes = layer.activate(z), [first for first, _ in derivatives]
    return curvature


def _axes(x: Array) -> list[Array]:
    """The unit vector of each coordinate, at every position."""
    return [jnp.zeros_like(x).at[i].set(1) for i in range(len(x))]


def _derivatives(function, z: Array, direction: Array) -> tuple[Array, Array]:
    """The first and second derivative of a function along a direction."""

    def first(z):
        return jax.jvp(function, (z,), (direction,))[1]

    return jax.jvp(first, (z,), (direction,))
