"""Findings: what the measurements of a network mean, compared with those of reference networks.

A statistic is wrong if no reference would show it and if it is large enough to matter in training. Both are needed: a
wide network varies so little that differences are significant long before they matter. What matters was measured:
benchmarks/doctor.py trains networks with one fault each, and docs/doctor.md has what came of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..initialization.moments import Moments
from .measurements import ChainMeasurement, LayerMeasurement

Severity = Literal["ok", "warn", "bad"]
Statistics = Mapping[str, np.ndarray]

# Added to what may be zero, so that it has a logarithm.
_LEAST = 1e-12
# The rate of false alarms, and what it is in standard deviations of 24 references (Student's t).
_FALSE_ALARM, _SPREAD = 5e-5, 5.0
# Factors from which training loses some tenths of a dB, and by item those from which it loses 2 dB: of what is too
# small, and of what is too large. Small outputs and bunched phases lost nothing, and shrinking layers less than that.
_WARN = 1.5
_BAD: Mapping[str, tuple[float, float]] = {
    "Jacobian": (math.inf, 10.0),
    "gradients": (math.inf, 4.0),
    "input layer": (4.0, 3.0),
    "output covariance": (math.inf, 2.5),
    "structure tensor": (4.0, 3.0),
}
# The same in standard deviations of the data.
_WARN_OFFSET, _BAD_OFFSET = 1.5, 4.0
# The resultant of normally distributed phases with a standard deviation of 1.7.
_WARN_RESULTANT = 0.25
# A network that leaves less than this share of the signal's variance was trained on it.
_FITTED = 0.25


class Finding(NamedTuple):
    """A verdict on one statistic of a network.

    - `item`: the statistic.
    - `severity`: "ok", "warn" or "bad".
    - `value`: what the network has.
    - `low`, `high`: the range that is right: what uniform-phase networks of its size have on the same samples, and for
        factors also what the data have, which is 1. An output may start as small as it likes.
    - `words`: the verdict in words.
    """

    item: str
    severity: Severity
    value: float
    low: float
    high: float
    words: str


def statistics(measured: ChainMeasurement, moments: Moments) -> dict[str, np.ndarray]:
    """The statistics that are judged. Phases and output mean are best at zero; all others are factors, best at one."""
    hidden = measured.layers[:-1]
    found = measured.moments()
    offset = found.mean - moments.mean
    precision = np.linalg.inv(moments.regularized_covariance)
    # E J₁ᵀJ₁ of N sines with uniform phases is WᵀW/2, and Ω = (c/N) E WᵀW (section 3 of the paper).
    input_tensor = 2 * moments.out_size * measured.input_products
    # Of an output that is constant there are no slopes by its spread, and no gradients before the last layer.
    constant = np.trace(found.covariance) <= _LEAST * np.trace(moments.regularized_covariance)
    return {
        "phases": np.array([layer.resultant for layer in hidden if layer.resultant is not None]),
        "Jacobian": np.array([_LEAST + (hidden[-1].squared_singular_from_first or 0.0)]),
        "gradients": np.array([] if constant else [_LEAST + hidden[0].backward / (hidden[-1].backward or 1.0)]),
        "output mean": np.sqrt([offset @ precision @ offset / len(offset)]),
        "input layer": _factors(input_tensor, moments.structure_tensor),
        "output covariance": _factors(found.covariance, moments.regularized_covariance),
        "structure tensor": np.array([]) if constant else _factors(found.structure_tensor, moments.structure_tensor),
    }


def _factors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The ratios of one quadratic form to another along their common axes, as square roots."""
    from scipy.linalg import eigh

    ridge = 1e-12 * np.trace(expected) * np.eye(len(expected))  # a prescribed tensor may be singular
    return np.sqrt(np.clip(eigh(found, expected + ridge, eigvals_only=True), _LEAST**2, None))


