"""Optimizers: how the parameters of a network move, in units that the signal sets.

At a matched initialization everything has a known scale but the step. `unit_muon` measures the step of each array by
what it does: hidden weights by their own size, phases in radians, input weights by the phase that they add over the
domain, output weights and offsets by the spread of the signal. So one rate serves all arrays, all widths, all signals
and all units of the data.
"""

import math
from collections.abc import Hashable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree
from optax.contrib import MuonDimensionNumbers, scale_by_muon

from ..initialization.moments import Moments
from ..jax.network import CoordinateMLP
from ..recipe import INPUT_STEP, OFFSET_STEP, OUTPUT_STEP, PHASE_STEP, Units
from ..signals.fields import Field


def unit_muon(network: CoordinateMLP, field: Field, moments: Moments) -> optax.GradientTransformation:
    r"""Muon for the weights and Adam for the biases, each in the units of the signal; the step still has to be scaled.

    Let $x$ have the mean $\bar x$ and the covariance $C$ over the samples, $B B^\top = C^{-1}$ and $F F^\top = 2Σ_ε/N$.
    The input layer moves as $z = G B^\top (x - \bar x) + b$ and the output weights as $W = F Z$. So shifting, scaling
    or rotating the domain, or shifting and scaling the outputs, changes nothing in any step of a fit.

    **Arguments:**

    - `network`: the network to train. Its ω are accounted for.
    - `field`, `moments`: what it is trained on.

    !!! example
        ```python
        optimizer = optax.chain(
            unit_muon(network, field, estimate_moments(field)), optax.scale_by_learning_rate(default_rate(network))
        )
        ```

    ??? cite "Reference"
        Jordan and coauthors, "Muon: an optimizer for hidden layers in neural networks", 2024, in Optax's version.
    """
    return muon_in_units(network, signal_units(network, field, moments))


def signal_units(network: CoordinateMLP, field: Field, moments: Moments) -> Units:
    """The units of a signal, for `muon_in_units`."""
    dtype = network.layers[0].weight.dtype
    return Units(*(jnp.asarray(unit, dtype) for unit in Units.of(field, moments, network.width)))


def muon_in_units(network: CoordinateMLP, units: Units) -> optax.GradientTransformation:
    """`unit_muon` from arrays alone, so that it can be made inside a compiled function and serve any signal."""
    omega = network.layers[0].omega
    hidden_omega = max((layer.omega for layer in network.layers if layer.role == "hidden"), default=1.0)
    adam = optax.scale_by_adam(b2=0.95)
    transforms: dict[Hashable, optax.GradientTransformation] = {
        "input": optax.chain(
            _map(lambda g: g @ units.input_factor),
            _orthogonal(),
            # what is orthogonal has entries of about 1/√N
            _map(lambda u: (INPUT_STEP * math.sqrt(network.width) / omega) * u @ units.input_factor.T),
        ),
        "hidden": optax.chain(_stacked(_orthogonal()), optax.scale(1 / hidden_omega)),
        "output": optax.chain(
            _map(lambda g: units.output_factor.T @ g),
            _orthogonal(),
            _map(lambda u: OUTPUT_STEP * units.output_factor @ u),
        ),
        "input phase": optax.chain(adam, optax.scale(PHASE_STEP / omega)),
        "hidden phase": optax.chain(adam, optax.scale(PHASE_STEP / hidden_omega)),
        "offset": optax.chain(_map(lambda g: units.offset * g), adam, _map(lambda u: OFFSET_STEP * units.offset * u)),
        "frozen": optax.set_to_zero(),
    }
    kinds = _kinds(network)
    used = {kind: transforms[kind] for kind in jax.tree.leaves(kinds)}
    partition = optax.partition(used, lambda _: kinds)  # a network is callable, and Optax would call it
    return optax.chain(
        _first_layer(lambda w, b: (w - jnp.outer(b, units.center), b)),  # gradients at a fixed phase of the center
        partition,
        _first_layer(lambda w, b: (w, b - w @ units.center)),
    )


def _first_layer(function) -> optax.GradientTransformation:
    """Apply a function to the weights and biases of the first layer, if it has both."""

    def update(tree, _):
        first = tree.layers[0]
        if first.bias is None:
            return tree
        return eqx.tree_at(lambda t: (t.layers[0].weight, t.layers[0].bias), tree, function(first.weight, first.bias))

    return optax.stateless(update)


def _orthogonal() -> optax.GradientTransformation:
    """Muon for matrices, or for stacks of them."""
    last_two = lambda tree: jax.tree.map(lambda leaf: MuonDimensionNumbers(leaf.ndim - 2, leaf.ndim - 1), tree)  # noqa: E731
    return scale_by_muon(weight_dimension_numbers=last_two)


def _stacked(inner: optax.GradientTransformation) -> optax.GradientTransformation:
    """A transformation of matrices of one shape, applied to all at once: a quarter faster for eleven layers."""

    def init(params):
        return inner.init(jnp.stack(jax.tree.leaves(params)))

    def update(updates, state, params=None):
        leaves, structure = jax.tree.flatten(updates)
        stack, state = inner.update(jnp.stack(leaves), state)
        return jax.tree.unflatten(structure, list(jnp.asarray(stack))), state

    return optax.GradientTransformation(init, update)


def _map(function) -> optax.GradientTransformation:
    return optax.stateless_with_tree_map(lambda update, _: function(update))


def _kinds(network: CoordinateMLP) -> PyTree[str]:
    """The kind of every array: a tree of the network's structure with names for leaves."""
    biases = {"input": "input phase", "hidden": "hidden phase", "output": "offset"}
    names: list[str] = []
    arrays: list[Array] = []
    for layer in network.layers:
        arrays.append(layer.weight)
        names.append(layer.role if layer.trainable else "frozen")
        if layer.bias is not None:
            arrays.append(layer.bias)
            names.append(biases[layer.role])
    parameters, structure = jax.tree.flatten(eqx.filter(network, eqx.is_array))
    assert all(a is b for a, b in zip(parameters, arrays, strict=True))
    return jax.tree.unflatten(structure, names)
