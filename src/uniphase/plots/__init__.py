"""Figures: what a fit and a comparison look like. Matplotlib is loaded only when one is drawn."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from skimage import color

from ..diagnosis.measurements import PHASE_BINS
from ..diagnosis.report import Report
from ..signals.fields import Grid
from ..signals.metrics import Metrics
from ..signals.paths import FilePath, atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_DPI = 120
# Curves of more points than this are drawn as the band between their extremes.
_POINTS = 2000
_RANGE = "uniform-phase networks"


class Column(NamedTuple):
    """What a scheme made of the training and the test field, and how near it came."""

    train: Shaped[np.ndarray, "..."]
    test: Shaped[np.ndarray, "..."] | None
    train_metrics: Metrics
    test_metrics: Metrics | None


def preview(
    path: FilePath,
    field: Grid,
    prediction: Shaped[np.ndarray, "..."],
    losses: Float[np.ndarray, " steps"],
    metrics: Metrics,
    title: str,
) -> None:
    """Draw a field, what a network made of it, the error and the loss of every step.

    A sound is drawn as waveforms and spectrograms, and of an array with more than two axes the slice in the middle.

    !!! example
        ```python
        prediction = render(network, field.shape)
        metrics = evaluate(prediction, field)
        preview("fit.png", field, prediction, np.geomspace(1.0, 0.01, 100), metrics, "a field")
        ```
    """
    quality = f"fit, PSNR {metrics.psnr_db:.1f} dB"
    if field.medium == "sound":
        figure = _sound_preview(field, prediction, losses, f"fit, SNR {metrics.snr_db:.1f} dB")
    elif field.in_size == 1:
        figure = _curve_preview(field, prediction, losses, quality)
    else:
        figure = _image_preview(field, prediction, losses, quality)
    figure.suptitle(title, y=1.01, va="bottom", parse_math=False)
    _save(figure, path)


def comparison(path: FilePath, field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> None:
    """Draw a field beside what several schemes made of it: the training samples, the test samples and a detail.

    !!! example
        ```python
        prediction = render(network, field.shape)
        columns = {"sm20": Column(prediction, None, evaluate(prediction, field), None)}
        comparison("schemes.png", field, None, columns)
        ```
    """
    draw = _curve_comparison if field.in_size == 1 else _image_comparison
    _save(draw(field, test, columns), path)


def learning_curves(path: FilePath, losses: Mapping[str, Sequence[Float[np.ndarray, " steps"]]]) -> None:
    """Draw the loss of every step for several schemes: the mean over the seeds, and the band that they span.

    !!! example
        ```python
        learning_curves("curves.png", {"sm20": [np.geomspace(1.0, 0.01, 100), np.geomspace(1.0, 0.02, 100)]})
        ```
    """
    figure = _figure(7.0, 4.5)
    axes = figure.subplots()
    for name, runs in losses.items():
        stack = np.stack(runs)
        steps = np.arange(1, stack.shape[1] + 1)
        axes.loglog(steps, stack.mean(axis=0), linewidth=1, label=name)
        if len(runs) > 1:
            axes.fill_between(steps, stack.min(axis=0), stack.max(axis=0), alpha=0.2)
    axes.legend()
    _label_losses(axes)
    _save(figure, path)


def diagnosis(path: FilePath, report: Report, title: str) -> None:
    """Draw what `diagnose` found: phases, Jacobians and gradients layer by layer, and every finding beside its range.

    !!! example
        ```python
        diagnosis("diagnosis.png", diagnose(network, field), "a network for the camera")
        ```
    """
    figure = _figure(12.0, 8.0)
    (phases, jacobians), (gradients, findings) = figure.subplots(2, 2)
    _draw_phases(phases, report)
    _draw_jacobians(jacobians, report)
    _draw_gradients(gradients, report)
    _draw_findings(findings, report)
    looks = f"looks like {report.looks_like}" if report.looks_like else "looks like no published initialization"
    figure.suptitle(f"{title}\n{looks}", y=1.01, va="bottom", parse_math=False)
    _save(figure, path)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="compressed")


def _save(figure: "Figure", path: FilePath) -> None:
    with warnings.catch_warnings(), atomic_path(path) as temporary:
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a file's name may have letters that the font has not
        figure.savefig(temporary, dpi=_DPI, bbox_inches="tight")


def _image_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    truth, fit = _middle(field.values), _middle(prediction)
    aspect = _aspect(truth)
    side = 3.6 / math.sqrt(aspect)  # panels of all shapes have the same area
    figure = _figure(4 * side + 2, side * aspect + 0.8)
    panels = figure.subplots(1, 4)
    for axes, values, name in zip(panels, (truth, fit), ("truth", quality), strict=False):
        _show(axes, values, field)
        axes.set_title(name)
    error = np.abs(fit.astype(np.float64) - truth).mean(axis=-1)
    image = panels[2].imshow(error, cmap="magma", vmin=0, aspect="auto")
    panels[2].set_axis_off()
    panels[2].set_box_aspect(aspect)
    panels[2].set_title("|error|")
    figure.colorbar(image, ax=panels[2], format="%.2g")
    _draw_losses(panels[3], losses)
    panels[3].set_box_aspect(aspect)
    return figure


def _curve_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = _figure(14.0, 4.0)
    curves, error, loss = figure.subplots(1, 3, width_ratios=[2, 2, 1.4])
    x = field.coordinates()[:, 0]
    _draw_curve(curves, x, field.values[:, 0], label="truth", color="0.5")
    _draw_curve(curves, x, prediction[:, 0], label="fit", color="C0")
    curves.legend()
    curves.set_title(quality)
    _draw_curve(error, x, prediction[:, 0].astype(np.float64) - field.values[:, 0], color="C3")
    error.set_title("error")
    _draw_losses(loss, losses)
    return figure


def _sound_preview(field: Grid, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = _figure(14.0, 5.5)
    panels = figure.subplot_mosaic(
        [["truth", "truth spectrum", "loss"], ["fit", "fit spectrum", "loss"]], width_ratios=[2, 2, 1.4]
    )
    rate = field.rate or 1.0
    seconds = np.arange(len(field.values)) / rate
    spectra = [_spectrogram(values[:, 0], rate) for values in (field.values, prediction)]
    loudest = max(float(spectra[0][1].max()), -200.0)
    peak = float(np.abs(field.values[:, 0]).max()) or 1.0
    for name, values, (extent, decibels) in zip(("truth", "fit"), (field.values, prediction), spectra, strict=True):
        _draw_curve(panels[name], seconds, values[:, 0], color="C0")
        panels[name].set(title=name if name == "truth" else quality, ylim=(-1.05 * peak, 1.05 * peak))
        spectrum = panels[f"{name} spectrum"]
        image = spectrum.imshow(
            decibels, extent=extent, origin="lower", aspect="auto", cmap="magma", vmin=loudest - 80, vmax=loudest
        )
        spectrum.set(xlim=(0, len(values) / rate), ylabel="kHz" if field.rate else "cycles per 1000 samples")
        for axes in (panels[name], spectrum):
            axes.locator_params(axis="x", nbins=6)
        figure.colorbar(image, ax=spectrum, label="dB")
    for name in ("fit", "fit spectrum"):
        panels[name].set_xlabel("seconds" if field.rate else "samples")
    _draw_losses(panels["loss"], losses)
    return figure


def _image_comparison(field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> "Figure":
    fine = field if test is None else test
    window = _most_detailed(_middle(fine.values))
    rows = ["train", "zoom"] if test is None else ["train", "test", "zoom"]
    pictures = {"truth": {"train": field.values, "test": fine.values, "zoom": fine.values}}
    captions = {"truth": {"train": _size(field), "test": _size(fine), "zoom": ""}}
    for name, column in columns.items():
        finest = column.train if column.test is None else column.test
        pictures[name] = {"train": column.train, "test": finest, "zoom": finest}
        captions[name] = {"train": _snr(column.train_metrics), "test": _snr(column.test_metrics), "zoom": ""}

    aspect = _aspect(_middle(fine.values))
    figure = _figure(2.4 * len(pictures) + 0.4, (2.4 * aspect + 0.3) * len(rows) + 0.3)
    panels = figure.subplots(len(rows), len(pictures), squeeze=False)
    for name, column in zip(pictures, panels.T, strict=True):
        for row, axes in zip(rows, column, strict=True):
            values = _middle(pictures[name][row])
            _show(axes, values[window] if row == "zoom" else values, field)
            axes.set_axis_on()
            axes.set(xticks=[], yticks=[], xlabel=captions[name][row])
            if name == "truth":
                axes.set_ylabel(row)
            if row == rows[-2]:
                _draw_box(axes, window)
        column[0].set_title(name)
    return figure


def _curve_comparison(field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> "Figure":
    figure = _figure(3.2 * (len(columns) + 1) + 0.4, 5.0)
    panels = figure.subplots(2, len(columns) + 1, sharey=True, squeeze=False)
    truth, few = field.values[:, 0], min(1000, field.samples)
    samples = np.arange(field.samples)
    panels[0, 0].set(title="truth", ylabel="train")
    panels[1, 0].set(ylabel=f"the first {few} samples")
    _draw_curve(panels[0, 0], samples, truth, color="0.4")
    _draw_curve(panels[1, 0], samples[:few], truth[:few], color="0.4")
    for (name, column), (whole, detail) in zip(columns.items(), panels.T[1:], strict=True):
        whole.set_title(name)
        _draw_curve(whole, samples, column.train[:, 0], color="C0")
        _draw_curve(detail, samples[:few], column.train[:few, 0], color="C0")
        tested = "" if column.test_metrics is None else f", test {_snr(column.test_metrics)}"
        whole.set_xlabel(_snr(column.train_metrics) + tested)
    return figure


def _middle(values: np.ndarray) -> np.ndarray:
    """An image `(height, width, channels)`: the middle of all coordinate axes but the last two."""
    return values[tuple(n // 2 for n in values.shape[:-3])]


def _show(axes: "Axes", values: np.ndarray, field: Grid) -> None:
    low, high = field.value_range
    if field.medium == "lab":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # out of gamut, and clipped
            picture = color.lab2rgb(values)
    elif values.shape[-1] == 3 and high > low:
        picture = np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)
    else:
        picture = values[..., 0]
    axes.imshow(picture, cmap="gray", vmin=low, vmax=high, aspect="auto")
    axes.set_box_aspect(_aspect(values))
    axes.set_axis_off()


def _aspect(values: np.ndarray) -> float:
    """The height of a panel by its width: that of the image, unless it would be a line."""
    return float(np.clip(values.shape[0] / values.shape[1], 0.4, 2.5))


def _most_detailed(values: np.ndarray) -> tuple[slice, slice]:
    """The tile, of four by four, with the steepest slopes."""
    slopes = np.hypot(*np.gradient(values.astype(np.float64).mean(axis=-1)))
    height, width = (max(1, n // 4) for n in slopes.shape)
    tiles = slopes[: 4 * height, : 4 * width]
    tiles = tiles.reshape(len(tiles) // height, height, -1, width)
    row, column = np.unravel_index(tiles.mean(axis=(1, 3)).argmax(), tiles.shape[::2])
    return slice(row * height, (row + 1) * height), slice(column * width, (column + 1) * width)


def _draw_box(axes: "Axes", window: tuple[slice, slice]) -> None:
    from matplotlib.patches import Rectangle

    rows, columns = window
    corner = columns.start - 0.5, rows.start - 0.5
    size = columns.stop - columns.start, rows.stop - rows.start
    axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor="C1", linewidth=1))


def _draw_curve(axes: "Axes", x: np.ndarray, y: np.ndarray, **style) -> None:
    if len(y) <= _POINTS:
        axes.plot(x, y, linewidth=1, **style)
        return
    starts = np.arange(0, len(y), math.ceil(len(y) / _POINTS))
    low, high = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    axes.fill_between(x[starts], low, high, linewidth=0.5, alpha=0.8, **style)


def _draw_losses(axes: "Axes", losses: np.ndarray) -> None:
    axes.loglog(np.arange(1, len(losses) + 1), losses, linewidth=1)
    axes.set_title("loss")
    _label_losses(axes)


def _label_losses(axes: "Axes") -> None:
    axes.set(xlabel="step", ylabel="MSE")
    axes.grid(alpha=0.3)


def _spectrogram(values: np.ndarray, rate: float) -> tuple[tuple[float, float, float, float], np.ndarray]:
    """The power in decibels over time and frequency, and its extent in seconds and kHz; at most about 1,000 columns."""
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    length = min(512, len(values))
    transform = ShortTimeFFT(hann(length, sym=False), hop=max(length // 4, len(values) // 1000, 1), fs=rate)
    power = transform.spectrogram(values.astype(np.float64))
    left, right, bottom, top = transform.extent(len(values))
    return (left, right, bottom / 1000, top / 1000), 10 * np.log10(power + 1e-20)


def _size(field: Grid) -> str:
    return " × ".join(map(str, field.shape))


def _snr(metrics: Metrics | None) -> str:
    return "" if metrics is None else f"SNR {metrics.snr_db:.2f} dB"


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
    least = 1e-2  # sizes that are best at zero begin here
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
