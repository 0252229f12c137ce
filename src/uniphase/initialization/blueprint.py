"""Blueprints: what a network is at initialization, before any random number is drawn.

A blueprint lists every layer with its sizes, its activation and the distributions of its weights and biases. It belongs
to no framework: each draws a network from it in a few lines, and tests read exact variances from it without sampling.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..signals.markup import section, table
from .activations import get_activation
from .distributions import Distribution, distribution_from_dict, distribution_to_dict

# How a layer's weights scale with the width, for μP and the optimizers. Every bias has the role "bias" there.
Role = Literal["input", "hidden", "output"]

_HEADER = ("layer", "maps", "activation", "weights", "biases")


@dataclass(frozen=True)
class LayerPlan:
    """One layer: activation(omega · (W x + b)), with W and b drawn from their distributions.

    **Arguments:**

    - `role`: input, hidden or output, which decides how it scales with the width.
    - `rows`, `columns`: the shape of its weights.
    - `activation`: its name in the table of activations.
    - `weight`, `bias`: the distributions. No bias: `None`.
    - `omega`: the factor inside the activation. It multiplies the bias too.
    - `trainable`: whether the weights are parameters; those of a random encoding are not.
    """

    role: Role
    rows: int
    columns: int
    activation: str
    weight: Distribution
    bias: Distribution | None
    omega: float = 1.0
    trainable: bool = True

    @property
    def in_size(self) -> int:
        """Number of inputs."""
        return self.columns

    @property
    def out_size(self) -> int:
        """Number of outputs."""
        return self.rows * get_activation(self.activation).outputs

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return self.trainable * self.rows * (self.columns + (self.bias is not None))


@dataclass(frozen=True)
class Blueprint:
    """A network as distributions, before anything is drawn. It prints as a table, as in a paper.

    **Arguments:**

    - `scheme`: the name of the initialization.
    - `layers`: from the coordinates to the channels.

    !!! example
        ```python
        print(uniform_phase(estimate_moments(field), width=256, depth=4))
        ```
    """

    scheme: str
    layers: tuple[LayerPlan, ...]

    def __post_init__(self):
        for before, after in itertools.pairwise(self.layers):
            if before.out_size != after.in_size:
                raise ValueError(
                    f"layers do not fit: a layer with {before.out_size} outputs is followed by one with "
                    f"{after.in_size} inputs"
                )

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.layers[0].in_size

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.layers[-1].out_size

    @property
    def width(self) -> int:
        """Number of neurons of a hidden layer."""
        return self.layers[-1].in_size

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(layer.parameters for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """The blueprint in dicts, strings and numbers, which JSON can hold.

        !!! example
            ```python
            blueprint = sm20((2, 1), width=64, depth=2)
            Blueprint.from_dict(json.loads(json.dumps(blueprint.to_dict()))) == blueprint  # True
            ```
        """
        return {"scheme": self.scheme, "layers": [_plan_to_dict(plan) for plan in self.layers]}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> "Blueprint":
        """The blueprint that `to_dict` described, equal to it even after a passage through JSON.

        Keys that this version does not know are ignored.
        """
        known = _known_entries("a blueprint", entries, Blueprint)
        return Blueprint(known["scheme"], tuple(_plan_from_dict(layer) for layer in known["layers"]))

    def __str__(self) -> str:
        rows = [_HEADER, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return section(self._title(), table(_HEADER, self._rows()))

    def _title(self) -> str:
        return f"{self.scheme}: {self.in_size} → {self.out_size}, {self.parameters:,} parameters"

    def _rows(self) -> list[tuple[str, ...]]:
        """A row for each layer; one for all layers in a row that are equal."""
        groups = [(plan, len(list(group))) for plan, group in itertools.groupby(self.layers)]
        return [(plan.role + (f" ×{repeats}" if repeats > 1 else ""), *_cells(plan)) for plan, repeats in groups]


def _cells(plan: LayerPlan) -> tuple[str, str, str, str]:
    argument = "z" if plan.omega == 1 else "2πz" if plan.omega == 2 * math.pi else f"{plan.omega:.4g}z"
    activation = get_activation(plan.activation).text.format(argument)
    weights = str(plan.weight) if plan.trainable else f"{plan.weight} (frozen)"
    return f"{plan.in_size} → {plan.out_size}", activation, weights, "none" if plan.bias is None else str(plan.bias)


def _plan_to_dict(plan: LayerPlan) -> dict[str, Any]:
    distributions = {
        "weight": distribution_to_dict(plan.weight),
        "bias": None if plan.bias is None else distribution_to_dict(plan.bias),
    }
    return dataclasses.asdict(plan) | distributions


def _plan_from_dict(entries: Mapping[str, Any]) -> LayerPlan:
    known = _known_entries("a layer", entries, LayerPlan)
    if known["role"] not in get_args(Role):
        raise ValueError(f"role is {known['role']!r}; it must be one of {', '.join(get_args(Role))}")
    get_activation(known["activation"])
    if not all(type(known[name]) is int and known[name] > 0 for name in ("rows", "columns")):
        raise ValueError(f"a layer has {known['rows']!r} rows and {known['columns']!r} columns; these are counted")
    if not isinstance(known.get("omega", 1.0), int | float) or not isinstance(known.get("trainable", True), bool):
        raise ValueError(f"a layer has omega {known.get('omega')!r} and trainable {known.get('trainable')!r}")
    weight, bias = distribution_from_dict(known["weight"]), known["bias"]
    return LayerPlan(**{**known, "weight": weight, "bias": None if bias is None else distribution_from_dict(bias)})


def _known_entries(what: str, entries: Mapping[str, Any], described: type) -> dict[str, Any]:
    """The entries that this version knows. Only those without a default must be there."""
    fields = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(described)}
    if any(required and name not in entries for name, required in fields.items()):
        raise ValueError(f"{what} has the keys {', '.join(entries)}; it must have {', '.join(fields)}")
    return {name: entries[name] for name in fields if name in entries}
