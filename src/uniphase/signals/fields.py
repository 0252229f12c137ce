"""Fields: samples of an unknown function from coordinates to channels.

A field is a `Grid` (values on a regular grid with any number of axes) or `Points` (values at scattered
positions). Both have coordinates in the user's own units; no other module assumes a range.
"""

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy.typing import ArrayLike

Align = Literal["centers", "corners"]
Medium = Literal["gray", "rgb", "lab", "sound"]
Sampling = Literal["points", "averages"]
Extent = tuple[float, float]

# Rows of samples that are looked at once.
_ROWS = 1 << 20


@dataclass(frozen=True, eq=False, init=False)
class Grid:
    """Values on a regular grid.

    **Arguments:**

    - `values`: an array of shape `(*shape, channels)`; the last axis is always the channels, even if there is one.
        It is kept as it is (dtype, memory map), never copied. A sample with NaN in one of its channels is missing: it
        is neither fitted nor counted.
    - `extents`: the interval `(low, high)` that each axis spans, or one interval for all axes. The default stretches
        every axis to (-1, 1); for equal spacing along all axes, as from `image` and `array`, pass
        `square_extents(shape)`.
    - `align`: where the samples lie in their interval. `"centers"`: in the middle of `n` equal cells, as the pixels of
        a photo. `"corners"`: evenly from one end to the other, both included.
    - `medium`: what the values are, if that is known: the colour space of an image, or sound.
    - `rate`: samples per second along the first axis of a sound or a video. A grid of three axes with a rate is a
        video, and one without is a volume.
    - `value_range`: the interval from black to white, or between the peaks of a sound, which PSNR, SSIM and pictures
        refer to. Default: (-1, 1) for sounds; for other values the interval that they take, except that it is (0, 1)
        for an image in gray or RGB whose values lie in [0, 1] and reach beyond 1/2.
    - `stored`: the NumPy type of the numbers in the source, e.g. `"uint16"`, if that is known; `write` takes it, to
        write values in the type that they were read in.
    - `sampling`: what a sample is: the value at a point, `"points"`, or the mean over the cell around it, `"averages"`,
        as that of a camera's pixel is.

    !!! example
        ```python
        grid = Grid(np.zeros((480, 640, 3)), extents=((0.0, 4.8), (0.0, 6.4)))
        grid.spacing  # (0.01, 0.01)
        ```
    """

    values: Shaped[np.ndarray, "*shape out_size"]
    extents: tuple[Extent, ...]
    align: Align
    medium: Medium | None
    rate: float | None
    value_range: Extent
    stored: str | None
    sampling: Sampling

    def __init__(
        self,
        values: ArrayLike,
        *,
        extents: Extent | Sequence[Extent] = (-1.0, 1.0),
        align: Align = "centers",
        medium: Medium | None = None,
        rate: float | None = None,
        value_range: Extent | None = None,
        stored: str | None = None,
        sampling: Sampling = "points",
    ):
        _require_channels_last(values)
        values = _numeric("values", values)
        if values.ndim < 2:
            raise ValueError(
                f"values has shape {values.shape}: a grid needs at least one coordinate axis and a channel axis; "
                "for a single channel, pass values[..., None]"
            )
        if values.size == 0:
            raise ValueError(
                f"values has shape {values.shape}, which holds no samples; pass at least 2 along each axis"
            )
        for axis, n in enumerate(values.shape[:-1]):
            if n == 1:
                raise ValueError(
                    f"values has shape {values.shape}: one sample on axis {axis}, where no derivative can be taken; "
                    f"drop the axis with values.squeeze({axis})"
                )
        _require_known(values)
        if align not in ("centers", "corners"):
            raise ValueError(f"align is {align!r}; it must be 'centers' or 'corners'")
        if sampling not in ("points", "averages"):
            raise ValueError(f"sampling is {sampling!r}; it must be 'points' or 'averages'")
        _require_number_type(stored)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "extents", _per_axis_extents(extents, values.ndim - 1))
        object.__setattr__(self, "align", align)
        object.__setattr__(self, "medium", medium)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "value_range", _chosen_range(value_range, values, medium))
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "sampling", sampling)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of samples along each coordinate axis."""
        return self.values.shape[:-1]

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.values.ndim - 1

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.values.shape[-1]

    @property
    def samples(self) -> int:
        """Number of sample positions, including those whose sample is missing."""
        return self.values.size // self.out_size

    @functools.cached_property
    def missing(self) -> Bool[np.ndarray, " samples"] | None:
        """Which samples are missing, in the order of `flat_values`; `None` if none is."""
        if self.values.dtype.kind != "f":
            return None
        flat = self.flat_values()
        blocks = [flat[i : i + _ROWS] for i in range(0, len(flat), _ROWS)]
        if not any(np.isnan(block).any() for block in blocks):  # most often, and then nothing is set aside for it
            return None
        return np.concatenate([np.isnan(block).any(axis=1) for block in blocks])

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring samples along each axis."""
        return tuple(
            (high - low) / (n if self.align == "centers" else n - 1)
            for n, (low, high) in zip(self.shape, self.extents, strict=True)
        )

    def coordinates(self) -> Float[np.ndarray, "samples in_size"]:
        """The position of every sample, in the order of `flat_values`."""
        return grid_coordinates(self.shape, self.extents, self.align)

    def position_moments(self) -> tuple[Float[np.ndarray, " in_size"], Float[np.ndarray, "in_size in_size"]]:
        """The mean and the covariance of `coordinates()`, computed without them."""
        middle = np.array([(low + high) / 2 for low, high in self.extents])
        variances = [(h * h) * (n * n - 1) / 12 for n, h in zip(self.shape, self.spacing, strict=True)]
        return middle, np.diag(variances)

    def flat_values(self) -> Shaped[np.ndarray, "samples out_size"]:
        """The values as one row per sample."""
        return self.values.reshape(-1, self.out_size)


