"""The picture of a fit to scattered points."""

from typing import TYPE_CHECKING

import numpy as np

from ..signals.fields import Field, Points, axis_coordinates
from .drawing import draw_losses, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def surface_shape(field: Field) -> tuple[int, ...] | None:
    """The shape of the grid on which the fit to scattered points is drawn between them, if it can be drawn."""
    return {1: (1000,), 2: (200, 200)}.get(field.in_size) if isinstance(field, Points) else None


def scatter_figure(
    points: Points, prediction: np.ndarray, surface: np.ndarray | None, losses: np.ndarray, quality: str
) -> "Figure":
    """Draw the first channel of scattered points, of a fit to them and between them, the error and the losses.

    **Arguments:**

    - `points`: what was fitted.
    - `prediction`: the network's values at the points.
    - `surface`: the network's values on a grid over the bounding box, ends included. Without it, and with more than two
        coordinates, the prediction is drawn against the truth.
    - `losses`, `quality`: of every step, and a title for the fit.
    """
    if surface is None or points.in_size > 2:
        return _agreement(points, prediction, losses, quality)
    return (_curve if points.in_size == 1 else _map)(points, prediction, surface, losses, quality)


def _map(points: Points, prediction: np.ndarray, surface: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    (x_low, y_low), (x_high, y_high) = points.positions.min(axis=0), points.positions.max(axis=0)
    aspect = float(np.clip((y_high - y_low) / (x_high - x_low), 0.4, 2.5))
    figure = new_figure(16.4, 3.6 * aspect + 0.8)
    truth, fit, error, loss = panels = figure.subplots(1, 4)
    low, high = points.values[:, 0].min(), points.values[:, 0].max()
    dots = _dots(truth, points, points.values[:, 0], cmap="viridis", vmin=low, vmax=high)
    columns, rows = surface.shape[:2]
    x_half, y_half = (x_high - x_low) / (columns - 1) / 2, (y_high - y_low) / (rows - 1) / 2
    cells = (x_low - x_half, x_high + x_half, y_low - y_half, y_high + y_half)  # around the samples at the ends, too
    fit.imshow(surface[..., 0].T, origin="lower", extent=cells, aspect="auto", cmap="viridis", vmin=low, vmax=high)
    figure.colorbar(dots, ax=fit, format="%.3g")
    worst = _dots(error, points, _error(points, prediction), cmap="magma", vmin=0)
    figure.colorbar(worst, ax=error, format="%.2g")
    for axes, title in zip(panels, ("truth", quality, "|error|"), strict=False):
        axes.set(title=title, xlim=(x_low, x_high), ylim=(y_low, y_high))
    draw_losses(loss, losses)
    for axes in panels:
        axes.set_box_aspect(aspect)
    return figure


def _curve(points: Points, prediction: np.ndarray, surface: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = new_figure(14.0, 4.0)
    curves, error, loss = figure.subplots(1, 3, width_ratios=[2, 2, 1.4])
    x = points.positions[:, 0]
    between = axis_coordinates(len(surface), (float(x.min()), float(x.max())), "corners")
    curves.plot(x, points.values[:, 0], ".", color="0.5", label="truth")
    curves.plot(between, surface[:, 0], linewidth=1, color="C0", label="fit")
    curves.legend()
    curves.set_title(quality)
    error.plot(x, prediction[:, 0].astype(np.float64) - points.values[:, 0], ".", color="C3")
    error.set_title("error")
    draw_losses(loss, losses)
    return figure


def _agreement(points: Points, prediction: np.ndarray, losses: np.ndarray, quality: str) -> "Figure":
    figure = new_figure(12.0, 4.0)
    fit, error, loss = figure.subplots(1, 3)
    truth = points.values[:, 0]
    fit.plot(truth, prediction[:, 0], ".", markersize=3)
    fit.axline((truth.mean(), truth.mean()), slope=1, color="0.5", linewidth=1)
    fit.set(title=quality, xlabel="truth", ylabel="fit")
    error.plot(truth, prediction[:, 0].astype(np.float64) - truth, ".", markersize=3, color="C3")
    error.set(title="error", xlabel="truth")
    draw_losses(loss, losses)
    return figure


def _dots(axes: "Axes", points: Points, colors: np.ndarray, **style):
    size = float(np.clip(20_000 / points.samples, 2, 40))
    return axes.scatter(*points.positions.T, c=colors, s=size, linewidth=0, **style)


def _error(points: Points, prediction: np.ndarray) -> np.ndarray:
    return np.abs(prediction.astype(np.float64) - points.values).mean(axis=1)
