"""A model as its layers, from the coordinates to the channels."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from jaxtyping import Float

from ...diagnosis.chain import LayerReading
from ...initialization.blueprint import Role
from ...initialization.squashing import MappedLayers, Squashing
from .values import Activation, NotReadError, Positions, Product, Signal, Stored

# The last part of the name of a layer's matrix, in the libraries that have layers.
_WEIGHTS = ("weight", "kernel", "w")


@dataclass(frozen=True, eq=False)
class AffineMap:
    """scale · x + shift, with a number for each coordinate or channel."""

    scale: Float[np.ndarray, " size"]
    shift: Float[np.ndarray, " size"]

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return bool((self.scale == 1).all() and not self.shift.any())


class Squash(NamedTuple):
    """The end of a model that bounds its outputs: a sigmoid or tanh, and an affine map of what it gives."""

    activation: Squashing
    after: AffineMap


@dataclass(frozen=True, eq=False)
class ReadLayer:
    """activation(omega · (gain · W u + b) + shift), as a model computes it from the outputs u of the layer before.

    - `name`: its path in the model.
    - `weight`, `bias`: its arrays, with a row for each output; `stored` and `stored_bias` say where they are.
    - `activation`, `omega`, `role`: as in a `LayerPlan`.
    - `gain`: what multiplies the weights besides ω.
    - `shift`: a constant inside the activation, or `None`.
    """

    name: str
    weight: Any
    bias: Any
    activation: str
    omega: float
    role: Role
    stored: Stored = field(repr=False)
    stored_bias: Stored | None = field(default=None, repr=False)
    gain: float = 1.0
    shift: Float[np.ndarray, " rows"] | None = None

    def renamed(self, name: str) -> "ReadLayer":
        """The same layer under another name."""
        return replace(self, name=name)

    def reading(self) -> LayerReading:
        """The layer in NumPy."""
        sign = math.copysign(1.0, self.omega)
        bias = None if self.bias is None else sign * np.asarray(self.bias, np.float64)
        bias = bias if self.shift is None else _added(bias, self.shift / abs(self.omega))
        weight = sign * self.gain * np.asarray(self.weight, np.float64)
        return LayerReading(self.name, weight, bias, self.activation, abs(self.omega))


@dataclass(frozen=True, eq=False)
class Chain(MappedLayers):
    """A model as its layers, from the coordinates to the channels.

    - `layers`: in the order in which they are applied.
    - `before`: a map of the positions, such as 2x - 1. A mere factor is the first layer's `gain`.
    - `after`: a map of the last layer's outputs.
    - `squash`: a final sigmoid or tanh, or `None`.
    """

    layers: tuple[ReadLayer, ...]
    before: AffineMap
    after: AffineMap
    squash: Squash | None = None

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.layers[0].weight.shape[1]

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return len(self.after.scale)

    @property
    def width(self) -> int:
        """Number of inputs of the last layer."""
        return self.layers[-1].weight.shape[1]

    def readings(self) -> list[LayerReading]:
        """The layers in NumPy, with the maps of positions and outputs in the weights and biases, but not `outer`."""
        first, *others = [layer.reading() for layer in self.layers]
        weight = first.weight
        first = replace(first, weight=weight * self.before.scale, bias=_added(first.bias, weight @ self.before.shift))
        layers = [first, *others]
        last = layers[-1]
        if last.activation == "linear":
            scale, shift = self.after.scale, self.after.shift
            bias = _added(None if last.bias is None else scale * last.bias, shift)
            name = "linear" if self.squash is None else self.squash.activation
            layers[-1] = replace(last, weight=scale[:, None] * last.weight, bias=bias, activation=name)
        return layers

    @property
    def outer(self) -> AffineMap:
        """What follows the last activation, if there is one at the end: a choice of units for the values."""
        if self.squash is not None:
            return self.squash.after
        linear = self.layers[-1].activation == "linear"
        return AffineMap(np.ones(self.out_size), np.zeros(self.out_size)) if linear else self.after


def _added(bias: np.ndarray | None, shift: np.ndarray) -> np.ndarray | None:
    return bias if not shift.any() else shift if bias is None else bias + shift


def assemble(output: Signal, arrays: Mapping[str, Any]) -> tuple[Chain, list[Activation]]:
    """The layers of which a signal is made, and the activations that they end with.

    **Arguments:**

    - `output`: what a model returned.
    - `arrays`: the model's arrays by name.
    """
    found, behind = _Layers(arrays), AffineMap(output.scale, output.shift)
    atom = output.atom
    if isinstance(atom, Product):
        return found.chain(found.add_last(output)), found.activations
    if not isinstance(atom, Activation) or output.bias is not None:
        raise NotReadError("ends without a linear layer")
    if atom.name in get_args(Squashing) and isinstance(atom.argument.atom, Product):
        squash = Squash(cast(Squashing, atom.name), behind)
        return found.chain(found.add_last(atom.argument), squash), found.activations
    found.add(atom)
    return found.chain(behind), found.activations


class _Layers:
    """The layers so far, from the coordinates on."""

    def __init__(self, arrays: Mapping[str, Any]):
        self.arrays = arrays
        self.layers: list[ReadLayer] = []
        self.activations: list[Activation] = []
        self.before: AffineMap | None = None

    def chain(self, after: AffineMap, squash: Squash | None = None) -> Chain:
        assert self.before is not None
        last, counts, seen = len(self.layers) - 1, Counter(layer.name for layer in self.layers), Counter()
        layers = []
        for i, layer in enumerate(self.layers):
            role: Role = "output" if i == last else "hidden" if i else "input"
            # several layers in one array
            name = layer.name if counts[layer.name] == 1 else f"{layer.name}[{seen[layer.name]}]"
            seen[layer.name] += 1
            layers.append(replace(layer, name=name, role=role))
        return Chain(tuple(layers), self.before, after, squash)

    def add(self, atom: Activation) -> None:
        """Add the layer that ends with an activation, after those before it."""
        name, shift = ("sine", math.pi / 2) if atom.name == "cos" else (atom.name, 0.0)
        product, factors, gain = self._linear(atom.argument)
        omega = _uniform(factors, f"has another ω for each neuron of {product.stored.name!r}")
        self._append(product, atom.argument, name, omega, gain, atom.argument.shift + shift)
        self.activations.append(atom)

    def add_last(self, signal: Signal) -> AffineMap:
        """Add the linear layer at the end; its factors and constants are a map of what it gives."""
        product, factors, gain = self._linear(signal)
        self._append(product, signal, "linear", 1.0, gain, np.zeros(1))
        return AffineMap(factors, signal.shift)

    def _linear(self, signal: Signal) -> tuple[Product, np.ndarray, float]:
        """The matrix of a layer, the factors of its bias, and the factor that is left for its inputs."""
        product = signal.atom
        if not isinstance(product, Product):
            raise NotReadError("has an activation that does not follow a linear layer")
        factors = product.factor * signal.scale
        common = factors if signal.bias is None else signal.bias[1]
        if not (np.isfinite(common) & (common != 0) & (factors != 0)).all():
            raise NotReadError(f"multiplies the outputs of {product.stored.name!r} by zero")
        rest = _uniform(factors / common, f"multiplies each output of {product.stored.name!r}, but not its bias")
        gain = rest * self._input(product)
        if signal.bias is None:  # then a factor before the matrix is one behind it
            return product, common * gain, 1.0
        return product, common, gain

    def _input(self, product: Product) -> float:
        """Add the layers before a matrix, and give the factor of its inputs."""
        signal, name = product.argument, product.stored.name
        if isinstance(signal.atom, Product):
            raise NotReadError(f"applies {name!r} to another linear layer without an activation between them")
        if isinstance(signal.atom, Positions):
            if signal.bias is not None or not signal.scale.all():
                raise NotReadError(f"applies {name!r} to a part of the coordinates")
            factor = float(signal.scale[0])
            if (signal.scale == factor).all() and not signal.shift.any():
                self.before = AffineMap(np.ones(signal.size), np.zeros(signal.size))
                return factor
            self.before = AffineMap(signal.scale, signal.shift)
            return 1.0
        if signal.bias is not None or signal.shift.any():
            raise NotReadError(f"applies {name!r} to activations to which a constant was added")
        factor = _uniform(signal.scale, f"applies {name!r} to activations with another factor for each of them")
        self.add(signal.atom)
        return factor

    def _append(self, product: Product, signal: Signal, activation: str, omega: float, gain: float, shift) -> None:
        stored, bias = product.stored, None if signal.bias is None else signal.bias[0]
        path, _, end = stored.name.rpartition(".")
        layer = ReadLayer(
            name=path if path and end in _WEIGHTS else stored.name,
            weight=stored.arrange(self.arrays[stored.name]),
            bias=None if bias is None else bias.arrange(self.arrays[bias.name]),
            activation=activation,
            omega=omega,
            role="hidden",
            stored=stored,
            stored_bias=bias,
            gain=gain,
            shift=shift if shift.any() else None,
        )
        self.layers.append(layer)


def _uniform(factors: np.ndarray, otherwise: str) -> float:
    """The number that all factors are."""
    if not np.allclose(factors, factors[0], rtol=1e-6, atol=0):  # float32 has seven digits
        raise NotReadError(otherwise)
    return float(factors[0])
