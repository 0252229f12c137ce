"""Reports: the measurements and verdicts on a network, which print as a table and pass through JSON."""

import dataclasses
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..initialization.moments import Moments
from ..signals.markup import coloured, folded, preformatted, section, table
from .findings import Finding
from .measurements import LayerMeasurement

_WIDTH = 120
_HEADER = ("layer", "out", "std of z", "|E eⁱᶻ|", "|E e²ⁱᶻ|", "s² of layer", "s² from first", "‖∂W‖", "‖∂b‖")
_STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red"}
# Of the same severities in HTML, legible on white and on black.
_COLOURS = {"ok": "#16a34a", "warn": "#ca8a04", "bad": "#ef4444"}


@dataclass(frozen=True, eq=False)
class Report:
    """What `diagnose` found. Printing it gives a table of the layers and the verdicts.

    **Arguments:**

    - `layers`: the measurements, layer by layer.
    - `findings`: the verdicts.
    - `looks_like`: the published initialization that explains the network's numbers, or `None`.
    - `fix`: the call that fixes what is wrong; `None` if nothing is.
    - `network`, `data`: the moments of the network over the samples, and of the signal.
    - `samples`: the number of samples on which the network was measured.

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

    def __str__(self) -> str:
        lines = [*self._table(), ""]
        for finding in self.findings:
            line = f"{finding.severity:<5}{finding.item}: {finding.words}"
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent=" " * 5, break_on_hyphens=False)
        lines += ["", f"looks like: {self.looks_like or 'no published initialization'}"]
        if self.fix is not None:
            lines.append(f"to fix it: {self.fix}")
        return "\n".join(lines)

    def __rich__(self) -> str:
        """The same text in the markup of rich, with the severities in colour."""
        lines = []
        for line in str(self).replace("[", "\\[").splitlines():
            word, space, rest = line.partition(" ")
            lines.append(f"[{_STYLES[word]}]{word}[/]{space}{rest}" if word in _STYLES else line)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        findings = [(coloured(each.severity, _COLOURS[each.severity]), each.item, each.words) for each in self.findings]
        return section(
            f"{'healthy' if self.healthy else 'not healthy'}, on {self.samples:,} samples",
            table((), findings),
            f"looks like: {self.looks_like or 'no published initialization'}",
            *(() if self.fix is None else ("to fix it:", preformatted(self.fix))),
            folded("layer by layer", table(_HEADER, map(_cells, self.layers))),
        )

    def _table(self) -> list[str]:
        rows = [_HEADER, *map(_cells, self.layers)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cells(row: LayerMeasurement) -> tuple[str, ...]:
    numbers = (row.preactivation_std, row.resultant, row.second_resultant, row.squared_singular)
    gradients = (row.squared_singular_from_first, row.weight_gradient, row.bias_gradient)
    cells = ("—" if number is None else f"{number:.3g}" for number in (*numbers, *gradients))
    return row.name, f"{row.out_size} {row.activation}", *cells
