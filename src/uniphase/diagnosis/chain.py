"""Chains: a network of any framework as the list of its layers, in NumPy.

A reading holds plain arrays, so a diagnosis is the same for all frameworks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..initialization.activations import ACTIVATIONS, get_activation
from ..initialization.blueprint import Blueprint
from ..initialization.distributions import Distribution


@dataclass(frozen=True, eq=False)
class LayerReading:
    """One layer of a network of any framework: activation(omega · (W x + b)).

    **Arguments:**

    - `name`: what the network calls it.
    - `weight`, `bias`: its numbers. No bias: `None`.
    - `activation`, `omega`: as for `LayerPlan`.

    !!! example
        ```python
        LayerReading("first", np.ones((64, 2)), np.zeros(64), "sine", 30.0)
        ```
    """

    name: str
    weight: Float[np.ndarray, "rows columns"]
    bias: Float[np.ndarray, " rows"] | None
    activation: str
    omega: float = 1.0

    def __post_init__(self):
        if not self.omega > 0:
            raise ValueError(
                f"the omega of {self.name} is {self.omega}; it must be positive: put the sign into the weight"
            )
        for what in ("weight", "bias"):
            array = getattr(self, what)
            if array is not None and not np.isfinite(array).all():
                raise ValueError(
                    f"the {what} of {self.name} has NaN or infinite entries: the network has diverged; "
                    "pass it as it was before"
                )

    @property
    def out_size(self) -> int:
        """Number of outputs."""
        return len(self.weight) * get_activation(self.activation).outputs


def read_chain(layers: Mapping[str, Sequence[Any]]) -> list[LayerReading]:
    """Readings of layers that are given as `(weight, bias, activation, omega)`, by name and in their order.

    !!! example
        ```python
        read_chain({"inner": (np.ones((8, 2)), None, "sine", 30.0), "outer": (np.ones((1, 8)), None, "linear", 1.0)})
        ```
    """
    chain = []
    for name, entry in layers.items():
        if len(entry) != 4:
            raise ValueError(f"layers[{name!r}] has {len(entry)} entries; pass (weight, bias, activation, omega)")
        weight, bias, activation, omega = entry
        weight, bias = np.asarray(weight, np.float64), None if bias is None else np.asarray(bias, np.float64)
        if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
            shapes = f"weight has shape {weight.shape} and bias {None if bias is None else bias.shape}"
            raise ValueError(f"layers[{name!r}]: {shapes}; pass (out, in) and (out,)")
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"layers[{name!r}]: activation is {activation!r}; it must be one of {known}")
        chain.append(LayerReading(name, weight, bias, activation, float(omega)))
    return chain


def draw_chain(blueprint: Blueprint, rng: np.random.Generator) -> list[LayerReading]:
    """A network drawn from a blueprint, without any framework.

    !!! example
        ```python
        layers = draw_chain(sm20((2, 1), width=64, depth=2), np.random.default_rng(0))
        ```
    """

    def draw(distribution: Distribution, shape: tuple[int, ...]) -> np.ndarray:
        standard = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}[distribution.standard](
            shape
        )
        return distribution.sample(standard, lambda numbers: numbers)

    return [
        LayerReading(
            layer_name(index, len(blueprint.layers)),
            draw(plan.weight, (plan.rows, plan.columns)),
            None if plan.bias is None else draw(plan.bias, (plan.rows,)),
            plan.activation,
            plan.omega,
        )
        for index, plan in enumerate(blueprint.layers)
    ]


def layer_name(index: int, count: int) -> str:
    """The name of a layer that has none of its own: input, hidden 1, …, output."""
    return "input" if index == 0 else "output" if index == count - 1 else f"hidden {index}"


def evaluate_chain(
    layers: Sequence[LayerReading], positions: Float[np.ndarray, "samples in_size"]
) -> Float[np.ndarray, "samples out_size"]:
    """The values of a network at some positions, in float64."""
    h = positions.astype(np.float64)
    for layer in map(unfold, layers):
        h = ACTIVATIONS[layer.activation].value(preactivation(layer, h))
    return h


def recognize_activation(function: Callable[[np.ndarray], np.ndarray]) -> tuple[str, float]:
    """Which activation a(ωz) a function is, judging by its values; a `ValueError` if it is not in the table.

    **Arguments:**

    - `function`: maps a float32 array to one of the same shape, entry by entry.

    !!! example
        ```python
        recognize_activation(lambda z: np.sin(30 * z))  # ("sine", 30.0)
        ```
    """
    from scipy.optimize import least_squares

    small = 1e-3
    below, above, one = np.asarray(function(np.array([-small, small, 1.0], np.float32)), np.float64).tolist()
    slope = (above - below) / (2 * small)
    for name, known in ACTIVATIONS.items():
        if known.outputs > 1:
            continue
        guess = one if known.initial_slope is None else slope / known.initial_slope
        if not guess > 0:
            continue
        z = np.linspace(-3, 3, 61, dtype=np.float32) / np.float32(guess)
        found = np.asarray(function(z), np.float64)

        def error(omega: np.ndarray, known=known, z=z, found=found) -> np.ndarray:
            return known.value(omega * z.astype(np.float64)) - found

        omega = float(np.format_float_positional(least_squares(error, guess).x[0], 5, fractional=False))
        if np.abs(error(np.array(omega))).max() < 2e-3:  # the two GELUs differ by less; all others by more
            return name, omega
    known = ", ".join(name for name, entry in ACTIVATIONS.items() if entry.outputs == 1)
    raise ValueError(f"the activation is none of {known}, of ω times its argument")


def preactivation(layer: LayerReading, h: np.ndarray) -> np.ndarray:
    """omega · (W h + b), for positions in rows."""
    z = h @ layer.weight.T
    return layer.omega * (z if layer.bias is None else z + layer.bias)


def unfold(layer: LayerReading) -> LayerReading:
    """A layer in float64, with [sin z, cos z] written as sines alone: cos z = sin(z + π/2)."""
    weight = layer.weight.astype(np.float64)
    bias = None if layer.bias is None else layer.bias.astype(np.float64)
    if layer.activation != "sincos":
        return LayerReading(layer.name, weight, bias, layer.activation, layer.omega)
    bias = np.zeros(len(weight)) if bias is None else bias
    shifted = np.concatenate([bias, bias + np.pi / 2 / layer.omega])
    return LayerReading(layer.name, np.concatenate([weight, weight]), shifted, "sine", layer.omega)
