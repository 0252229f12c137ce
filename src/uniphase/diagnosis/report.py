"""The doctor: what is right and wrong with a network for a signal, in numbers and in words.

The theory fixes every quantity here in expectation, over the random draw; one network deviates from it by chance, the
more so the narrower it is. What is chance is not guessed: uniform-phase networks of the same size are drawn and
measured on the same samples, and a finding is what none of them would show (for phases a bound does the same). A
network wider than `_WIDTH` is held against references of that width, which spread more than it would.
"""

import dataclasses
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..initialization.moments import Moments, estimate_moments
from ..initialization.schemes import uniform_phase
from ..signals.fields import Field, Grid, axis_coordinates
from .chain import LayerReading, draw_chain, evaluate_chain
from .findings import Finding, find, statistics
from .fingerprint import likeness
from .measurements import LayerMeasurement, measure_chain

# Samples of the field that a network is measured on, and a reference.
_SAMPLES, _REFERENCE_SAMPLES = 1024, 256
_REFERENCES, _WIDTH = 24, 256


@dataclass(frozen=True, eq=False)
class Report:
    """What `diagnose` found. Printing it gives a table of the layers and the verdicts.

    **Arguments:**

    - `layers`: the measurements, layer by layer.
    - `findings`: the verdicts.
    - `looks_like`: the published initialization that explains the network's numbers, or `None`.
    - `fix`: the call that mends what was found; `None` if nothing was.
    - `network`, `data`: the moments of the network over the samples, and of the signal.
    - `samples`: the number of samples that the network was measured on.

    !!! example
        ```python
        report = diagnose(network, field)
        report.healthy  # True, if every finding is "ok"
        ```
    """

    layers: tuple[LayerMeasurement, ...]
    findings: tuple[Finding, ...]
    looks_like: str | None
    fix: str | None
    network: Moments
    data: Moments
    samples: int

    @property
    def healthy(self) -> bool:
        """Whether every finding is "ok"."""
        return all(finding.severity == "ok" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The report in dicts, lists, strings and numbers, which JSON can hold."""
        moments = {"network": self.network, "data": self.data}
        return {
            "healthy": self.healthy,
            "looks_like": self.looks_like,
            "fix": self.fix,
            "samples": self.samples,
            "findings": [finding._asdict() for finding in self.findings],
            "layers": [layer._asdict() for layer in self.layers],
            "moments": {
                name: {key: np.asarray(value).tolist() for key, value in dataclasses.asdict(entry).items()}
                for name, entry in moments.items()
            },
        }

    def __rich__(self) -> Group:
        lines = [self._table(), Text()]
        for finding in self.findings:
            style = {"ok": "green", "warn": "yellow", "bad": "bold red"}[finding.severity]
            lines.append(Text.assemble((f"{finding.severity:<5}", style), f"{finding.item}: {finding.words}"))
        lines.append(Text(f"\nlooks like: {self.looks_like or 'no published initialization'}"))
        if self.fix is not None:
            lines.append(Text.assemble("to mend it: ", (self.fix, "bold")))
        return Group(*lines)

    def _table(self) -> Table:
        header = ("layer", "out", "std of z", "|E eⁱᶻ|", "|E e²ⁱᶻ|", "s² of layer", "s² from first", "‖∂W‖", "‖∂b‖")
        table = Table(*header, box=None, pad_edge=False)
        for row in self.layers:
            numbers = (row.preactivation_std, row.resultant, row.second_resultant, row.squared_singular)
            gradients = (row.squared_singular_from_first, row.weight_gradient, row.bias_gradient)
            cells = ["—" if number is None else f"{number:.3g}" for number in (*numbers, *gradients)]
            table.add_row(row.name, f"{row.out_size} {row.activation}", *cells)
        return table

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=120, color_system=None)
        console.print(self)
        assert isinstance(console.file, io.StringIO)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def examine(
    layers: Sequence[LayerReading],
    field: Field,
    moments: Moments | None = None,
    *,
    fix: str | None = None,
    seed: int = 0,
) -> Report:
    """Examine a network that was read as a chain of layers, whatever framework it lives in.

    **Arguments:**

    - `layers`: from the coordinates to the channels.
    - `field`: the signal that the network is meant for.
    - `moments`: of the signal. Default: estimated from the field.
    - `fix`: the call to recommend. Default: that of the JAX side.
    - `seed`: of the samples, the probes and the references.

    !!! example
        ```python
        blueprint = sm20((2, 1), width=64, depth=2, omega=30.0)
        print(examine(draw_chain(blueprint, np.random.default_rng(0)), field))
        ```
    """
    _require_fitting(layers, field)
    moments = estimate_moments(field) if moments is None else moments
    if (moments.in_size, moments.out_size) != (field.in_size, field.out_size):
        raise ValueError(
            f"moments are of {moments.in_size} coordinates and {moments.out_size} channels, but the field has "
            f"{field.in_size} and {field.out_size}; pass the moments of the field"
        )
    rng = np.random.default_rng(seed)
    positions, values = _sample(field, _SAMPLES, rng)
    measured = measure_chain(layers, positions, values, rng)
    few = slice(_REFERENCE_SAMPLES)
    width, depth = min(layer.out_size for layer in layers[:-1]), len(layers) - 2
    blueprint = uniform_phase(moments, width=min(width, _WIDTH), depth=depth)
    references = [
        statistics(measure_chain(draw_chain(blueprint, rng), positions[few], values[few], rng), moments)
        for _ in range(_REFERENCES)
    ]
    findings = find(measured.layers, statistics(measured, moments), references)
    call = f"uniphase.CoordinateMLP(uniphase.uniform_phase(moments, width={width}, depth={depth}), key=key)"
    sick = any(finding.severity != "ok" for finding in findings)
    return Report(
        layers=measured.layers,
        findings=findings,
        looks_like=likeness(layers, moments),
        fix=(fix or call) if sick else None,
        network=measured.moments(),
        data=moments,
        samples=len(positions),
    )


def require_same_function(
    layers: Sequence[LayerReading], field: Field, model: Callable[[np.ndarray], np.ndarray]
) -> None:
    """See that a chain of layers is the model it was read from, at some positions of the field.

    **Arguments:**

    - `layers`: the chain.
    - `field`: where to look.
    - `model`: maps float32 positions of shape `(samples, in_size)` to values of shape `(samples, out_size)`.

    !!! example
        ```python
        layers = draw_chain(sm20((2, 1), width=8, depth=1), np.random.default_rng(0))
        require_same_function(layers, field, lambda positions: evaluate_chain(layers, positions))
        ```
    """
    _require_fitting(layers, field)
    positions = _sample(field, 64, np.random.default_rng(0))[0].astype(np.float32)
    found, expected = evaluate_chain(layers, positions), np.asarray(model(positions), np.float64)
    if found.shape != expected.shape:
        raise ValueError(f"the model gives values of shape {expected.shape}, but its layers {found.shape}; pass layers")
    error, spread = np.sqrt(np.square(found - expected).mean()), float(expected.std()) or 1.0
    # Phases of thousands of turns, as sound has, cost float32 some thousandths; a layer read wrongly costs it all.
    if not error < 0.05 * spread:
        chain = ", ".join(f"{layer.name} ({layer.activation}, omega {layer.omega:g})" for layer in layers)
        raise ValueError(
            f"the layers read from the model are not all of it: {chain} differ from its values by {error / spread:.2g} "
            "of their spread; pass layers={name: (weight, bias, activation, omega), ...} as the model applies them"
        )


def _require_fitting(layers: Sequence[LayerReading], field: Field) -> None:
    if len(layers) < 2:
        raise ValueError(f"layers has {len(layers)} entries; a network has an input and an output layer at least")
    size, owner = field.in_size, "the field's coordinates"
    for layer in layers:
        if layer.weight.shape[1] != size:
            raise ValueError(
                f"{layer.name} takes {layer.weight.shape[1]} inputs, but {owner} are {size}; "
                "pass the network's own field, and its layers in their order"
            )
        size, owner = layer.out_size, f"the outputs of {layer.name}"
    if size != field.out_size:
        raise ValueError(f"the network has {size} channels, but the field has {field.out_size}; make them agree")


def _sample(field: Field, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of some samples, without making those of all."""
    chosen = rng.choice(field.samples, min(count, field.samples), replace=False)
    if not isinstance(field, Grid):
        return field.positions[chosen], field.values[chosen].astype(np.float64)
    index = np.unravel_index(chosen, field.shape)
    axes = zip(index, field.shape, field.extents, strict=True)
    positions = np.stack([axis_coordinates(n, extent, field.align)[i] for i, n, extent in axes], axis=-1)
    return positions, field.values[index].astype(np.float64)
