"""Backpropagation by hand: the loss of some samples and its gradients, in products that are fast on a CPU.

Automatic differentiation gives the same, and is what the tests hold this against. But it takes the way back, Wᵀ g, as a
product with a transposed factor, which a CPU computes at two thirds of the speed of the others; here the transposes are
copied, once a step. Samples are columns.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..jax.network import CoordinateMLP, activation_function

# The weights and the biases, layer by layer: the same structure whatever the activations and ω.
Parameters = tuple[tuple[Array, ...], tuple[Array | None, ...]]


class Chain(NamedTuple):
    """What a network is besides its parameters."""

    activations: tuple[str, ...]
    trainable: tuple[bool, ...]
    omegas: Sequence[float] | Float[Array, " layers"]

    @staticmethod
    def of(network: CoordinateMLP) -> "Chain":
        layers = network.layers
        return Chain(
            tuple(layer.activation for layer in layers),
            tuple(layer.trainable for layer in layers),
            [layer.omega for layer in layers],
        )


def parameters_of(network: CoordinateMLP) -> PyTree:
    """The `Parameters` of a network, or what stands in their places in a tree of its structure."""
    return tuple(layer.weight for layer in network.layers), tuple(layer.bias for layer in network.layers)


def with_parameters(network: CoordinateMLP, parameters: Parameters) -> CoordinateMLP:
    """The network with other numbers in it, or with their gradients."""
    leaves = jax.tree.leaves(parameters)
    return eqx.tree_at(lambda network: jax.tree.leaves(parameters_of(network)), network, leaves)


def transposes(parameters: Parameters) -> tuple[Array, ...]:
    """Every Wᵀ as an array of its own; without the barrier, the compiler would put it back into the product."""
    return tuple(jax.lax.optimization_barrier(weight.T) for weight in parameters[0])


def loss_and_gradients(
    parameters: Parameters,
    transposed: tuple[Array, ...],
    chain: Chain,
    positions: Float[Array, "in_size n"],
    values: Float[Array, "out_size n"],
    shares: Float[Array, " n"],
) -> tuple[Float[Array, ""], Parameters]:
    """The sum of the squared errors of all samples and channels, a share of each, and its gradients.

    **Arguments:**

    - `parameters`, `transposed`, `chain`: a network; `transposed` are the `transposes` of the parameters.
    - `positions`, `values`: the samples.
    - `shares`: what a sample counts.
    """
    h, inputs, pullbacks = positions, [], []
    for weight, bias, activation, omega in zip(*parameters, chain.activations, chain.omegas, strict=True):
        inputs.append(h)
        z = weight @ h
        h, pullback = jax.vjp(activation_function(activation), omega * (z if bias is None else z + bias[:, None]))
        pullbacks.append(pullback)
    error = h - values
    g = 2 * shares * error
    weights, biases = list(parameters[0]), list(parameters[1])
    for i in reversed(range(len(weights))):
        g = chain.omegas[i] * pullbacks[i](g)[0]
        weights[i] = g @ inputs[i].T if chain.trainable[i] else jnp.zeros_like(weights[i])
        biases[i] = None if biases[i] is None else g.sum(axis=1)
        g = transposed[i] @ g if i > 0 else g
    return jnp.sum(shares * jnp.square(error)), (tuple(weights), tuple(biases))
