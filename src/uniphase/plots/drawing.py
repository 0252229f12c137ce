"""Drawing shared by all figures: panels of images, curves and losses. Matplotlib is imported only when drawing."""

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from skimage import color

from ..signals.fields import Grid
from ..signals.paths import FilePath, atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 120
# Curves of more points than this are drawn as the band between their extremes.
_POINTS = 2000


def require_matplotlib() -> None:
    """Raise an ImportError if Matplotlib is missing: before the work whose result will be drawn, not after it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('figures need matplotlib; pip install "uniphase[cli]"', name=error.name) from error


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches. It belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="compressed")


def save_figure(figure: "Figure", path: FilePath) -> None:
    """Write a figure to a file, whole or not at all."""
    with warnings.catch_warnings(), atomic_path(path) as temporary:
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # titles may have letters that the font lacks
        figure.savefig(temporary, dpi=_DPI, bbox_inches="tight")


def middle_slice(values: np.ndarray) -> np.ndarray:
    """An image `(height, width, channels)`: the middle of every coordinate axis except the last two."""
    return values[tuple(n // 2 for n in values.shape[:-3])]


def show_image(axes: "Axes", values: np.ndarray, field: Grid) -> None:
    """Show an image in the colours of its field; what is missing is white."""
    low, high = field.value_range
    values = np.where(np.isnan(values), (100.0, 0.0, 0.0) if field.medium == "lab" else high, values)
    if field.medium == "lab":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # out of gamut: clipped
            picture = color.lab2rgb(values)
    elif values.shape[-1] == 3 and high > low:
        picture = np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)
    else:
        picture = values[..., 0]
    axes.imshow(picture, cmap="gray", vmin=low, vmax=high, aspect="auto")
    axes.set_box_aspect(panel_aspect(values))
    axes.set_axis_off()


def panel_aspect(values: np.ndarray) -> float:
    """The height of a panel divided by its width: that of the image, limited so that the panel is not a line."""
    return float(np.clip(values.shape[0] / values.shape[1], 0.4, 2.5))


def draw_curve(axes: "Axes", x: np.ndarray, y: np.ndarray, **style) -> None:
    """Draw y over x, as a line or, if there are many points, as the band between their extremes."""
    if len(y) <= _POINTS:
        axes.plot(x, y, linewidth=1, **style)
        return
    starts = np.arange(0, len(y), math.ceil(len(y) / _POINTS))
    low, high = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    axes.fill_between(x[starts], low, high, linewidth=0.5, alpha=0.8, **style)


def draw_losses(axes: "Axes", losses: np.ndarray) -> None:
    """Draw the loss of every step."""
    means = positive_losses(losses)
    axes.loglog(np.arange(len(losses) - len(means), len(losses)) + 1, means, linewidth=1)
    axes.set_title("loss")
    label_losses(axes)


def positive_losses(losses: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " fewer"]:
    """Losses for a logarithmic axis, NaN where there is none. The last belongs to the last step.

    Losses that scatter around zero, as those of averages, are averaged over steps.
    """
    window = max(1, len(losses) // 20) if (losses <= 0).any() else 1
    means = np.convolve(losses, np.full(window, 1 / window), mode="valid")
    return np.where(means > 0, means, np.nan)


def label_losses(axes: "Axes") -> None:
    """Name the axes of a panel of losses."""
    axes.set(xlabel="step", ylabel="MSE")
    axes.grid(alpha=0.3)
