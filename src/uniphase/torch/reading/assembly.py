"""From the value of a model's output to its layers."""

import math
from dataclasses import dataclass, field
from typing import cast, get_args

import torch
from torch import Tensor

from ...initialization.blueprint import Role
from ...initialization.squashing import Squashing
from ..network import activation_function
from .chain import POSITIONS, AffineMap, Chain, ReadLayer, Squash
from .values import Activation, NotReadError, Positions, Product, Signal

_ONE_OMEGA = "make ω one number for all of them: their weights are drawn, so each has a frequency of its own anyway"
_MERGE = "put an activation between them, or merge them into one layer of the weight W₂W₁ and the bias W₂b₁ + b₂"


def assemble(output: Signal) -> Chain:
    """The layers of which a signal is made.

    **Arguments:**

    - `output`: what a model returned.
    """
    atom, factors = _only(output, "the model")
    layers, behind = _Layers(), AffineMap(factors, output.shift)
    if isinstance(atom, Product):
        return layers.chain(layers.add_last(output))
    if not isinstance(atom, Activation) or output.bias is not None:
        raise NotReadError("the model ends without a linear layer")
    if atom.name in get_args(Squashing):
        inner = _only(atom.argument, atom.place)[0]
        if isinstance(inner, Product):
            return layers.chain(
                layers.add_last(atom.argument), Squash(cast(Squashing, atom.name), atom.function, behind)
            )
    layers.add(atom)
    return layers.chain(behind)


@dataclass
class _Layers:
    """The layers so far, and which activation is which of them."""

    layers: list[ReadLayer] = field(default_factory=list)
    numbers: dict[Activation, int] = field(default_factory=dict)
    before: AffineMap | None = None

    def chain(self, after: AffineMap, squash: Squash | None = None) -> Chain:
        assert self.before is not None
        last = len(self.layers) - 1
        roles: list[Role] = ["output" if i == last else "hidden" if i else "input" for i in range(last + 1)]
        layers = tuple(_with_role(layer, role) for layer, role in zip(self.layers, roles, strict=True))
        return Chain(layers, self.before, after, squash)

    def add(self, atom: Activation) -> int:
        """The number of the layer that ends with an activation, after those that it takes."""
        if atom not in self.numbers:
            name, shift = (atom.name, 0.0) if atom.name != "cos" else ("sine", math.pi / 2)
            function = atom.function if atom.name != "cos" else activation_function("sine")
            product, factors, inputs = self._linear(atom.argument, atom.place)
            omega = _uniform(factors, f"{atom.place} has another ω for each neuron", _ONE_OMEGA)
            self._append(product, atom.argument, name, function, omega, inputs, atom.argument.shift + shift)
            self.numbers[atom] = len(self.layers) - 1
        return self.numbers[atom]

    def add_last(self, signal: Signal) -> AffineMap:
        """Add the linear layer at the end; its factors and constants are a map of what it gives."""
        product, factors, inputs = self._linear(signal, "the model")
        self._append(product, signal, "linear", activation_function("linear"), 1.0, inputs, None)
        return AffineMap(factors, signal.shift)

    def _linear(self, signal: Signal, place: str) -> tuple[Product, Tensor, tuple[tuple[int, float], ...]]:
        """The matrix of a layer, the factors of its bias, and its inputs with the factors that are left."""
        product, factors = _only(signal, place)
        if not isinstance(product, Product):
            raise NotReadError(f"{place} has an activation that does not follow a linear layer")
        factors = product.factor * factors
        common = factors if signal.bias is None else signal.bias[1]
        if not bool((common.isfinite() & (common != 0) & (factors != 0)).all()):
            raise NotReadError(f"{place} multiplies by zero, or by a number that is not known")
        rest = _uniform(
            factors / common, f"{product.place} multiplies each output, but not its bias, by another number"
        )
        inputs = self._inputs(product, rest)
        if signal.bias is None and len(inputs) == 1:  # then a factor before the matrix is one behind it
            ((number, factor),) = inputs
            common, inputs = common * factor, ((number, 1.0),)
        return product, common, inputs

    def _inputs(self, product: Product, rest: float) -> tuple[tuple[int, float], ...]:
        argument, place = product.argument, product.place
        kinds = {type(atom) for atom in argument.terms}
        if kinds == {Positions}:
            return ((POSITIONS, rest * self._set_before(argument, place)),)
        if kinds != {Activation}:
            if Product in kinds:
                raise NotReadError(f"{place} follows another linear layer without an activation between them", _MERGE)
            raise NotReadError(f"{place} takes a sum of positions and activations")
        if argument.bias is not None or argument.shift.any():
            raise NotReadError(f"{place} takes activations to which a constant was added")
        text = f"{place} takes activations with another factor for each of them"
        terms = [(atom, factor) for atom, factor in argument.terms.items() if isinstance(atom, Activation)]
        return tuple((self.add(atom), rest * _uniform(factor, text)) for atom, factor in terms)

    def _set_before(self, argument: Signal, place: str) -> float:
        """Note the map of the positions, and give a mere factor instead."""
        if self.before is not None:
            raise NotReadError(f"{place} is a second layer that takes the positions")
        (scale,) = argument.terms.values()
        if argument.bias is not None or not bool((scale != 0).all()):
            raise NotReadError(f"{place} takes positions to which a parameter was added, or not all of them")
        factor = float(scale[0])
        if bool((scale == factor).all()) and not argument.shift.any():
            self.before = AffineMap.identity(argument.size)
            return factor
        self.before = AffineMap(scale, argument.shift)
        return 1.0

    def _append(self, product: Product, signal: Signal, name: str, function, omega: float, inputs, shift) -> None:
        bias = None if signal.bias is None else signal.bias[0]
        self.layers.append(
            ReadLayer(
                name=product.stored.layer_name,
                weight=product.stored.numbers(),
                bias=None if bias is None else bias.numbers(),
                activation=name,
                omega=omega,
                role="hidden",
                function=function,
                inputs=inputs,
                shift=shift if shift is not None and shift.any() else None,
                stored=product.stored,
                stored_bias=bias,
            )
        )


def _with_role(layer: ReadLayer, role: Role) -> ReadLayer:
    return ReadLayer(**{**vars(layer), "role": role})


def _only(signal: Signal, place: str) -> tuple[Positions | Product | Activation, Tensor]:
    """The only term of a signal."""
    if len(signal.terms) > 1:
        raise NotReadError(f"{place} adds the outputs of several layers without a linear layer behind them")
    return next(iter(signal.terms.items()))


def _uniform(factors: Tensor, otherwise: str, fix: str = "") -> float:
    """The number that all factors are."""
    if not torch.allclose(factors, factors[:1], rtol=1e-6, atol=0):  # float32 has seven digits
        raise NotReadError(otherwise, fix)
    return float(factors[0])
