"""The pictures of a comparison: the results of several schemes side by side, and their learning curves."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from ..signals.fields import Grid
from ..signals.metrics import Metrics
from ..signals.paths import FilePath
from .drawing import draw_curve, label_losses, middle_slice, new_figure, panel_aspect, save_figure, show_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Column(NamedTuple):
    """The values of one scheme on the training and the test field, and their metrics."""

    train: Shaped[np.ndarray, "..."]
    test: Shaped[np.ndarray, "..."] | None
    train_metrics: Metrics
    test_metrics: Metrics | None


def write_comparison(path: FilePath, field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> None:
    """Draw a field beside the results of several schemes: the training samples, the test samples and a detail.

    The file is written whole or not at all.

    !!! example
        ```python
        prediction = render(network, field.shape)
        columns = {"sm20": Column(prediction, None, evaluate(prediction, field), None)}
        write_comparison("schemes.png", field, None, columns)
        ```
    """
    draw = _curve_comparison if field.in_size == 1 else _image_comparison
    save_figure(draw(field, test, columns), path)


def write_learning_curves(path: FilePath, losses: Mapping[str, Sequence[Float[np.ndarray, " steps"]]]) -> None:
    """Draw the loss of every step for several schemes: the mean over the seeds, and the band between the extremes.

    The file is written whole or not at all.

    !!! example
        ```python
        write_learning_curves("curves.png", {"sm20": [np.geomspace(1.0, 0.01, 100), np.geomspace(1.0, 0.02, 100)]})
        ```
    """
    figure = new_figure(7.0, 4.5)
    axes = figure.subplots()
    for name, runs in losses.items():
        stack = np.stack(runs)
        steps = np.arange(1, stack.shape[1] + 1)
        axes.loglog(steps, stack.mean(axis=0), linewidth=1, label=name)
        if len(runs) > 1:
            axes.fill_between(steps, stack.min(axis=0), stack.max(axis=0), alpha=0.2)
    axes.legend()
    label_losses(axes)
    save_figure(figure, path)


def _image_comparison(field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> "Figure":
    fine = field if test is None else test
    window = _most_detailed(middle_slice(fine.values))
    rows = ["train", "zoom"] if test is None else ["train", "test", "zoom"]
    pictures = {"truth": {"train": field.values, "test": fine.values, "zoom": fine.values}}
    captions = {"truth": {"train": _size(field), "test": _size(fine), "zoom": ""}}
    for name, column in columns.items():
        finest = column.train if column.test is None else column.test
        pictures[name] = {"train": column.train, "test": finest, "zoom": finest}
        captions[name] = {"train": _snr(column.train_metrics), "test": _snr(column.test_metrics), "zoom": ""}

    aspect = panel_aspect(middle_slice(fine.values))
    figure = new_figure(2.4 * len(pictures) + 0.4, (2.4 * aspect + 0.3) * len(rows) + 0.3)
    panels = figure.subplots(len(rows), len(pictures), squeeze=False)
    for name, column in zip(pictures, panels.T, strict=True):
        for row, axes in zip(rows, column, strict=True):
            values = middle_slice(pictures[name][row])
            show_image(axes, values[window] if row == "zoom" else values, field)
            axes.set_axis_on()
            axes.set(xticks=[], yticks=[], xlabel=captions[name][row])
            if name == "truth":
                axes.set_ylabel(row)
            if row == rows[-2]:
                _draw_box(axes, window)
        column[0].set_title(name)
    return figure


def _curve_comparison(field: Grid, test: Grid | None, columns: Mapping[str, Column]) -> "Figure":
    figure = new_figure(3.2 * (len(columns) + 1) + 0.4, 5.0)
    panels = figure.subplots(2, len(columns) + 1, sharey=True, squeeze=False)
    truth, few = field.values[:, 0], min(1000, field.samples)
    samples = np.arange(field.samples)
    panels[0, 0].set(title="truth", ylabel="train")
    panels[1, 0].set(ylabel=f"the first {few} samples")
    draw_curve(panels[0, 0], samples, truth, color="0.4")
    draw_curve(panels[1, 0], samples[:few], truth[:few], color="0.4")
    for (name, column), (whole, detail) in zip(columns.items(), panels.T[1:], strict=True):
        whole.set_title(name)
        draw_curve(whole, samples, column.train[:, 0], color="C0")
        draw_curve(detail, samples[:few], column.train[:few, 0], color="C0")
        tested = "" if column.test_metrics is None else f", test {_snr(column.test_metrics)}"
        whole.set_xlabel(_snr(column.train_metrics) + tested)
    return figure


def _most_detailed(values: np.ndarray) -> tuple[slice, slice]:
    """The steepest of four by four tiles."""
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


def _size(field: Grid) -> str:
    return " × ".join(map(str, field.shape))


def _snr(metrics: Metrics | None) -> str:
    return "" if metrics is None else f"SNR {metrics.snr_db:.2f} dB"