@dataclass(frozen=True, eq=False, init=False)
class Points:
    """Values at scattered positions, in any order.

    **Arguments:**

    - `positions`: an array of shape `(samples, in_size)`, or `(samples,)` for one coordinate.
    - `values`: an array of shape `(samples, out_size)`, or `(samples,)` for one channel.

    !!! example
        ```python
        positions = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
        points = Points(positions, np.sin(9 * positions[:, 0]))
        ```
    """

    positions: Float[np.ndarray, "samples in_size"]
    values: Shaped[np.ndarray, "samples out_size"]

    def __init__(self, positions: ArrayLike, values: ArrayLike):
        positions = _as_columns("positions", _numeric("positions", positions))
        values = _as_columns("values", _numeric("values", values))
        if len(positions) != len(values):
            raise ValueError(
                f"positions has {len(positions)} rows but values has {len(values)}; pass one position for each value"
            )
        if values.size == 0 or positions.size == 0:
            raise ValueError(f"values has shape {values.shape} and positions {positions.shape}: no samples; pass some")
        _require_finite("positions", positions)
        _require_finite("values", values)
        object.__setattr__(self, "positions", positions.astype(np.float64, copy=False))
        object.__setattr__(self, "values", values)

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.positions.shape[1]

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.values.shape[1]

    @property
    def samples(self) -> int:
        """Number of sample positions."""
        return len(self.values)

    @property
    def missing(self) -> None:
        """No sample is missing: what is not known is left out."""
        return None

    @functools.cached_property
    def value_range(self) -> tuple[float, float]:
        """The interval that the values take."""
        return taken_range(self.values)

    def coordinates(self) -> Float[np.ndarray, "samples in_size"]:
        """The position of every sample, in the order of `flat_values`."""
        return self.positions

    def position_moments(self) -> tuple[Float[np.ndarray, " in_size"], Float[np.ndarray, "in_size in_size"]]:
        """The mean and the covariance of `coordinates()`."""
        return self.positions.mean(axis=0), np.atleast_2d(np.cov(self.positions.T, ddof=0))

    def flat_values(self) -> Shaped[np.ndarray, "samples out_size"]:
        """The values as one row per sample."""
        return self.values


Field = Grid | Points
"""What a network is fitted to: a `Grid` or `Points`."""


def axis_coordinates(n: int, extent: Extent, align: Align) -> Float[np.ndarray, " n"]:
    """The positions of `n` samples on one axis.

    !!! example
        ```python
        axis_coordinates(4, (-1.0, 1.0), "centers")  # [-0.75, -0.25, 0.25, 0.75]
        axis_coordinates(5, (-1.0, 1.0), "corners")  # [-1.0, -0.5, 0.0, 0.5, 1.0]
        ```
    """
    low, high = extent
    if align == "corners":
        return np.linspace(low, high, n)
    return low + (np.arange(n) + 0.5) * ((high - low) / n)


def grid_coordinates(
    shape: tuple[int, ...], extents: tuple[Extent, ...], align: Align
) -> Float[np.ndarray, "samples in_size"]:
    """The positions of all samples of a grid, the last axis running fastest."""
    axes = [axis_coordinates(n, extent, align) for n, extent in zip(shape, extents, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))


def square_extents(shape: tuple[int, ...], align: Align = "centers") -> tuple[Extent, ...]:
    """Extents in which neighbouring samples are equally far apart along all axes.

    The longest axis spans (-1, 1); the others are shorter in proportion and centred at 0.

    !!! example
        ```python
        square_extents((64, 256))  # ((-0.25, 0.25), (-1.0, 1.0))
        square_extents((3, 5), "corners")  # ((-0.5, 0.5), (-1.0, 1.0))
        ```
    """
    steps = [n if align == "centers" else max(n - 1, 1) for n in shape]
    return tuple((-n / max(steps), n / max(steps)) for n in steps)


def taken_range(values: Shaped[np.ndarray, "..."]) -> Extent:
    """The interval that some values take; NaN are left out."""
    extremes = [(np.fmin.reduce(slab, axis=None), np.fmax.reduce(slab, axis=None)) for slab in _slabs_of(values)]
    extremes = [pair for pair in extremes if not np.isnan(pair[0])]
    if not extremes:
        raise _nothing_known(values)
    return float(min(low for low, _ in extremes)), float(max(high for _, high in extremes))


