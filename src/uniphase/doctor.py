"""The doctor: what is right and wrong with a network for a signal, in numbers and in words.

The theory fixes every quantity here in expectation, over the random draw; one network deviates from it by chance, the
more so the narrower it is. What is chance is not guessed: uniform-phase networks of the same size are drawn and
measured on the same samples, and a finding is what none of them would show. A network wider than `_WIDTH` is held
against references of that width, which spread more than it would.
"""

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from .chains import ChainMeasurement, LayerMeasurement, LayerReading, draw_chain, measure_chain
from .fields import Field, Grid, axis_coordinates
from .likeness import likeness
from .moments import Moments, combine_statistics, estimate_moments
from .schemes import uniform_phase

Severity = Literal["ok", "warn", "bad"]

# Samples of the field that a network is measured on, and a reference.
_SAMPLES, _REFERENCE_SAMPLES = 1024, 256
_REFERENCES, _WIDTH = 24, 256
# In standard deviations of the references: for Student's t with 23 degrees of freedom, one false alarm in 20,000.
_SPREAD = 5.0
# Factors below the first make no difference that would be seen in training; above the second they decide it.
_WARN, _BAD = 1.5, 4.0
# The same for the resultants of phases: Normal phases with a standard deviation of 1.7 and of 0.8.
_WARN_RESULTANT, _BAD_RESULTANT = 0.25, 0.72


