"""Rendering: a model's values and derivatives on a grid of any size, in chunks of bounded memory."""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..signals.fields import Align, Extent, Field, Grid
from ..signals.metrics import Metrics, evaluate
from ..signals.views import Derivative, View
from .derivatives import gradient, laplacian
from .evaluation import evaluate_rows, evaluating, place_of, require_module

# Positions that are evaluated at once.
_CHUNK = 1 << 14


def render(
    model: nn.Module,
    shape: Sequence[int],
    *,
    extents: Extent | Sequence[Extent] = (-1.0, 1.0),
    align: Align = "centers",
    region: Extent | Sequence[Extent] | None = None,
    derivative: Derivative | None = None,
    average: bool = False,
    nodes: int | Sequence[int] = 4,
) -> Float[np.ndarray, "..."]:
    """The values of a model on a grid, at any resolution, as `uniphase.render`.

    With the extents and alignment of the field that the model was fitted to, the shape of the field gives the positions
    it was fitted at. Dropout and the like are off.

    **Arguments:**

    - `model`: what to render: any module from positions to channels.
    - `shape`: the number of samples along each coordinate axis.
    - `extents`, `align`: the domain, as for `Grid`.
    - `region`: what to show of the domain, or beyond: the interval `(low, high)` that the samples span along each axis,
        in the units of the extents. Default: all of it.
    - `derivative`: `"gradient"` for the derivative of every channel by every coordinate, `"laplacian"` for the sum of
        the second derivatives of every channel.
    - `average`: whether to take the mean over the cell around each sample, as a camera does, instead of the value in
        its middle.
    - `nodes`: positions of Gauss and Legendre along each axis of a cell, or one number for each axis. Four are enough
        for cells of the fitted size, and cells that are k times wider need about 2k + 2.

    **Returns:**

    A NumPy array in the precision of the model, of shape `(*shape, out_size)`, or `(*shape, out_size, in_size)` for the
    gradient.

    !!! example
        ```python
        picture = render(model, (64, 64))
        corner = render(model, (64, 64), region=((-1.0, -0.9), (-1.0, -0.9)))
        edges = render(model, (64, 64), derivative="gradient")
        thumbnail = render(model, (8, 8), average=True, nodes=18)
        ```
    """
    require_module(model)
    view = View.of(
        shape,
        getattr(model, "in_size", len(shape)),
        extents=extents,
        align=align,
        region=region,
        derivative=derivative,
        average=average,
        nodes=nodes,
    )
    values = _in_chunks(model, math.prod(view.shape), lambda rows: _render_rows(model, rows, view, derivative))
    return values.reshape(*view.shape, *values.shape[1:])


def _in_chunks(model: nn.Module, samples: int, evaluate: Callable[[range], Tensor]) -> np.ndarray:
    """What is evaluated for each of some samples, a chunk at a time."""
    values: np.ndarray | None = None
    with evaluating(model), torch.no_grad():
        for start in range(0, samples, _CHUNK):
            chunk = _to_numpy(evaluate(range(start, min(start + _CHUNK, samples))))
            values = np.empty((samples, *chunk.shape[1:]), chunk.dtype) if values is None else values
            values[start : start + len(chunk)] = chunk
    assert values is not None
    return values


def _render_rows(model: nn.Module, rows: range, view: View, derivative: Derivative | None) -> Tensor:
    device, dtype = place_of(model)
    middle, half_step = (torch.tensor(each).to(device, dtype) for each in (view.middle, view.half_step))
    indices = torch.arange(rows.start, rows.stop, device=device)
    centers = frame_positions(indices, view.shape, middle, half_step)
    if view.offsets is None or view.weights is None:
        return _evaluate(model, centers, derivative)
    offsets, weights = torch.tensor(view.offsets).to(device, dtype), view.weights.tolist()
    # The weights add up to 1: the mean is one value, plus that of the differences from it, which are rounded like the
    # detail and not like an offset.
    start = _evaluate(model, centers + half_step * offsets[0], derivative)
    nodes = zip(offsets[1:], weights[1:], strict=True)
    parts = (weight * (_evaluate(model, centers + half_step * offset, derivative) - start) for offset, weight in nodes)
    return start + functools.reduce(torch.add, parts, torch.zeros_like(start))


def _evaluate(model: nn.Module, x: Tensor, derivative: Derivative | None) -> Tensor:
    if derivative is None:
        return evaluate_rows(model, x)
    return gradient(model, x) if derivative == "gradient" else laplacian(model, x)


def frame_positions(
    indices: Int[Tensor, " n"],
    shape: tuple[int, ...],
    middle: Float[Tensor, " in_size"],
    half_step: Float[Tensor, " in_size"],
) -> Float[Tensor, "n in_size"]:
    """The positions of some samples of a grid, by their flat indices: rows of `Grid.coordinates()`.

    Each axis is counted from its middle in whole numbers, so that positions there are as fine as the type allows.

    **Arguments:**

    - `indices`: flat indices, the last axis running fastest.
    - `shape`: of the grid.
    - `middle`, `half_step`: as `uniphase.signals.views.grid_frame` gives them, in the type of the positions.
    """
    axes = [2 * i - (n - 1) for i, n in zip(torch.unravel_index(indices, shape), shape, strict=True)]
    return middle + half_step * torch.stack(axes, dim=-1).to(middle)


def predict(model: nn.Module, field: Field, *, average: bool = False) -> Float[np.ndarray, "..."]:
    """The values of a model at the samples of a field, in the shape of its values.

    **Arguments:**

    - `model`, `field`: what to evaluate, and where.
    - `average`: whether the samples of a grid are means over their cells, as for `render`.

    !!! example
        ```python
        from uniphase.torch.render import predict

        error = predict(model, field) - field.values
        ```
    """
    if isinstance(field, Grid):
        return render(model, field.shape, extents=field.extents, align=field.align, average=average)
    if average:
        raise ValueError("scattered points have no cells to average over; pass average=False")
    require_module(model)
    device, dtype = place_of(model)

    def at(rows: range) -> Tensor:
        return evaluate_rows(model, torch.tensor(field.positions[rows.start : rows.stop]).to(device, dtype))

    return _in_chunks(model, field.samples, at)


def evaluate_network(model: nn.Module, field: Field, *, average: bool = False) -> Metrics:
    """The metrics of a model over all samples of a field.

    **Arguments:**

    - `model`, `field`: what to evaluate, and against what.
    - `average`: whether the samples of a grid are means over their cells, as for `render`.

    !!! example
        ```python
        evaluate_network(model, field).snr_db
        ```
    """
    return evaluate(predict(model, field, average=average), field)


def _to_numpy(tensor: Tensor) -> np.ndarray:
    # NumPy has no bfloat16.
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().cpu().numpy()