def find(
    layers: Sequence[LayerMeasurement], found: Statistics, references: Sequence[Statistics]
) -> tuple[Finding, ...]:
    """The verdict on each statistic of a network."""
    depth = len(layers) - 2
    findings = []
    for item, values in found.items():
        if not values.size or (depth == 0 and item in ("Jacobian", "gradients")):
            continue
        normal = np.stack([reference[item] for reference in references]) if item != "phases" else np.zeros(0)
        if item == "phases":
            judged = _judge_phases(values, min(layer.out_size for layer in layers if layer.resultant is not None))
            words = _phase_words(judged, layers)
        elif item == "output mean":
            high = float(normal.mean() + _SPREAD * normal.std(ddof=1))
            judged = _judge_size(float(values[0]), high, _WARN_OFFSET, _BAD_OFFSET)
            words = f"{_plain(judged.value)} standard deviations from the data's"
            words += "" if judged.severity == "ok" else ": the first steps only correct the offset"
        else:
            judged = _judge_factor(values, normal, _BAD[item], least=0.0 if item == "output covariance" else 1.0)
            words = _growth_words(item, judged, depth) if item in _GROWTH else _matching_words(item, judged)
        findings.append(Finding(item, judged.severity, judged.value, judged.low, judged.high, words))
    return tuple(findings)


def find_fit(outputs: np.ndarray, values: np.ndarray) -> Finding | None:
    """How well a network fits the signal already, if it does: then it is no initialization, and is not judged as one.

    **Arguments:**

    - `outputs`, `values`: of the network and of the signal, at the same positions.
    """
    variance = float(np.square(values - values.mean(axis=0)).mean())
    share = float(np.square(outputs - values).mean()) / (variance or 1.0)
    if not share < _FITTED:
        return None
    decibels = -10 * math.log10(max(share, _LEAST))
    words = (
        f"explains {_share(1 - share)} of the signal's variance (SNR {decibels:.1f} dB): the network is trained, and "
    )
    return Finding("fit", "ok", share, 0.0, _FITTED, words + "its weights are not judged as an initialization")


def _share(number: float) -> str:
    """A share near 1 in percent, with digits until it differs from 100."""
    nines = -math.log10(max(1 - number, 1e-8))
    return f"{100 * number:.{max(0, math.ceil(nines - 1e-6) - 2)}f} %"


class _Judgement(NamedTuple):
    """The worst entry of a statistic, the nearest value that would be right, and the range of right values."""

    severity: Severity
    value: float
    target: float
    low: float
    high: float

    @property
    def factor(self) -> float:
        """How many times too large, or too small."""
        return max(self.value / self.target, self.target / self.value)

    @property
    def more(self) -> bool:
        return self.value > self.target


def _judge_factor(values: np.ndarray, references: np.ndarray, bad: tuple[float, float], *, least: float) -> _Judgement:
    """A factor is right where the references are, at 1, and in between; elsewhere it is wrong if it is large enough.

    `least` times as much is right as well: an output may start as small as it likes.
    """
    logs, found = np.log(references), np.log(values)  # (references, entries) and (entries,)
    center, reach = logs.mean(axis=0), _SPREAD * logs.std(axis=0, ddof=1)
    smaller = math.log(max(least, _LEAST))
    low, high = np.minimum(center - reach, 0) + smaller, np.maximum(center + reach, 0)
    target = np.clip(found, np.minimum(center, 0) + smaller, np.maximum(center, 0))
    deviation = np.abs(found - target)
    outside = (found < low) | (found > high)
    worst = int(np.argmax(np.where(outside, deviation, -1.0) if outside.any() else deviation))
    factor, limit = math.exp(deviation[worst]), bad[int(found[worst] > target[worst])]
    severity = "ok" if not outside[worst] or factor < _WARN else "warn" if factor < limit else "bad"
    return _Judgement(severity, *(math.exp(number[worst]) for number in (found, target, low, high)))


