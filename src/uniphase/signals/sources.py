"""Sources: what images, sounds and arrays share when they are read from a file or taken from memory."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from skimage import transform

from .paths import FilePath

Source = FilePath | ArrayLike


def values_of(source: Source, read_file: Callable[[str], np.ndarray]) -> tuple[str, np.ndarray]:
    """The values of a file or an array, with a name for messages about them."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return path, read_file(path)
    return "source", np.asanyarray(source)


def resized(values: np.ndarray, size: int) -> np.ndarray:
    if size < 2:
        raise ValueError(f"size is {size}; it must be at least 2")
    old = values.shape[:-1]
    new = tuple(round(n * size / max(old)) for n in old)
    if min(new) < 2:
        raise ValueError(f"size is {size}, which makes {old} samples {new}; pass a size that leaves 2 along each axis")
    return np.asarray(transform.resize(values, new, anti_aliasing=True))


def require_suffix(path: FilePath, known: tuple[str, ...]) -> None:
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
