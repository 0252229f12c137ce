"""Files: a signal is read and written by the suffix of its path.

A file that is not what it claims to be raises one line that starts with its path, and whatever is left out of a file
(alpha, further frames) is said in a warning. A file is written whole or not at all.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from .arrays import ARRAYS, array, write_array
from .fields import Align, Grid, Medium
from .images import IMAGES, WRITTEN_IMAGES, Space, image, write_image
from .paths import FilePath
from .sounds import SOUNDS, WRITTEN_SOUNDS, audio, write_audio
from .sources import require_suffix


def read(
    path: FilePath,
    *,
    size: int | None = None,
    space: Space | None = None,
    align: Align = "centers",
    axes: int | None = None,
) -> Grid:
    """Read a file with `image`, `audio` or `array`, by its suffix.

    **Arguments:** those of the three functions; `space` is for images only and `axes` for arrays only.

    !!! example
        ```python
        read("photo.jpg", size=256, space="lab")
        read("density.npy", axes=3)
        ```
    """
    suffix = Path(path).suffix.lower()
    if suffix not in IMAGES + SOUNDS + ARRAYS:
        known = " ".join(IMAGES + SOUNDS + ARRAYS)
        raise ValueError(f"{path}: the suffix {suffix!r} is not known; convert the file to one of {known}")
    if space is not None and suffix not in IMAGES:
        raise ValueError(f"{path}: space is {space!r}, but only images have a colour space; leave space out")
    if axes is not None and suffix not in ARRAYS:
        raise ValueError(f"{path}: axes is {axes}, but only arrays have a choice of axes; leave axes out")
    if suffix in IMAGES:
        return image(path, size=size, space=space, align=align)
    if suffix in SOUNDS:
        return audio(path, size=size, align=align)
    return array(path, axes=axes, size=size, align=align)


def write(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    *,
    medium: Medium | None = None,
    rate: float | None = None,
) -> None:
    """Write values with `write_image`, `write_audio` or `write_array`, by the suffix of the path.

    **Arguments:** those of the three functions; `medium` is for images only and `rate` for sounds only.

    !!! example
        ```python
        write("half.png", 0.5 * field.values, medium=field.medium)
        ```
    """
    require_suffix(path, WRITTEN_IMAGES + WRITTEN_SOUNDS + ARRAYS)
    suffix = Path(path).suffix.lower()
    if suffix in WRITTEN_IMAGES:
        write_image(path, values, medium)
    elif suffix in WRITTEN_SOUNDS:
        write_audio(path, values, rate)
    else:
        write_array(path, values)