def image_range(taken: Extent) -> Extent:
    """The interval from black to white of an image whose values take the interval `taken`.

    Values in [0, 1] that never pass 1/2 leave the highest bit of their type unused, as the 12 bits of a camera do that
    are stored in 16: there, 1 is not white.
    """
    low, high = taken
    return (0.0, 1.0) if low >= 0 and 0.5 < high <= 1 else taken


def slabs(shape: tuple[int, ...], limit: int) -> Iterator[tuple[int, int, int]]:
    """Cut an array into slabs `(axis, start, stop)` along its longest axis, each of at most about `limit` numbers.

    An array that is memory-mapped and too large for memory is read in slabs.
    """
    axis = int(np.argmax(shape))
    thickness = max(1, limit * shape[axis] // math.prod(shape))
    for start in range(0, shape[axis], thickness):
        yield axis, start, min(start + thickness, shape[axis])


def _per_axis_extents(extents: Extent | Sequence[Extent], axes: int) -> tuple[Extent, ...]:
    array = np.asarray(extents, dtype=np.float64)
    if array.shape == (2,):
        array = np.tile(array, (axes, 1))
    if array.shape != (axes, 2):
        raise ValueError(
            f"extents is {extents!r}, but values has {axes} coordinate axes; pass one (low, high), or one for each axis"
        )
    if not (np.isfinite(array).all() and (array[:, 0] < array[:, 1]).all()):
        raise ValueError(f"extents is {extents!r}; every (low, high) must be finite with low < high")
    return tuple((float(low), float(high)) for low, high in array)


def _is_tensor(array) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def _require_channels_last(values) -> None:
    """PyTorch's images have their channels first; what would then be the channels is an axis of the image."""
    if _is_tensor(values) and values.ndim > 2 and values.shape[0] in (1, 3, 4) and values.shape[-1] > 4:
        raise ValueError(
            f"values is a tensor of shape {tuple(values.shape)}, whose channels seem to be first; pass "
            "values.movedim(0, -1), or values.numpy() if the last axis is the channels"
        )


def _numeric(name: str, array) -> np.ndarray:
    if _is_tensor(array) and (array.requires_grad or array.device.type != "cpu"):
        raise ValueError(f"{name} is a tensor with gradients, or on {array.device}; pass {name}.detach().cpu()")
    array = np.asanyarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}; convert it to real numbers, e.g. {name}.astype('float32')")
    return array


def _as_columns(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} has shape {array.shape}; pass one row per sample, e.g. {name}.reshape(samples, -1)")
    return array[:, None] if array.ndim == 1 else array


def _require_known(values: np.ndarray) -> None:
    """Samples may be missing, but not all of them, and none may be infinite."""
    if values.dtype.kind != "f":
        return
    infinite = sum(int(np.count_nonzero(np.isinf(slab))) for slab in _slabs_of(values))
    if infinite:
        raise ValueError(
            f"values has {infinite} infinite entries of {values.size}; replace them, by NaN where the sample is missing"
        )
    flat = values.reshape(-1, values.shape[-1])
    if all(np.isnan(flat[i : i + _ROWS]).any(axis=1).all() for i in range(0, len(flat), _ROWS)):
        raise _nothing_known(values)


def _nothing_known(values: np.ndarray) -> ValueError:
    return ValueError(f"values has shape {values.shape}, and every sample is missing (NaN); pass some that are known")


def _require_finite(name: str, array: np.ndarray) -> None:
    if array.dtype.kind != "f":
        return
    bad = sum(slab.size - int(np.count_nonzero(np.isfinite(slab))) for slab in _slabs_of(array))
    if bad:
        raise ValueError(
            f"{name} has {bad} NaN or infinite entries of {array.size}; replace them (np.nan_to_num), "
            "or pass only the good samples as Points"
        )


def _chosen_range(given: Extent | None, values: np.ndarray, medium: Medium | None) -> Extent:
    if given is None:
        if medium == "sound":
            return (-1.0, 1.0)
        return image_range(taken_range(values)) if medium in ("gray", "rgb") else taken_range(values)
    low, high = map(float, given)
    if not -math.inf < low <= high < math.inf:
        raise ValueError(f"value_range is {given!r}; pass finite numbers (low, high) with low <= high")
    return low, high


def _require_number_type(stored: str | None) -> None:
    with contextlib.suppress(TypeError):
        if stored is None or np.dtype(stored).kind in "biuf":
            return
    raise ValueError(f"stored is {stored!r}; it must be the name of a NumPy type of real numbers, e.g. 'uint16'")


def _slabs_of(array: np.ndarray) -> Iterator[np.ndarray]:
    for axis, start, stop in slabs(array.shape, limit=1 << 22):
        yield array[(slice(None),) * axis + (slice(start, stop),)]
