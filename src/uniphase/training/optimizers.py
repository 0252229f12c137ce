"""Optimizers: how the parameters of a network move, in units that the signal sets.

At a matched initialization everything has a known scale but the step. `unit_muon` measures the step of each array by
what it does: hidden weights by their own size, phases in radians, input weights by the phase that they add over the
domain, output weights and offsets by the spread of the signal. So one rate serves all arrays, all widths, all signals
and all units of the data.
"""

import functools
import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree
from optax.contrib import MuonDimensionNumbers, scale_by_muon

from ..initialization.blueprint import Blueprint, LayerPlan
from ..initialization.distributions import Constant
from ..initialization.moments import Moments
from ..jax.initialization import require_parameters
from ..jax.network import CoordinateMLP, Layer, dtype_of
from ..jax.reading import Chain, Parameters, Stored, arrays_of, read_layers, replace_arrays
from ..recipe import Scales, Units, position_moments
from ..signals.fields import Extent, Field

# The kind of the arrays that are not trained.
_FROZEN = "frozen"


def unit_muon(
    network: Any, domain: Field | Sequence[Extent], moments: Moments, *, scales: Scales | None = None
) -> optax.GradientTransformation:
    r"""Muon for the weights and Adam for the biases, each in the units of the signal; the step still has to be scaled.

    Let $x$ have the mean $\bar x$ and the covariance $C$ over the samples, $B B^\top = C^{-1}$ and $F F^\top = 2Σ_ε/N$.
    The input layer moves as $z = G B^\top (x - \bar x) + b$ and the output weights as $W = F Z$. So shifting, scaling
    or rotating the domain, or shifting and scaling the outputs, changes nothing in any step of a fit.

    **Arguments:**

    - `network`: the network to train: a `CoordinateMLP`; a module of Equinox, Flax nnx or your own; or a pair
        `(apply, params)`, as in Flax linen and Haiku. See `initialize` for what is read. Its layers may differ in width
        and in ω, which are accounted for. Arrays that are neither weights nor biases stay as they are, with a warning.
    - `domain`: the field that it is trained on, or without data the interval `(low, high)` of every coordinate.
    - `moments`: of the signal, estimated or prescribed.
    - `scales`: the size of each kind of step. Default: those of the default fit.

    The norm of the hidden weights stays below twice that of their law, unless they start above it.

    !!! example
        ```python
        optimizer = optax.chain(
            unit_muon(network, field, estimate_moments(field)), optax.scale_by_learning_rate(default_rate(network))
        )
        box = [(0.0, 1.0), (-1.0, 1.0)]
        optimizer = unit_muon(network, box, prescribe_moments(length_scale=[0.1, 0.1]))

        apply = lambda params, x: params["v"] @ jnp.sin(30.0 * (params["w"] @ x + params["b"]))
        params = {"w": jnp.ones((64, 2)), "b": jnp.zeros(64), "v": jnp.ones((1, 64))}
        state = unit_muon((apply, params), box, prescribe_moments(length_scale=[0.1, 0.1])).init(params)
        ```

    ??? cite "Reference"
        Jordan and coauthors, "Muon: an optimizer for hidden layers in neural networks", 2024, in Optax's version.
    """
    if isinstance(network, CoordinateMLP):
        return muon_in_units(network, as_arrays(Units.of(domain, moments, network.width), network), scales or Scales())
    chain, parameters = read_layers(network, moments.in_size), Parameters(network)
    require_parameters(chain, parameters)
    units = Units.at(chain.inner_positions(*position_moments(domain)), chain.inner_moments(moments), chain.width)
    view = _View(chain)
    view.warn_of_others(parameters.arrays)
    return view.transform(muon_in_units(view.network, as_arrays(units, view.network), scales or Scales()))


