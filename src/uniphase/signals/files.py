"""Files: a signal is read and written by the suffix of its path.

`FORMATS` has an entry for each kind of file; a new one needs a reader, a writer and an entry there.

A file that is not what its suffix says raises a single line that starts with its path, and a warning names all that is
left out of a file (alpha, further frames). A file is written whole or not at all.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from .arrays import ARRAYS, WRITTEN_ARRAYS, array, write_array
from .fields import Align, Extent, Field, Medium
from .images import IMAGES, WRITTEN_IMAGES, Alpha, Space, image, write_image
from .paths import FilePath, suffix_of
from .scans import SCANS, scan
from .sounds import SOUNDS, WRITTEN_SOUNDS, audio, write_audio
from .sources import Extents, Source, require_suffix
from .stores import STORES
from .tables import TABLES, Columns, table
from .videos import GIFS, VIDEOS, WRITTEN_VIDEOS, frames_in_gif, video, write_video


class Format(NamedTuple):
    """A kind of file.

    - `suffixes`: of the files that are read, in lower case.
    - `read`: takes a path and gives a field.
    - `read_options`: the keywords of `read` that it takes.
    - `written`: suffixes of the files that are written.
    - `write`: takes a path and values of the shape of `Grid.values`. `None` if nothing is written.
    - `write_options`: the keywords of `write` that it takes.
    """

    suffixes: tuple[str, ...]
    read: Callable[..., Field]
    read_options: tuple[str, ...]
    written: tuple[str, ...] = ()
    write: Callable[..., None] | None = None
    write_options: tuple[str, ...] = ()


def _gif(path: FilePath, **options: Any) -> Field:
    """A GIF as a video or, if it has a single frame, as an image."""
    return (video if frames_in_gif(path) > 1 else image)(path, **options)


_GRID = ("size", "align", "extents")
_IMAGE = (*_GRID, "space", "mask")
FORMATS = (
    Format(IMAGES, image, (*_IMAGE, "alpha"), WRITTEN_IMAGES, write_image, ("medium", "stored", "value_range")),
    Format(GIFS, _gif, (*_GRID, "space")),
    Format(VIDEOS, video, (*_GRID, "space"), WRITTEN_VIDEOS, write_video, ("rate", "medium", "value_range")),
    Format(SOUNDS, audio, _GRID, WRITTEN_SOUNDS, write_audio, ("rate",)),
    Format(ARRAYS, array, (*_GRID, "axes", "mask"), WRITTEN_ARRAYS, write_array, ("medium", "stored")),
    Format(STORES, array, (*_GRID, "axes", "array", "mask")),
    Format(SCANS, scan, (*_GRID, "mask")),
    Format(TABLES, table, ("coordinates", "values")),
)

# Options of `read` that not all formats take, and why.
_OPTIONS = {
    "space": "only images and videos have a colour space",
    "axes": "only arrays have a choice of axes",
    "array": "only NPZ and Zarr files hold several arrays",
    "mask": "only images, arrays and scans have a mask",
    "alpha": "only images have an alpha channel",
    "coordinates": "only tables have columns",
    "values": "only tables have columns",
    "size": "scattered points cannot be resized",
    "align": "scattered points lie where they are",
    "extents": "scattered points lie where they are",
}


def read(
    path: FilePath,
    *,
    size: int | None = None,
    space: Space | None = None,
    align: Align = "centers",
    axes: int | None = None,
    array: str | None = None,
    extents: Extents | None = None,
    mask: Source | None = None,
    alpha: Alpha | None = None,
    coordinates: Columns | None = None,
    values: Columns | None = None,
) -> Field:
    """Read a file with `image`, `video`, `audio`, `array`, `scan` or `table`, by its suffix.

    A GIF is a video, or an image if it has a single frame.

    **Arguments:** those of these functions; `space` is for images and videos only, `alpha` for images, `axes` for
    arrays, `array` for NPZ and Zarr files, `mask` for images, arrays and scans, and `coordinates` and `values` for
    tables, which take none of the others.

    !!! example
        ```python
        read("photo.jpg", size=256, space="lab")
        read("density.npy", axes=3)
        read("stations.csv", coordinates=["lon", "lat"], values=["temperature"])
        ```
    """
    known = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
    suffix = suffix_of(path)
    if suffix not in known and os.path.isdir(path):
        found = sorted({suffix_of(name) for name in os.listdir(path)} & known.keys())
        fix = f"its files, e.g. {Path(path) / f'*{found[0]}'}" if found else "the path of a file"
        raise ValueError(f"{path}: a directory; pass {fix}")
    if suffix not in known:
        raise ValueError(f"{path}: the suffix {suffix!r} is not known; convert the file to one of {' '.join(known)}")
    options: dict[str, Any] = {
        **{"size": size, "space": space, "align": None if align == "centers" else align, "axes": axes},
        **{"array": array, "extents": extents, "coordinates": coordinates, "values": values},
        **{"mask": mask, "alpha": alpha},
    }
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in known[suffix].read_options:
            raise ValueError(f"{path}: {name} is {value!r}, but {_OPTIONS[name]}; leave {name} out")
    try:
        return known[suffix].read(path, **given)
    except ValueError as error:
        if not str(error).startswith("values has"):
            raise
        raise ValueError(f"{path}: {error}") from error  # a field does not know where its values come from


def write(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    *,
    medium: Medium | None = None,
    rate: float | None = None,
    stored: str | None = None,
    value_range: Extent = (0.0, 1.0),
) -> None:
    """Write values with `write_image`, `write_video`, `write_audio` or `write_array`, by the suffix of the path.

    **Arguments:** those of these functions, which are attributes of a `Grid`. Each format uses those it can: only
    videos and sounds have a `rate`, and only images and videos need a `value_range`.

    !!! example
        ```python
        write("half.png", 0.5 * field.values, medium=field.medium, stored=field.stored, value_range=field.value_range)
        ```
    """
    known = {suffix: entry for entry in FORMATS for suffix in entry.written}
    require_suffix(path, tuple(known))
    entry = known[Path(path).suffix.lower()]
    options = {"medium": medium, "rate": rate, "stored": stored, "value_range": value_range}
    assert entry.write is not None
    entry.write(path, values, **{name: options[name] for name in entry.write_options})
