"""The picture of a diagnosis: phases, Jacobians and gradients of every layer, and the findings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..diagnosis.measurements import PHASE_BINS
from ..diagnosis.report import Report
from ..signals.paths import FilePath
from .drawing import new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_RANGE = "uniform-phase networks"


def write_diagnosis(path: FilePath, report: Report, title: str) -> None:
    """Draw a report of `diagnose`: phases, Jacobians and gradients of every layer, and the findings with their ranges.

    The file is written whole or not at all.

    !!! example
        ```python
        write_diagnosis("diagnosis.png", diagnose(network, field), "a network for the camera")
        ```
    """
    figure = new_figure(12.0, 8.0)
    (phases, jacobians), (gradients, findings) = figure.subplots(2, 2)
    _draw_phases(phases, report)
    _draw_jacobians(jacobians, report)
    _draw_gradients(gradients, report)
    _draw_findings(findings, report)
    looks = f"looks like {report.looks_like}" if report.looks_like else "looks like no published initialization"
    figure.suptitle(f"{title}\n{looks}", y=1.01, va="bottom", parse_math=False)
    save_figure(figure, path)


def _draw_phases(axes: "Axes", report: Report) -> None:
    layers = [layer for layer in report.layers if layer.phases is not None]
    axes.set_title("density of phases, 1 if uniform")
    if not layers:
        axes.text(0.5, 0.5, "no sines, no phases", ha="center", va="center")
        axes.set_axis_off()
        return
    density = np.array([layer.phases for layer in layers]) * PHASE_BINS
    image = axes.imshow(
        density, cmap="coolwarm", vmin=0, vmax=2, aspect="auto", extent=(0, 2, len(layers), 0), interpolation="nearest"
    )
    axes.set_xlabel("z mod 2π")
    axes.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "π/2", "π", "3π/2", "2π"])
    axes.set_yticks(np.arange(len(layers)) + 0.5, [layer.name for layer in layers])
    axes.figure.colorbar(image, ax=axes, extend="max")


def _draw_jacobians(axes: "Axes", report: Report) -> None:
    hidden = report.layers[:-1]
    axes.axhline(1, color="0.6", linewidth=1)
    own = [np.nan, *[layer.squared_singular for layer in hidden[1:]]]
    axes.semilogy(own, "o", color="C0", label="of the layer alone")
    axes.semilogy([layer.squared_singular_from_first for layer in hidden], "s-", color="C1", label="from the first on")
    ranges = [finding for finding in report.findings if finding.item == "Jacobian"]
    for finding in ranges:
        axes.vlines(len(hidden) - 1, finding.low, finding.high, color="0.8", linewidth=8, zorder=0, label=_RANGE)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.5), max(high, 2))
    axes.set_title("mean squared singular value of the Jacobian")
    _label_layers(axes, [layer.name for layer in hidden])


def _draw_gradients(axes: "Axes", report: Report) -> None:
    biases = [np.nan if layer.bias_gradient is None else layer.bias_gradient for layer in report.layers]
    axes.semilogy([layer.weight_gradient for layer in report.layers], "o-", color="C0", label="weights")
    axes.semilogy(biases, "s-", color="C1", label="biases")
    axes.set_title("norm of the gradient of the error")
    _label_layers(axes, [layer.name for layer in report.layers])


def _draw_findings(axes: "Axes", report: Report) -> None:
    colors = {"ok": "C2", "warn": "C1", "bad": "C3"}
    least = 1e-2  # left end of the axis, for findings whose best value is 0
    for row, finding in enumerate(report.findings):
        low, high = max(finding.low, least), max(finding.high, least)
        axes.barh(row, high - low, left=low, height=0.5, color="0.85", label=_RANGE if row == 0 else None)
        axes.plot(max(finding.value, least), row, "o", color=colors[finding.severity], markersize=9)
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)
    axes.axvline(1, color="0.6", linewidth=1, zorder=0)
    axes.set_yticks(range(len(report.findings)), [finding.item for finding in report.findings])
    axes.invert_yaxis()
    axes.legend(loc="best")
    axes.set_title("findings: green ok, orange warn, red bad")


def _label_layers(axes: "Axes", names: Sequence[str]) -> None:
    crowded = len(names) > 7
    axes.set_xticks(range(len(names)), names, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    _plain_ticks(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.legend()


def _plain_ticks(axis: "Axis") -> None:
    """Labels such as 0.5 and 20 on a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")
