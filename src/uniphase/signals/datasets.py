"""Signals by name: eight images and a sound, read from the disk, or downloaded once and verified."""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import pooch
from skimage import data

from . import files
from .fields import Align, Field, Grid, Points
from .sources import Extents, Source
from .tables import Columns


class _Signal(NamedTuple):
    names: tuple[str, ...]  # that its file may have in the user's data directory
    origin: str  # the function of skimage.data or, if there is a hash, the URL
    sha256: str | None = None


_SIGNALS = {
    "camera": _Signal(("camera.png",), "camera"),
    "brick": _Signal(("brick.png",), "brick"),
    "gravel": _Signal(("gravel.png",), "gravel"),
    "clock": _Signal(("clock_motion.png",), "clock"),
    "hubble": _Signal(("hubble_deep_field.jpg",), "hubble_deep_field"),
    "skin": _Signal(("skin.tif", "skin.jpg"), "skin"),
    "astronaut": _Signal(("astronaut.png",), "astronaut"),
    "coffee": _Signal(("coffee.png",), "coffee"),
    "bach": _Signal(
        ("gt_bach.wav",),
        "https://raw.githubusercontent.com/vsitzmann/siren/master/data/gt_bach.wav",
        "023940a1bcc534349e16ff46f360ffbfffa993842961dbed955c168fd2f38190",
    ),
}

SIGNAL_NAMES: tuple[str, ...] = tuple(_SIGNALS)
"""The signals that `load` knows by name."""


@overload
def load(
    signal: str | os.PathLike[str],
    *,
    size: int | None = ...,
    space: files.Space | None = ...,
    align: Align = ...,
    axes: int | None = ...,
    array: str | None = ...,
    extents: Extents | None = ...,
) -> Grid: ...


@overload
def load(signal: str | os.PathLike[str], *, coordinates: Columns, values: Columns) -> Points: ...


def load(
    signal: str | os.PathLike[str],
    *,
    size: int | None = None,
    space: files.Space | None = None,
    align: Align = "centers",
    axes: int | None = None,
    array: str | None = None,
    extents: Extents | None = None,
    mask: Source | None = None,
    alpha: files.Alpha | None = None,
    coordinates: Columns | None = None,
    values: Columns | None = None,
) -> Field:
    """A signal by its name, or from a file.

    A named signal is looked for in the directory given by the environment variable `UNIPHASE_DATA`, if that is set,
    then among the images of scikit-image. Otherwise it is downloaded, once, and its hash is checked.

    **Arguments:**

    - `signal`: one of `SIGNAL_NAMES`, or a path for `files.read`. A name always means the named signal; for a file of
        the same name pass `"./camera"`.
    - `size`, `space`, `align`, `axes`, `array`, `extents`, `mask`, `alpha`: as for `files.read`.
    - `coordinates`, `values`: of a table, as for `table`. Then the signal is `Points`, otherwise a `Grid`.

    !!! example
        ```python
        load("camera", size=128).shape  # (128, 128)
        load("photo.jpg").out_size  # 3
        load("stations.csv", coordinates=["lon", "lat"], values="temperature").in_size  # 2
        ```
    """
    grid: dict[str, Any] = {"size": size, "space": space, "align": align, "extents": extents, "mask": mask}
    grid |= {} if alpha is None else {"alpha": alpha}
    others: dict[str, Any] = {"axes": axes, "array": array, "coordinates": coordinates, "values": values}
    if not isinstance(signal, str) or signal not in _SIGNALS:
        require_signal(signal)
        return files.read(signal, **grid, **others)
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"{signal}: {name} is {value!r}, but this is an image or a sound; leave {name} out")
    found = _in_data_directory(_SIGNALS[signal])
    source = _fetched(signal) if found is None else found
    return files.image(source, **grid) if isinstance(source, np.ndarray) else files.read(source, **grid)


def require_signal(signal: str | os.PathLike[str]) -> None:
    """Raise an error for what is neither the name of a signal nor a path that exists."""
    if signal not in _SIGNALS and not os.path.exists(signal):
        raise FileNotFoundError(f"{signal}: no such file, nor one of the signals {', '.join(SIGNAL_NAMES)}")


def _in_data_directory(signal: _Signal) -> Path | None:
    directory = os.environ.get("UNIPHASE_DATA")
    if not directory:
        return None
    if not os.path.isdir(directory):
        raise ValueError(f"UNIPHASE_DATA is {directory!r}, which is not a directory; unset it, or set it to one")
    for path in (Path(directory, name) for name in signal.names):
        if path.exists():
            if signal.sha256 is not None and pooch.file_hash(str(path)) != signal.sha256:
                raise ValueError(
                    f"{path}: not the file at {signal.origin}, as its sha256 differs; replace or remove it"
                )
            return path
    return None


def _fetched(name: str) -> Path | np.ndarray:
    names, origin, sha256 = _SIGNALS[name]
    try:
        with _quiet_pooch():
            if sha256 is None:
                return getattr(data, origin)()
            return Path(pooch.retrieve(origin, f"sha256:{sha256}", names[0], pooch.os_cache("uniphase")))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise OSError(
            f"{name}: the download failed ({reason}); put {' or '.join(names)} in a directory and name it in the "
            "environment variable UNIPHASE_DATA"
        ) from error


@contextlib.contextmanager
def _quiet_pooch() -> Iterator[None]:
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
