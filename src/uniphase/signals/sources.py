"""Sources: what images, sounds and arrays share when they are read from a file or taken from memory."""

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from jaxtyping import Shaped
from numpy.typing import ArrayLike
from skimage import transform

from .fields import Align, Extent, Sampling, square_extents
from .paths import FilePath

Source = FilePath | ArrayLike
Extents = Extent | Sequence[Extent]


def values_of(source: Source, read_file: Callable[[str], np.ndarray]) -> tuple[str, np.ndarray]:
    """The values of a file or an array, and a name for messages about them."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return path, read_file(path)
    return "source", np.asanyarray(source)


def resized(values: Shaped[np.ndarray, "*shape channels"], size: int) -> Shaped[np.ndarray, "*new channels"]:
    """The values with `size` samples along the longest axis, anti-aliased. Integers are scaled as by scikit-image.

    Where samples are missing (NaN), the mean is over those that are known; a new sample is missing if less than half of
    what it covers is known.
    """
    if size < 2:
        raise ValueError(f"size is {size}; it must be at least 2")
    old = values.shape[:-1]
    new = tuple(round(n * size / max(old)) for n in old)
    if min(new) < 2:
        raise ValueError(f"size is {size}, which makes {old} samples {new}; pass a size that leaves 2 along each axis")
    missing = np.isnan(values).any(axis=-1, keepdims=True) if values.dtype.kind == "f" else np.zeros(1, bool)
    if not missing.any():
        return np.asarray(transform.resize(values, new, anti_aliasing=True))
    known = np.asarray(transform.resize((~missing).astype(values.dtype), new, anti_aliasing=True))
    sums = np.asarray(transform.resize(np.where(missing, 0, values), new, anti_aliasing=True))
    return np.where(known < 0.5, np.nan, sums / np.maximum(known, 0.5))


def masked(
    name: str, values: Shaped[np.ndarray, "*shape channels"], mask: Shaped[np.ndarray, "*shape"] | None
) -> Shaped[np.ndarray, "*shape channels"]:
    """The values with NaN where the mask is true. Integers become floats, unscaled."""
    if mask is None:
        return values
    if mask.shape != values.shape[:-1]:
        raise ValueError(
            f"{name}: the mask has the shape {mask.shape}, but the signal has {values.shape[:-1]}; pass one of its size"
        )
    if mask.all():
        raise ValueError(f"{name}: every sample is masked; in a mask, white (or true) marks the samples to leave out")
    return np.where(mask[..., None], np.nan, values.astype(np.promote_types(values.dtype, np.float32), copy=False))


def given_or_square(extents: Extents | None, shape: tuple[int, ...], align: Align) -> Extents:
    """The extents that a caller gave, or by default those that make the cells square.

    `shape` is the shape as stored: resizing rounds it, and must not move the borders of the domain.
    """
    return square_extents(shape, align) if extents is None else extents


def cells_or_points(align: Align) -> Sampling:
    """What the samples of an image or a volume are. At corners, cells would reach beyond the domain."""
    return "averages" if align == "centers" else "points"


def as_type(values: Shaped[np.ndarray, "..."], kind: str) -> Shaped[np.ndarray, "..."]:
    """The values in the NumPy type of the name `kind`: integers are rounded, and clipped to the range of the type."""
    if values.dtype == kind or np.dtype(kind).kind == "f":
        return values.astype(kind, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"values has NaN or infinite entries, which {kind} cannot hold; replace them (np.nan_to_num)")
    low, high = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    largest = float(high) if float(high) <= high else np.nextafter(float(high), 0)  # 2⁶³ - 1 is no float64
    return np.clip(np.rint(values.astype(np.float64)), low, largest).astype(kind)


def require_package(package: str, extra: str, path: FilePath) -> ModuleType:
    """Import a package that only some files need, or say which extra of this one brings it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        message = f'{path}: needs the package {package}; pip install "uniphase[{extra}]"'
        raise ModuleNotFoundError(message, name=package) from error


def require_suffix(path: FilePath, known: Sequence[str]) -> None:
    suffix = Path(path).suffix
    if suffix.lower() not in known:
        raise ValueError(f"{path}: the suffix is {suffix!r}; use one of {' '.join(known)}")


def require_finite_floats(path: FilePath, values: np.ndarray, wanted: str) -> None:
    if values.dtype.kind != "f":
        raise ValueError(f"{path}: values has dtype {values.dtype}; pass {wanted}, or write the values as NPY")
    bad = values.size - np.count_nonzero(np.isfinite(values))
    if bad:
        raise ValueError(
            f"{path}: values has {bad} NaN or infinite entries of {values.size}; replace them (np.nan_to_num), or "
            "write the values as NPY"
        )
