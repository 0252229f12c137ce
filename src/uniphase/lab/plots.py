"""The figures of the report, laid out as in the paper. Matplotlib is loaded only when one is drawn."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..signals.paths import atomic_path
from .runs import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
# The zoomed region as fractions of height and width: the head and the camera of the Cameraman.
_ZOOM = (0.15, 0.40), (0.38, 0.63)
_COLORS = {"sm20": "C0", "cvp26-0": "C1", "cvp26-1": "C2", "uniform-phase": "C3"}


def save(figure: "Figure", stem: Path) -> None:
    """Write a figure as PNG and PDF, without dates, so that equal figures give equal files."""
    for suffix, metadata in ((".png", {"Software": None}), (".pdf", {"CreationDate": None})):
        with atomic_path(stem.with_suffix(suffix)) as temporary:
            figure.savefig(temporary, dpi=_DPI, bbox_inches="tight", metadata=metadata)


def image_comparison(title: str, reference: Record, fits: Mapping[str, Record]) -> "Figure":
    """Columns: the truth, the spline and each scheme. Rows: the training image, the test image and a detail of it."""
    truth = reference.load()
    columns = {"truth": (truth["train"], truth["test"], ("", ""))}
    columns["bicubic"] = truth["train"], truth["spline"], ("", _decibels(reference, "eval_snr_db"))
    for scheme, record in fits.items():
        arrays, captions = record.load(), (_decibels(record, "train_snr_db"), _decibels(record, "eval_snr_db"))
        columns[scheme] = arrays["train"], arrays["test"], captions
    height, width = truth["test"].shape[:2]
    (top, bottom), (left, right) = [
        [round(end * n) for end in part] for part, n in zip(_ZOOM, (height, width), strict=True)
    ]
    figure = _figure(1.7 * len(columns), 5.6, title)
    panels = figure.subplots(3, len(columns), squeeze=False)
    for (name, (train, test, captions)), column in zip(columns.items(), panels.T, strict=True):
        for axes, picture in zip(column, (train, test, test[top:bottom, left:right]), strict=True):
            _show(axes, picture)
        column[0].set_title(name, fontsize=9)
        for axes, caption in zip(column, captions, strict=False):
            axes.set_xlabel(caption, fontsize=9)
        _draw_square(column[1], top, bottom, left, right)
    for axes, picture in zip(panels[:, 0], (truth["train"], truth["test"], None), strict=True):
        axes.set_ylabel("detail" if picture is None else f"{picture.shape[0]} × {picture.shape[1]}", fontsize=9)
    return figure


def losses(title: str, fits: Mapping[str, Sequence[Record]]) -> "Figure":
    """The loss of every step: the median over the seeds, in a band from minimum to maximum."""
    figure = _figure(8.0, 4.5, title)
    axes = figure.subplots()
    for i, (scheme, records) in enumerate(fits.items()):
        curves = np.stack([record.load()["losses"] for record in records])
        label = f"{scheme} ({len(records)} seed{'s' if len(records) > 1 else ''})"
        axes.fill_between(range(curves.shape[1]), curves.min(axis=0), curves.max(axis=0), color=f"C{i}", alpha=0.15)
        axes.plot(np.median(curves, axis=0), color=f"C{i}", linewidth=1, label=label)
    axes.set(yscale="log")
    _finish_panels(figure, "step", "training MSE")
    return figure


def waveforms(title: str, reference: Record, fits: Mapping[str, Record]) -> "Figure":
    """One row per scheme: the envelope of the whole sound, and its first 1,000 samples. The truth is gray."""
    truth = reference.load()["train"][:, 0].astype(np.float64)
    figure = _figure(10.0, 1.3 * len(fits) + 0.5, title)
    panels = figure.subplots(len(fits), 2, squeeze=False, width_ratios=[2, 1])
    few = slice(0, 1000)
    for (scheme, record), (whole, start) in zip(fits.items(), panels, strict=True):
        fit = record.load()["train"][:, 0].astype(np.float64)
        for values, color in ((truth, "0.6"), (fit, "C0")):
            _draw_envelope(whole, values, color)
            start.plot(values[few], color=color, linewidth=0.8)
        whole.set_ylabel(scheme, fontsize=9)
        start.text(
            0.98, 0.92, _decibels(record, "train_snr_db"), transform=start.transAxes, ha="right", va="top", fontsize=8
        )
        for axes in (whole, start):
            axes.tick_params(labelsize=7)
    panels[-1, 0].set_xlabel("sample")
    panels[-1, 1].set_xlabel("first 1,000 samples")
    return figure


def omega_sweep(
    title: str,
    curves: Mapping[str, Mapping[str, Mapping[float, Record]]],
    ours: Mapping[str, Record | None],
    omegas: Sequence[float],
) -> "Figure":
    """A panel per task: the test error against ω₀ with a star at each minimum, and uniform-phase as a dashed line.

    A curve gets its star only if there are records for all of the `omegas`.
    """
    figure = _figure(13.0, 8.5, title)
    for axes, (name, by_scheme) in zip(figure.subplots(3, 4).ravel(), curves.items(), strict=True):
        for scheme, records in by_scheme.items():
            found = {omega: record.metrics["eval_mse"] for omega, record in records.items()}
            errors = {omega: error for omega, error in found.items() if error is not None}  # None: diverged
            if errors:
                star = min(errors, key=lambda omega: errors[omega]) if len(records) == len(omegas) else None
                _draw_curve(axes, errors, star, _COLORS[scheme], scheme)
        record = ours[name]
        if record is not None and record.metrics["eval_mse"] is not None:
            axes.axhline(
                record.metrics["eval_mse"], color=_COLORS["uniform-phase"], linestyle="--", label="uniform-phase"
            )
        if not axes.lines:
            _mark_not_run(axes)
        axes.set(xscale="log", yscale="log", title=name, xlim=(min(omegas) / 1.5, max(omegas) * 1.5))
    _finish_panels(figure, "ω₀", "test MSE")
    return figure


def best_omegas(
    title: str,
    rows: Mapping[str, tuple[Record, Record | None, Mapping[str, tuple[float, Record]]]],
    baselines: Sequence[str],
) -> "Figure":
    """A row per image: the truth, uniform-phase, and each baseline at its best ω₀, with their test errors."""
    columns = ["truth", "uniform-phase", *baselines]
    figure = _figure(2.3 * len(columns), 2.3 * len(rows) + 0.4, title)
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for axes, name in zip(panels[0], columns, strict=True):
        axes.set_title(name, fontsize=9)
    for (name, (reference, ours, chosen)), line in zip(rows.items(), panels, strict=True):
        truth = reference.load()["test"]
        _show(line[0], truth)
        line[0].set_ylabel(name, fontsize=9)
        found = {"uniform-phase": ("", ours)} | {s: (f", ω₀ = {w:.4g}", record) for s, (w, record) in chosen.items()}
        for axes, scheme in zip(line[1:], columns[1:], strict=True):
            words, record = found.get(scheme, ("", None))
            axes.set(xticks=[], yticks=[])
            if record is None:
                axes.set_box_aspect(truth.shape[0] / truth.shape[1])
                _mark_not_run(axes)
                continue
            if (picture := record.load().get("test")) is not None:
                _show(axes, picture)
            error = record.metrics["eval_mse"]
            axes.set_xlabel("diverged" if error is None else f"MSE {error:.4g}{words}", fontsize=8)
    return figure


def learning_rates(
    title: str,
    panels: Mapping[tuple[str, str], Mapping[int, Mapping[float, Record]]],
    average: str,
    stars: Mapping[tuple[str, str], Mapping[int, float | None]],
) -> "Figure":
    """A row per scheme, a column per scaling, a curve per width from light to dark, a star at each best rate."""
    import matplotlib

    schemes, scalings = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    figure = _figure(3.8 * len(scalings), 2.8 * len(schemes), title)
    grid = figure.subplots(len(schemes), len(scalings), sharex=True, sharey=True, squeeze=False)
    for (scheme, scaling), curves in panels.items():
        axes = grid[schemes.index(scheme), scalings.index(scaling)]
        for i, (width, records) in enumerate(curves.items()):
            losses = {
                r: record.metrics[average] for r, record in records.items() if record.metrics[average] is not None
            }
            color = matplotlib.colormaps["viridis_r"](0.1 + 0.9 * i / max(1, len(curves) - 1))
            if losses:
                _draw_curve(axes, losses, stars[scheme, scaling][width], color, f"N = {width}")
        axes.set(xscale="log", yscale="log", title=f"{scheme}, {scaling}")
        axes.set_xscale("log", base=2)
    _finish_panels(figure, "η", "mean training MSE")
    return figure


def spectra(title: str, curves: Mapping[tuple[str, int], Record], schemes: Sequence[str]) -> "Figure":
    """A panel per scheme: the mean singular values in decreasing order, a curve per depth."""
    figure = _figure(13.0, 3.6, title)
    panels = figure.subplots(1, len(schemes), sharey=True, squeeze=False)[0]
    for (scheme, depth), record in curves.items():
        values = np.maximum(record.load()["spectrum"], 1e-12)
        panels[schemes.index(scheme)].semilogy(np.arange(1, len(values) + 1), values, label=f"L = {depth}")
    for axes, scheme in zip(panels, schemes, strict=True):
        axes.axhline(1.0, color="0.7", linewidth=0.8)
        axes.set(title=scheme)
    _finish_panels(figure, "index", "singular value")
    return figure


def _figure(width: float, height: float, title: str) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure


def _decibels(record: Record, key: str) -> str:
    value = record.metrics[key]
    return "diverged" if value is None else f"SNR {value:.2f} dB"


def _show(axes: "Axes", picture: np.ndarray) -> None:
    axes.imshow(picture[..., 0] if picture.shape[-1] == 1 else picture, cmap="gray", vmin=0, vmax=255)
    axes.set(xticks=[], yticks=[])


def _mark_not_run(axes: "Axes") -> None:
    axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", fontsize=9)


def _draw_square(axes: "Axes", top: int, bottom: int, left: int, right: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor="red", linewidth=1))


def _draw_envelope(axes: "Axes", values: np.ndarray, color: str) -> None:
    starts = np.arange(0, len(values), max(1, math.ceil(len(values) / 1500)))
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    axes.fill_between(starts, low, high, color=color, alpha=0.8, linewidth=0.3)


def _draw_curve(axes: "Axes", points: Mapping[float, float], star: float | None, color, label: str) -> None:
    x = sorted(points)
    axes.plot(x, [points[key] for key in x], color=color, label=label, marker=".", markersize=3, linewidth=1)
    if star is not None:
        axes.plot([star], [points[star]], marker="*", markersize=10, color=color)


def _finish_panels(figure: "Figure", x: str, y: str) -> None:
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        axes.tick_params(which="both", labelsize=7)
        axes.title.set_fontsize(9)
    handles = {label: h for axes in figure.axes for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8)


def ratios_to_spline(title: str, found: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """For every image, the errors of several kinds of fits relative to the cubic spline's; a mark for each seed."""
    figure = _figure(8.0, 0.5 + 0.35 * len(found), title)
    axes = figure.subplots()
    for row, by_kind in enumerate(found.values()):
        for i, (kind, ratios) in enumerate(by_kind.items()):
            label = kind if row == 0 else None
            axes.plot(ratios, [row + 0.15 * i] * len(ratios), "os"[i], color=f"C{3 if i == 0 else 0}", label=label)
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlabel("MSE / MSE of the spline")
    axes.legend(fontsize=8)
    return figure