class Finding(NamedTuple):
    """A verdict.

    - `item`: what was looked at.
    - `severity`: "ok", "warn" or "bad".
    - `value`: what the network shows.
    - `low`, `high`: what uniform-phase networks of its size show on the same samples.
    - `words`: the verdict.
    """

    item: str
    severity: Severity
    value: float
    low: float
    high: float
    words: str


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
    rng = np.random.default_rng(seed)
    positions, values = _sample(field, rng)
    measured = measure_chain(layers, positions, values, rng)
    few = slice(_REFERENCE_SAMPLES)
    width, depth = min(layer.out_size for layer in layers[:-1]), len(layers) - 2
    blueprint = uniform_phase(moments, width=min(width, _WIDTH), depth=depth)
    references = [
        _statistics(measure_chain(draw_chain(blueprint, rng), positions[few], values[few], rng), moments)
        for _ in range(_REFERENCES)
    ]
    findings = _findings(measured, _statistics(measured, moments), references)
    call = f"uniphase.CoordinateMLP(uniphase.uniform_phase(moments, width={width}, depth={depth}), key=key)"
    sick = any(finding.severity != "ok" for finding in findings)
    return Report(
        layers=measured.layers,
        findings=findings,
        looks_like=likeness(layers, moments),
        fix=(fix or call) if sick else None,
        network=_network_moments(measured),
        data=moments,
        samples=len(positions),
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


def _sample(field: Field, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of some samples, without making those of all."""
    chosen = rng.choice(field.samples, min(_SAMPLES, field.samples), replace=False)
    if not isinstance(field, Grid):
        return field.positions[chosen], field.values[chosen].astype(np.float64)
    index = np.unravel_index(chosen, field.shape)
    axes = zip(index, field.shape, field.extents, strict=True)
    positions = np.stack([axis_coordinates(n, extent, field.align)[i] for i, n, extent in axes], axis=-1)
    return positions, field.values[index].astype(np.float64)


def _network_moments(measured: ChainMeasurement) -> Moments:
    """The moments of a network over the samples: what `estimate_moments` says of a field, with exact derivatives."""
    outputs = measured.outputs
    covariance = np.atleast_2d(np.cov(outputs.T, ddof=1))
    # relative to the network's own spread, which may be of any size
    ridge = max(1e-9 * float(np.trace(covariance)) / len(covariance), 1e-30)
    return combine_statistics(outputs.mean(axis=0), covariance, measured.slope_products, epsilon=ridge)


def _statistics(measured: ChainMeasurement, moments: Moments) -> dict[str, np.ndarray]:
    """What is judged. All are positive; all but the first and the fourth are factors."""
    hidden = measured.layers[:-1]
    found = _network_moments(measured)
    offset = found.mean - moments.mean
    precision = np.linalg.inv(moments.regularized_covariance)
    # E J₁ᵀJ₁ of N sines with uniform phases is WᵀW/2, and Ω = (c/N) E WᵀW (section 3 of the paper).
    input_tensor = 2 * moments.out_size * measured.input_products
    return {
        "phases": np.array([layer.resultant for layer in hidden if layer.resultant is not None]),
        "Jacobian": np.array([hidden[-1].squared_singular_from_first]),
        "gradients": np.array([hidden[0].backward / hidden[-1].backward if hidden[-1].backward else 0.0]),
        "output mean": np.sqrt([offset @ precision @ offset / len(offset)]),
        "input layer": _factors(input_tensor, moments.structure_tensor),
        "output covariance": _factors(found.covariance, moments.regularized_covariance),
        "structure tensor": _factors(found.structure_tensor, moments.structure_tensor),
    }


def _factors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """By how much one quadratic form exceeds another along each axis of their common frame, as lengths."""
    from scipy.linalg import eigh

    ridge = 1e-12 * np.trace(expected) * np.eye(len(expected))  # a prescribed tensor may be singular
    return np.sqrt(np.clip(eigh(found, expected + ridge, eigvals_only=True), 1e-24, None))


class _Judgement(NamedTuple):
    """The worst entry of a statistic, beside the references."""

    severity: Severity
    value: float
    center: float
    low: float
    high: float

    @property
    def factor(self) -> float:
        """How many times too large, or too small."""
        return max(self.value / self.center, self.center / self.value)

    @property
    def more(self) -> bool:
        return self.value > self.center


def _judge_factor(values: np.ndarray, references: np.ndarray) -> _Judgement:
    """A factor is wrong if it is beyond the spread of the references, and by enough to matter."""
    logs = np.log(references)  # (references, entries)
    center, reach = logs.mean(axis=0), _SPREAD * logs.std(axis=0, ddof=1)
    deviation = np.abs(np.log(np.maximum(values, 1e-12)) - center)
    outside = deviation > reach
    worst = int(np.argmax(np.where(outside, deviation, -1.0) if outside.any() else deviation))
    factor = float(np.exp(deviation[worst]))
    severity = "ok" if not outside[worst] or factor < _WARN else "warn" if factor < _BAD else "bad"
    middle, low, high = (float(np.exp(center[worst] + side * reach[worst])) for side in (0, -1, 1))
    return _Judgement(severity, max(float(values[worst]), 1e-12), middle, low, high)


def _judge_size(values: np.ndarray, references: np.ndarray, warn: float, bad: float) -> _Judgement:
    """A size, best at zero, is wrong if it is above the references and large enough to matter."""
    center = float(references.mean())
    high = center + _SPREAD * float(references.std(ddof=1))
    value = float(values.max())
    severity = "ok" if value <= max(high, warn) else "warn" if value <= max(high, bad) else "bad"
    return _Judgement(severity, value, center, 0.0, high)


def _findings(
    measured: ChainMeasurement,
    statistics: dict[str, np.ndarray],
    references: Sequence[dict[str, np.ndarray]],
) -> tuple[Finding, ...]:
    depth = len(measured.layers) - 2
    findings = []
    for item, values in statistics.items():
        if not values.size or (depth == 0 and item in ("Jacobian", "gradients")):
            continue
        normal = np.stack([reference[item] for reference in references])
        if item == "phases":
            judgement = _judge_size(values, normal, _WARN_RESULTANT, _BAD_RESULTANT)
            words = _phase_words(judgement, measured.layers)
        elif item == "output mean":
            judgement = _judge_size(values, normal, _WARN, _BAD)
            words = _mean_words(judgement)
        else:
            judgement = _judge_factor(values, normal)
            words = _factor_words(item, judgement, depth)
        findings.append(
            Finding(item, judgement.severity, judgement.value, judgement.low, judgement.high, words)
        )
    return tuple(findings)


def _phase_words(judgement: _Judgement, layers: Sequence[LayerMeasurement]) -> str:
    if judgement.severity == "ok":
        return f"uniform around the circle in every layer (resultant {judgement.value:.2g} at most)"
    worst = max((layer for layer in layers if layer.resultant is not None), key=lambda layer: layer.resultant or 0)
    bunched = f"bunched in {worst.name} (resultant {judgement.value:.2g}, uniform phases stay below {judgement.high:.2g})"
    if worst.squared_slope > 0.75:
        return f"{bunched}: the sine is used near zero only, where the layer is almost linear"
    if worst.squared_slope < 0.25:
        return f"{bunched}: the sine is used near its peaks, where slopes vanish"
    return f"{bunched}: part of the sine is unused, and layers depend on those before them"


def _mean_words(judgement: _Judgement) -> str:
    words = f"{judgement.value:.2g} standard deviations from the data's"
    return words if judgement.severity == "ok" else f"{words}: the first steps go into the offset"


def _factor_words(item: str, judgement: _Judgement, depth: int) -> str:
    ok, more, factor = judgement.severity == "ok", judgement.more, f"{judgement.factor:.2g}×"
    if item == "Jacobian":
        rate = judgement.value ** (1 / depth)
        if ok:
            return f"mean squared singular value {judgement.value:.2g} through the hidden layers, {rate:.3g}× a layer"
        verb, effect = ("grows", "sharpens") if more else ("shrinks", "flattens")
        return (
            f"mean squared singular value {verb} {rate:.3g}× a layer, {judgement.value:.2g}× in all: "
            f"each layer {effect} what it gets, and a deeper network would be worse"
        )
    if item == "gradients":
        rate = judgement.value ** (1 / depth)
        if ok:
            return f"as large in the first layers as in the last ({rate:.3g}× a layer on the way back)"
        verb, effect = ("grow", "are moved the most") if more else ("shrink", "hardly move")
        return f"{verb} {rate:.3g}× a layer on the way back, {judgement.value:.2g}× in all: the first layers {effect}"
    return _matching_words(item, factor, ok=ok, more=more, value=judgement.value)


def _matching_words(item: str, factor: str, *, ok: bool, more: bool, value: float) -> str:
    if item == "input layer":
        if ok:
            return f"its frequencies fit the signal ({value:.2g}× those of the data)"
        effect = "it will oscillate between the samples" if more else "fine detail will be learned late"
        return f"{factor} too {'high' if more else 'low'} for this signal: {effect}"
    if item == "output covariance":
        if ok:
            return f"spread over the domain {value:.2g}× the data's, as it should be at this depth"
        effect = "the first steps go into calming it" if more else "it has to grow before it can fit"
        return f"{factor} too {'wide' if more else 'narrow'} a spread over the domain: {effect}"
    if ok:
        return f"slopes per spread {value:.2g}× the data's, as they should be at this depth"
    effect = "the network starts as noise that must be unlearned" if more else "the network starts too smooth"
    return f"slopes per spread {factor} too {'steep' if more else 'flat'} for this signal: {effect}"
