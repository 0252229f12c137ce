"""A fit as a notebook shows it: a picture, the losses, the metrics and what was done. It is quick, and never fails."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from ..plots.drawing import positive_losses
from ..signals.fields import Field, Grid, Points
from ..signals.images import as_pixels
from ..signals.markup import Html, captioned, curves, folded, image, section, side_by_side, table
from ..signals.metrics import Metrics
from ..signals.views import grid_frame
from ..storage.network_file import Domain
from .arguments import counted

if TYPE_CHECKING:
    from .result import Result

# The pixels along each axis at which a network is evaluated for its picture, and those that are averaged into one if
# its values are known already.
_SIDE, _AVERAGED = 192, 4
# The samples of a curve that are looked at.
_SAMPLES = 40_000


def summary(result: "Result") -> Html:
    """The HTML of a fit of either framework."""
    rows = {"fit": result.metrics, "test": result.test_metrics, "before rounding": result.exact_metrics}
    cells = [_cells(name, metrics) for name, metrics in rows.items() if metrics is not None]
    steps = np.arange(1, len(result.losses) + 1)
    return section(
        _title(result),
        side_by_side(_thumbnail(result), losses_curve(steps, result.losses, result.steps)),
        table(("", "MSE", "SNR dB", "PSNR dB", "SSIM"), cells) if cells else Html(),
        _done(result),
        *(folded(name, Html(part._repr_html_())) for name, part in _origins(result) if part is not None),
    )


def _title(result: "Result") -> str:
    """What was fitted to what."""
    network = type(result.network).__name__ if result.blueprint is None else result.blueprint.scheme
    field = result.field
    if field is None:
        return network
    size = " × ".join(map(str, field.shape)) if isinstance(field, Grid) else f"{field.samples:,} scattered"
    return f"{network}: {size} samples of {counted(field.out_size, 'channel')}, as {result.sampling}"


def _done(result: "Result") -> str:
    words = f"{counted(result.steps, 'step')} of {result.recipe.batch:,} samples in {result.seconds:.1f} s"
    optimizer = result.recipe.optimizer
    words += "" if optimizer == "given" else f", by {optimizer.capitalize()}"
    ends = {"seconds": "time was up", "target": "the target was reached", "noise": "only noise was left"}
    words += f"; {ends[result.stop]}" if result.stop in ends else ""
    return words if result.bits is None else f"{words}; hidden matrices in {result.bits} bits"


def _origins(result: "Result") -> tuple[tuple[str, Any], ...]:
    return ("drawn from these laws", result.blueprint), ("moments of the signal", result.moments)


def _cells(name: str, metrics: Metrics) -> tuple[str, ...]:
    numbers = metrics.mse, metrics.snr_db, metrics.psnr_db, metrics.ssim
    return name, *("—" if number is None else f"{number:.4g}" for number in numbers)


def _thumbnail(result: "Result") -> Html:
    """A picture of what was fitted: of an image as it is, of more axes a slice in the middle, of one axis a curve."""
    try:
        if result.field is None:
            return Html()
        return _curve(result, result.field) if result.field.in_size == 1 else _picture(result, result.field)
    except Exception:  # a user's network may raise anything, and to look at a result must not
        return Html()


def losses_curve(steps: Shaped[np.ndarray, " n"], losses: Shaped[np.ndarray, " n"], most: int) -> Html:
    """The logarithms of the losses at some steps, on an axis of `most` steps."""
    means = positive_losses(losses.astype(np.float64)) if len(losses) else np.zeros(0)
    known = means[np.isfinite(means)]
    words = f"loss {known[0]:.1e} → {known[-1]:.1e}" if known.size else "loss"
    line = steps[len(steps) - len(means) :], np.log10(means)
    return captioned(curves([line], f"{words}, on a logarithmic axis over the steps", span=(0.0, float(most))), words)


def _picture(result: "Result", field: Field) -> Html:
    medium = field.medium if isinstance(field, Grid) else None
    colours = 3 if medium == "lab" or field.out_size == 3 else 1
    values = _grid_values(result, field) if isinstance(field, Grid) else _surface(result, field)
    low, high = field.value_range
    finite = np.nan_to_num(values[..., :colours], nan=low, posinf=high, neginf=low)
    pixels = as_pixels(finite, medium, (low, high))
    words = "the fit" if field.in_size == 2 else "the fit, in the middle"
    return captioned(image(pixels, words), words)


def _grid_values(result: "Result", field: Grid) -> np.ndarray:
    """The fit at some samples of the last two axes, in the middle of the others."""
    kept = result.prediction
    most = _SIDE * (1 if kept is None else _AVERAGED)
    indices = [np.array([n // 2]) for n in field.shape[:-2]]
    indices += [np.arange(0, n, math.ceil(n / most)) for n in field.shape[-2:]]
    if kept is None:
        frame = zip(*grid_frame(field.shape, field.extents, field.align), field.shape, indices, strict=True)
        values = _evaluate(result, [middle + half_step * (2 * i - (n - 1)) for middle, half_step, n, i in frame])
    else:
        values = kept.reshape(field.values.shape)[..., :3][np.ix_(*indices)]
    return values.reshape(*values.shape[-3:])


def _surface(result: "Result", field: Points) -> np.ndarray:
    """The fit between scattered points; the first of the last two axes goes to the right, and the second upwards."""
    extents = Domain.of(field).extents
    axes = [np.array([(low + high) / 2]) for low, high in extents[:-2]]
    axes += [np.linspace(low, high, _SIDE) for low, high in extents[-2:]]
    values = _evaluate(result, axes)
    return np.flip(values.reshape(*values.shape[-3:]).swapaxes(0, 1), axis=0)


def _evaluate(result: "Result", axes: list[np.ndarray]) -> np.ndarray:
    positions = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    flat = positions.reshape(-1, len(axes))
    values = result._predict(Points(flat, np.zeros(len(flat))), average=False)
    return values.reshape(*positions.shape[:-1], -1)


def _curve(result: "Result", field: Field) -> Html:
    """The first channel of the field, and of the fit in front of it."""
    order = np.arange(0, field.samples, math.ceil(field.samples / _SAMPLES))
    if isinstance(field, Grid):
        (middle,), (half_step,) = grid_frame(field.shape, field.extents, field.align)
        x = middle + half_step * (2 * order - (field.samples - 1))
    else:
        order = order[np.argsort(field.positions[order, 0])]
        x = field.positions[order, 0]
    kept = result.prediction
    fitted = _evaluate(result, [x]) if kept is None else kept.reshape(-1, field.out_size)[order]
    lines = [(x, field.flat_values()[order, 0]), (x, fitted[:, 0])]
    return captioned(curves(lines, "the signal and the fit"), "the fit (blue) and the signal")
