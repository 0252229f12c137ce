"""What `uniphase render` does: from a file to a picture, a sound or an array."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..jax.files import load_network
from ..jax.render import Derivative, render
from ..signals import files
from ..signals.fields import Align, Extent
from ..storage.network_file import Domain, Saved
from .outputs import require_writable, writing


class Rendered(NamedTuple):
    """A file that `render_file` wrote, and the number of samples along each axis."""

    path: Path
    shape: tuple[int, ...]


def render_file(
    path: str,
    *,
    size: int | None = None,
    scale: float | None = None,
    region: str | None = None,
    derivative: Derivative | None = None,
    output: str | None = None,
    force: bool = False,
) -> Rendered:
    """Evaluate the network of a `.uniphase` file on a grid, and write the values as PNG, WAV or NPY.

    A picture of a derivative has the 99.5th percentile of its size for white: the gradient of all channels together
    as gray, the Laplacian of each channel around a medium gray.

    **Arguments:**

    - `path`: the file.
    - `size`, `scale`: samples along the longest axis, or in proportion to the field that was fitted. Default: as many
        as that had.
    - `region`: `low:high` for each axis, separated by commas, in the units of the extents. Default: all of it.
    - `derivative`: as for `render`.
    - `output`: where to, with the suffix .png, .wav or .npy. Default: a name with the size in it, in the current
        directory.
    - `force`: whether a file that exists may be replaced.

    !!! example
        ```python
        run(prepare("camera", Options(size=16, steps=20)))
        render_file("camera.uniphase", size=64, region="-1:0,-1:0").shape  # (64, 64)
        ```
    """
    saved = load_network(path)
    domain, name = saved.domain, Path(path).stem
    if domain.shape is None and size is None:
        raise ValueError(f"{path}: fitted to scattered points, which are of no size; pass --size")
    spans = domain.extents if region is None else _parse_region(region, len(domain.extents))
    stored = _stored_samples(domain, spans)
    shape = _render_shape(stored, domain.align, size, scale)
    suffix = {"sound": ".wav", None: ".npy"}.get(saved.medium, ".png")
    if derivative is not None:
        name, suffix = f"{name}-{derivative}", ".npy" if suffix == ".wav" else suffix
    size_text = "x".join(map(str, reversed(shape) if suffix == ".png" else shape))
    target = Path(f"{name}-{size_text}{suffix}" if output is None else output)
    _require_format(target, saved, derivative)
    require_writable([target], path, replace=force)
    values = render(
        saved.network, shape, extents=domain.extents, align=domain.align, region=spans, derivative=derivative
    )
    with writing(target):
        if target.suffix.lower() == ".png":
            files.write(target, _picture(values, saved, derivative), medium=None if derivative else saved.medium)
        else:
            files.write(target, values, rate=None if saved.rate is None else saved.rate * shape[0] / stored[0])
    return Rendered(target, shape)


def _parse_region(text: str, axes: int) -> tuple[Extent, ...]:
    with contextlib.suppress(ValueError):
        region = np.array([part.split(":") for part in text.split(",")], np.float64)
        if region.shape == (axes, 2) and np.isfinite(region).all() and (region[:, 0] < region[:, 1]).all():
            return tuple((float(low), float(high)) for low, high in region)
    example = ",".join(["-0.5:0.5"] * axes)
    raise ValueError(f"region is {text!r}; pass low:high for each of {axes} axes, low first, e.g. {example}")


def _stored_samples(domain: Domain, spans: Sequence[Extent]) -> list[float]:
    """How many samples of the fitted field lie within the spans; of scattered points, one for each unit of length."""
    lengths = [high - low for low, high in spans]
    if domain.shape is None:
        return lengths
    wholes = [high - low for low, high in domain.extents]
    return [n * length / whole for n, length, whole in zip(domain.shape, lengths, wholes, strict=True)]


def _render_shape(stored: Sequence[float], align: Align, size: int | None, scale: float | None) -> tuple[int, ...]:
    if size is not None and scale is not None:
        raise ValueError(f"size is {size} and scale is {scale}; pass one of them")
    for name, value in (("size", size), ("scale", scale)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; it must be positive")
    factor = (1.0 if scale is None else scale) if size is None else size / max(stored)
    return tuple(max(2 if align == "corners" else 1, round(n * factor)) for n in stored)


def _require_format(path: Path, saved: Saved, derivative: Derivative | None) -> None:
    suffix, axes = path.suffix.lower(), len(saved.domain.extents)
    if suffix not in (".png", ".wav", ".npy"):
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, .wav or .npy")
    if suffix == ".png" and axes != 2:
        raise ValueError(f"{path}: a picture has 2 axes, but the network has {axes}; write .npy")
    if suffix == ".wav" and (saved.medium != "sound" or derivative is not None):
        what = f"the {derivative}" if derivative else "the field"
        raise ValueError(f"{path}: {what} is no sound; write {'.png or .npy' if axes == 2 else '.npy'}")


def _picture(values: np.ndarray, saved: Saved, derivative: Derivative | None) -> np.ndarray:
    if derivative == "gradient":
        values = np.linalg.norm(values, axis=(-2, -1))[..., None]
        return values / (np.percentile(values, 99.5) or 1.0)
    if derivative == "laplacian":
        return 0.5 + 0.5 * values / (np.percentile(np.abs(values), 99.5) or 1.0)
    if saved.medium is None:
        low, high = saved.value_range
        return (values - low) / ((high - low) or 1.0)
    return values