class _View:
    """The arrays of any tree of parameters as those of a `CoordinateMLP` that computes the same.

    What a model multiplies its weights by, besides ω, is in the weights of that network. So its gradients are smaller
    by that factor, and so are the updates of the model's own arrays.
    """

    def __init__(self, chain: Chain):
        plans = [
            LayerPlan(layer.role, rows, columns, layer.activation, Constant(0.0), bias, abs(layer.omega))
            for layer in chain.layers
            for (rows, columns), bias in [(layer.weight.shape, None if layer.bias is None else Constant(0.0))]
        ]
        dtype = chain.layers[0].weight.dtype
        self.network = CoordinateMLP(Blueprint("as it is", tuple(plans)), dtype=dtype, key=jax.random.key(0))
        self.places: list[list[tuple[Stored, float] | None]] = []
        for layer in chain.layers:
            sign = math.copysign(1.0, layer.omega)
            bias = None if layer.stored_bias is None else (layer.stored_bias, sign)
            self.places.append([(layer.stored, sign * layer.gain), bias])

    def warn_of_others(self, arrays: Mapping[str, Any]) -> None:
        """Say which arrays are not stepped."""
        own = {place[0].name for pair in self.places for place in pair if place is not None}
        others = [name for name, array in arrays.items() if name not in own and eqx.is_inexact_array(array)]
        if others:
            warnings.warn(
                f"unit_muon leaves {', '.join(others)} as they are: they are neither weights nor biases of a layer; to "
                "train them, combine it with another optimizer by optax.partition",
                stacklevel=3,
            )

    def read(self, tree: Any, power: int) -> Any:
        """A tree of the model's structure in the network's places: of parameters with the power 1, of gradients -1."""
        arrays = arrays_of(tree)
        found = [None if place is None else arrays.get(place[0].name) for pair in self.places for place in pair]
        places = [place for pair in self.places for place in pair]
        values = [
            None if place is None or array is None else place[0].arrange(array) * place[1] ** power
            for place, array in zip(places, found, strict=True)
        ]
        where = lambda n: [array for layer in n.layers for array in (layer.weight, layer.bias)]  # noqa: E731
        return eqx.tree_at(where, self.network, values, is_leaf=lambda leaf: leaf is None)

    def write(self, updates: Any, tree: Any) -> Any:
        """Updates of the network in the structure of the model; zero for all that it does not have."""
        arrays = {name: jnp.zeros_like(array) for name, array in arrays_of(tree).items()}
        for layer, pair in zip(updates.layers, self.places, strict=True):
            for place, update in zip(pair, (layer.weight, layer.bias), strict=True):
                if place is not None and update is not None:
                    stored, factor = place
                    arrays[stored.name] = stored.restore(update / factor, arrays[stored.name])
        return replace_arrays(tree, arrays)

    def transform(self, inner: optax.GradientTransformation) -> optax.GradientTransformation:
        """A transformation of the network as one of the model."""

        def init(params):
            return inner.init(self.read(params, 1))

        def update(updates, state, params=None):
            if params is None:
                raise ValueError("params is None, but unit_muon needs them; call update(gradients, state, params)")
            found, state = inner.update(self.read(updates, -1), state, self.read(params, 1))
            return self.write(found, updates), state

        return optax.GradientTransformation(init, update)


def as_arrays(units: Units, network: CoordinateMLP) -> Units:
    """Units in the type of a network."""
    return Units(*(jnp.asarray(unit, dtype_of(network)) for unit in units))


def muon_in_units(network: CoordinateMLP, units: Units, scales: Scales) -> optax.GradientTransformation:
    """`unit_muon` from arrays alone, so that it can be made inside a compiled function and serve any signal."""
    first, *inner = network.layers
    adam = optax.scale_by_adam(b2=0.95)
    transforms: dict[Hashable, optax.GradientTransformation] = {
        "input": optax.chain(
            _map(lambda g: g @ units.input_factor),
            _orthogonal(scales.momentum),
            # what is orthogonal has entries of about 1/√N
            _map(lambda u: (scales.input * math.sqrt(len(first.weight)) / first.omega) * u @ units.input_factor.T),
        ),
        "output": optax.chain(
            _map(lambda g: units.output_factor.T @ g),
            _orthogonal(scales.momentum),
            _map(lambda u: scales.output * units.output_factor @ u),
        ),
        "input phase": optax.chain(adam, optax.scale(scales.phase / first.omega)),
        "offset": optax.chain(_map(lambda g: units.offset * g), adam, _map(lambda u: scales.offset * units.offset * u)),
    }
    for layer in inner:
        rows, columns = layer.weight.shape
        # A matrix with more rows than columns adds less to each of its outputs.
        step = math.sqrt(max(1.0, rows / columns)) / layer.omega
        law = math.sqrt(2 * rows) / layer.omega  # the norm of weights N(0, 2/columns), divided by ω
        transforms[_hidden_kind(layer)] = _stacked(
            optax.chain(_orthogonal(scales.momentum), optax.scale(step), _bounded(scales.growth * law))
        )
        transforms[_phase_kind(layer)] = optax.chain(adam, optax.scale(scales.phase / layer.omega))
    used = {kind: transforms[kind] for layer in network.layers if layer.trainable for kind in _kinds_of(layer)}
    partition = optax.partition({**used, _FROZEN: optax.set_to_zero()}, functools.partial(_label, network))
    return optax.chain(
        _first_layer(lambda w, b: (w - jnp.outer(b, units.center), b)),  # gradients at a fixed phase of the center
        partition,
        _first_layer(lambda w, b: (w, b - w @ units.center)),
    )