def _judge_phases(resultants: np.ndarray, width: int) -> _Judgement:
    """The root mean square R of the layers' resultants, against a bound that uniform phases exceed once in 20,000.

    For n uniform phases, n|mean exp(iz)|² is distributed as Exp(1), independently for each layer (the paper's lemma on
    independence), and its average over positions varies less. A resultant has 1/n subtracted and is at least zero,
    which makes it E = max(Exp(1), 1); so (n - 1)R² + 1 is a mean of such variables, and Chernoff's bound holds for it.
    """
    s = np.linspace(0.01, 0.99, 99)
    log_moments = np.log(np.exp(s) * (1 - math.exp(-1)) + np.exp(s - 1) / (1 - s))  # log E exp(sE)
    bound = float(((log_moments - math.log(_FALSE_ALARM) / len(resultants)) / s).min())
    high = math.sqrt((bound - 1) / max(width - 1, 1))
    return _judge_size(float(np.sqrt(np.square(resultants).mean())), high, _WARN_RESULTANT, math.inf)


def _judge_size(value: float, high: float, warn: float, bad: float) -> _Judgement:
    """A number that is best at zero is wrong if it is beyond chance and large enough to matter."""
    severity = "ok" if value <= max(high, warn) else "warn" if value <= max(high, bad) else "bad"
    return _Judgement(severity, value, 0.0, 0.0, high)


# The words for what is too large, and for what is too small.
_GROWTH = {
    "Jacobian": (
        "mean squared singular value ",
        ("mean squared singular value grows", "each layer amplifies slopes, and a deeper network would be worse"),
        ("mean squared singular value shrinks", "each layer flattens slopes, and a deeper network would be worse"),
    ),
    "gradients": (
        "",
        ("grow", "the first layers change the most"),
        ("shrink", "the first layers hardly change"),
    ),
}
_MATCHING = {
    "input layer": (
        "frequencies",
        ("too high", "it will oscillate between the samples"),
        ("too low", "fine detail will be learned late"),
    ),
    "output covariance": (
        "spread over the domain",
        ("too wide", "it has to be unlearned, and what is left of it is noise between the samples"),
        ("too narrow", ""),  # which is no fault
    ),
    "structure tensor": (
        "slopes per spread",
        ("too steep", "the network starts as noise that must be unlearned"),
        ("too flat", "the network starts too smooth"),
    ),
}


def _growth_words(item: str, judged: _Judgement, depth: int) -> str:
    quantity, *ways = _GROWTH[item]
    where = " in the backward pass" if item == "gradients" else ""
    rates = f"{_plain(judged.value ** (1 / depth), 3)}× a layer{where}, {_plain(judged.value)}× in all"
    if judged.severity == "ok":
        return f"{quantity}{rates}"
    verb, effect = ways[0 if judged.more else 1]
    return f"{verb} {rates}: {effect}"


def _matching_words(item: str, judged: _Judgement) -> str:
    quantity, *ways = _MATCHING[item]
    if judged.severity == "ok":
        return f"{quantity} {_plain(judged.value)}× the data's"
    fault, effect = ways[0 if judged.more else 1]
    return f"{quantity} {_plain(judged.factor)}× {fault} for this signal: {effect}"


def _phase_words(judged: _Judgement, layers: Sequence[LayerMeasurement]) -> str:
    if judged.severity == "ok":
        return f"uniform around the circle (resultant {_plain(judged.value)} over all layers)"
    worst = max(layers, key=lambda layer: layer.resultant or 0.0)
    numbers = f"resultant {_plain(judged.value)} over all layers, uniform phases stay below {_plain(judged.high)}"
    effect = "part of the sine is unused, and layers depend on those before them"
    if worst.squared_slope > 0.75:
        effect = "the sine is used near zero only, where the layer is almost linear"
    if worst.squared_slope < 0.25:
        effect = "the sine is used near its peaks, where slopes vanish"
    return f"bunched, most in {worst.name} ({numbers}): {effect}"


def _plain(number: float, digits: int = 2) -> str:
    """A number for a sentence: few digits, and no exponent if possible."""
    return f"{number:,.0f}" if 100 <= number < 1e6 else f"{number:.{digits}g}"
