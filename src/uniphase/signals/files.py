"""Files: a signal is read and written by the suffix of its path.

`FORMATS` has an entry for each kind of file; a new one needs a reader, a writer and an entry there.

A file that is not what its suffix says raises a single line that starts with its path, and a warning names all that is
left out of a file (alpha, further frames). A file is written whole or not at all.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from .arrays import ARRAYS, array, write_array
from .fields import Align, Extent, Grid, Medium
from .images import IMAGES, WRITTEN_IMAGES, Alpha, Space, image, write_image
from .paths import FilePath
from .sounds import SOUNDS, WRITTEN_SOUNDS, audio, write_audio
from .sources import Extents, Source, require_suffix


class Format(NamedTuple):
    """A kind of file.

    - `suffixes`: of the files that are read, in lower case.
    - `read`: takes a path and the keywords `size`, `align` and `extents`, and gives a `Grid`.
    - `read_options`: the keywords of `read` that it takes beyond these.
    - `written`: suffixes of the files that are written.
    - `write`: takes a path and values of the shape of `Grid.values`.
    - `write_options`: the keywords of `write` that it takes.
    """

    suffixes: tuple[str, ...]
    read: Callable[..., Grid]
    read_options: tuple[str, ...]
    written: tuple[str, ...]
    write: Callable[..., None]
    write_options: tuple[str, ...]


FORMATS = (
    Format(IMAGES, image, ("space", "mask", "alpha"), WRITTEN_IMAGES, write_image, ("medium", "stored", "value_range")),
    Format(SOUNDS, audio, (), WRITTEN_SOUNDS, write_audio, ("rate",)),
    Format(ARRAYS, array, ("axes", "mask"), ARRAYS, write_array, ("medium", "stored")),
)

# Options of `read` that not all formats take, and why.
_OPTIONS = {
    "space": "only images have a colour space",
    "axes": "only arrays have a choice of axes",
    "mask": "only images and arrays have a mask",
    "alpha": "only images have an alpha channel",
}


def read(
    path: FilePath,
    *,
    size: int | None = None,
    space: Space | None = None,
    align: Align = "centers",
    axes: int | None = None,
    extents: Extents | None = None,
    mask: Source | None = None,
    alpha: Alpha | None = None,
) -> Grid:
    """Read a file with `image`, `audio` or `array`, by its suffix.

    **Arguments:** those of the three functions; `space` and `alpha` are for images only, `axes` for arrays only, and
    `mask` for both.

    !!! example
        ```python
        read("photo.jpg", size=256, space="lab")
        read("density.npy", axes=3)
        ```
    """
    suffix = Path(path).suffix.lower()
    known = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
    if suffix not in known:
        raise ValueError(f"{path}: the suffix {suffix!r} is not known; convert the file to one of {' '.join(known)}")
    options: dict[str, Any] = {"space": space, "axes": axes, "mask": mask, "alpha": alpha}
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in known[suffix].read_options:
            raise ValueError(f"{path}: {name} is {value!r}, but {_OPTIONS[name]}; leave {name} out")
    return known[suffix].read(path, size=size, align=align, extents=extents, **given)


def write(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    *,
    medium: Medium | None = None,
    rate: float | None = None,
    stored: str | None = None,
    value_range: Extent = (0.0, 1.0),
) -> None:
    """Write values with `write_image`, `write_audio` or `write_array`, by the suffix of the path.

    **Arguments:** those of the three functions, which are attributes of a `Grid`. Each format uses those it can: only
    sounds have a `rate`, and only images need a `value_range`.

    !!! example
        ```python
        write("half.png", 0.5 * field.values, medium=field.medium, stored=field.stored, value_range=field.value_range)
        ```
    """
    known = {suffix: entry for entry in FORMATS for suffix in entry.written}
    require_suffix(path, tuple(known))
    entry = known[Path(path).suffix.lower()]
    options = {"medium": medium, "rate": rate, "stored": stored, "value_range": value_range}
    entry.write(path, values, **{name: options[name] for name in entry.write_options})