def _first_layer(function) -> optax.GradientTransformation:
    """Apply a function to the weights and biases of the first layer, if both are trained."""

    def update(tree, _):
        first = tree.layers[0]
        if first.weight is None or first.bias is None:
            return tree
        return eqx.tree_at(lambda t: (t.layers[0].weight, t.layers[0].bias), tree, function(first.weight, first.bias))

    return optax.stateless(update)


def _orthogonal(momentum: float) -> optax.GradientTransformation:
    """Muon for matrices, or for stacks of them."""
    last_two = lambda tree: jax.tree.map(lambda leaf: MuonDimensionNumbers(leaf.ndim - 2, leaf.ndim - 1), tree)  # noqa: E731
    return scale_by_muon(beta=momentum, weight_dimension_numbers=last_two)


def _bounded(bound: float) -> optax.GradientTransformation:
    """Keep the norm of matrices below a bound, or below that of the first ones if they are larger.

    Noise in the gradients makes weights grow as in a random walk, and every layer then multiplies the frequencies of
    the next, until the network is rougher than any signal. At the bound a step may turn a matrix but not enlarge it.
    """

    def init(params):
        return jnp.maximum(bound, jnp.linalg.norm(params, axis=(-2, -1), keepdims=True))

    def update(updates, state, params=None):
        bounds, params = state, jnp.asarray(params)
        norms = jnp.linalg.norm(params, axis=(-2, -1), keepdims=True)
        # the parameters move against the update, and grow by this multiple of themselves
        growth = -(updates * params).sum(axis=(-2, -1), keepdims=True) / jnp.square(norms)
        back = jnp.maximum(growth, 0.0) + (1 - bounds / norms)  # a finite step along a tangent enlarges, too
        return updates + jnp.where(norms > bounds, back, 0.0) * params, bounds

    return optax.GradientTransformation(init, update)


def _stacked(inner: optax.GradientTransformation) -> optax.GradientTransformation:
    """A transformation of matrices of one shape, applied to all at once: a quarter faster for eleven layers."""

    def init(params):
        return inner.init(jnp.stack(jax.tree.leaves(params)))

    def update(updates, state, params=None):
        leaves, structure = jax.tree.flatten(updates)
        stack, state = inner.update(jnp.stack(leaves), state, jnp.stack(jax.tree.leaves(params)))
        return jax.tree.unflatten(structure, list(jnp.asarray(stack))), state

    return optax.GradientTransformation(init, update)


def _map(function) -> optax.GradientTransformation:
    return optax.stateless_with_tree_map(lambda update, _: function(update))


def _hidden_kind(layer: Layer) -> str:
    """Hidden matrices of one shape and one ω are stepped together."""
    return f"hidden {layer.weight.shape}, omega {layer.omega}"


def _phase_kind(layer: Layer) -> str:
    return f"phase, omega {layer.omega}"


def _kinds_of(layer: Layer) -> tuple[str, ...]:
    """The kind of the weights and, if there are any, of the biases."""
    weight, bias = {
        "input": ("input", "input phase"),
        "hidden": (_hidden_kind(layer), _phase_kind(layer)),
        "output": ("output", "offset"),
    }[layer.role]
    return (weight,) if layer.bias is None else (weight, bias)


def _label(network: CoordinateMLP, tree: PyTree) -> PyTree[str]:
    """The kind of every array of a tree of the network's structure, which may have `None` for what is not trained."""
    names: list[str] = []
    for layer, arrays in zip(network.layers, tree.layers, strict=True):
        kinds = _kinds_of(layer) if layer.trainable else [_FROZEN] * 2
        names += [kind for kind, array in zip(kinds, (arrays.weight, arrays.bias), strict=False) if array is not None]
    return jax.tree.unflatten(jax.tree.structure(tree), names)
