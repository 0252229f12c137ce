"""Views: where the samples of a picture of a network lie, and the cells that they are averages over."""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from .fields import Extent, Sampling

Derivative = Literal["gradient", "laplacian"]


class View(NamedTuple):
    """A grid of samples, of each of which a network is evaluated at a few positions.

    - `shape`: how many samples there are along each axis.
    - `middle`, `half_step`: of every axis, its middle and half the distance between its samples.
    - `offsets`, `weights`: the positions in the cell [-1, 1]ᵈ around a sample, and their weights; `None` for its middle
        alone.
    """

    shape: tuple[int, ...]
    middle: Float[np.ndarray, " axes"]
    half_step: Float[np.ndarray, " axes"]
    offsets: Float[np.ndarray, "nodes axes"] | None
    weights: Float[np.ndarray, " nodes"] | None

    @staticmethod
    def of(
        shape: Sequence[int],
        in_size: int,
        *,
        extents: Extent | Sequence[Extent],
        align: str,
        region: Extent | Sequence[Extent] | None,
        derivative: str | None,
        average: bool,
        nodes: int | Sequence[int],
    ) -> "View":
        """The view for the arguments of `render`, which are checked; `in_size` is the network's."""
        shape = as_shape(shape, in_size)
        if derivative not in (None, "gradient", "laplacian"):
            raise ValueError(f"derivative is {derivative!r}; it must be None, 'gradient' or 'laplacian'")
        require_grid(shape, align)
        spans = intervals("extents", extents, in_size) if region is None else intervals("region", region, in_size)
        rule = _quadrature(_per_axis(nodes, in_size)) if average else (None, None)
        return View(shape, *grid_frame(shape, spans, align), *rule)


def as_shape(shape: Sequence[int], in_size: int) -> tuple[int, ...]:
    """A number of samples for each coordinate; an error if it is none."""
    numbers = tuple(map(operator.index, shape))
    if len(numbers) != in_size or not numbers or min(numbers) < 1:
        raise ValueError(
            f"shape is {numbers}, but the network has {in_size} coordinates; pass a positive number for each"
        )
    return numbers


def grid_frame(
    shape: tuple[int, ...], extents: tuple[Extent, ...], align: str
) -> tuple[Float[np.ndarray, " in_size"], Float[np.ndarray, " in_size"]]:
    """The middle of every axis and half the distance between its samples."""
    low, high = np.asarray(extents, np.float64).T
    cells = np.asarray(shape) - (align == "corners")
    return (low + high) / 2, (high - low) / (2 * cells)


def require_grid(shape: tuple[int, ...], align: str) -> None:
    """Raise an error for a grid that is too large, or has no two ends."""
    if align not in ("centers", "corners"):
        raise ValueError(f"align is {align!r}; it must be 'centers' or 'corners'")
    if align == "corners" and 1 in shape:
        raise ValueError(f"shape is {shape}, but align='corners' includes both ends; pass at least 2 along each axis")
    if math.prod(shape) >= 2**31:
        raise ValueError(f"shape is {shape}, or {math.prod(shape):,} samples; cut it into regions of fewer than 2³¹")


def camera_nodes(fitted: Sequence[float | int], shape: Sequence[int], sampling: Sampling) -> tuple[int, ...]:
    """How to render what a camera would see: the `nodes` along each axis, 1 where points are right.

    **Arguments:**

    - `fitted`: how many samples of the fitted field there are along each axis of what is rendered.
    - `shape`: how many samples are rendered.
    - `sampling`: as what the samples were fitted. Larger cells are always averaged over, and smaller ones never.

    !!! example
        ```python
        camera_nodes((512, 512), (64, 64), "points")  # (18, 18), for a thumbnail
        camera_nodes((512, 512), (2048, 2048), "averages")  # (1, 1), for a magnification
        ```
    """

    def along(ratio: float) -> int:
        if ratio > 1.01:
            return math.ceil(2 * ratio) + 2
        return 4 if ratio > 0.99 and sampling == "averages" else 1

    return tuple(along(n / m) for n, m in zip(fitted, shape, strict=True))


def _per_axis(nodes: int | Sequence[int], axes: int) -> tuple[int, ...]:
    each = (nodes,) * axes if isinstance(nodes, int) else tuple(nodes)
    if len(each) != axes or min(each) < 1:
        raise ValueError(f"nodes is {nodes}; pass a positive number, or one for each of {axes} coordinates")
    return each


def _quadrature(nodes: tuple[int, ...]) -> tuple[Float[np.ndarray, "n axes"], Float[np.ndarray, " n"]]:
    """Positions in the cell [-1, 1]ᵈ and their weights, by Gauss and Legendre along every axis."""
    positions, weights = zip(*map(np.polynomial.legendre.leggauss, nodes), strict=True)
    offsets = np.stack(np.meshgrid(*positions, indexing="ij"), axis=-1).reshape(-1, len(nodes))
    products = functools.reduce(np.multiply.outer, [w / 2 for w in weights])
    return offsets, np.asarray(products).ravel()


def intervals(name: str, intervals: Extent | Sequence[Extent], axes: int) -> tuple[Extent, ...]:
    """One interval for each axis; an error if they are none."""
    array = np.asarray(intervals, dtype=np.float64)
    if array.shape not in ((2,), (axes, 2)) or not np.isfinite(array).all() or (array[..., 0] >= array[..., 1]).any():
        raise ValueError(
            f"{name} is {intervals!r}; pass a finite (low, high) with low < high, or one for each of {axes} coordinates"
        )
    return tuple((float(low), float(high)) for low, high in np.broadcast_to(array, (axes, 2)))
