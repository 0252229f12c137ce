"""Images: PNG, JPEG, TIFF, WebP and whatever else Pillow opens, as a `Grid` of pixels."""

import warnings
from typing import Literal

import numpy as np
from jaxtyping import Shaped
from PIL import Image
from skimage import color, util

from .fields import Align, Grid, Medium
from .paths import FilePath, atomic_path, reading
from .pixels import decode
from .sources import Source, require_finite_floats, require_suffix, resized, values_of

Space = Literal["gray", "rgb", "lab"]
IMAGES = (".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".tga", ".tif", ".tiff", ".webp")
WRITTEN_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def image(source: Source, *, size: int | None = None, space: Space | None = None, align: Align = "centers") -> Grid:
    """An image as a grid of float32 values with 1 or 3 channels; axis 0 runs down the rows.

    Integers are scaled to [0, 1] by the largest value of their type; floats are kept. PNG and TIFF keep 16 bits per
    channel; colours in other formats come at the 8 bits that Pillow gives. The EXIF orientation is applied, colour
    profiles are not. Alpha and all frames but the first are dropped, with a warning.

    **Arguments:**

    - `source`: the path of a PNG, JPEG, TIFF, WebP or other image that Pillow opens, or an array of shape
        `(height, width)` or `(height, width, channels)`, where 2 or 4 channels are gray or RGB with alpha.
    - `size`: samples along the longer axis after anti-aliased resizing by `skimage.transform.resize`, which comes
        before any colour conversion. Default: as stored.
    - `space`: `"gray"`, `"rgb"` or `"lab"` (CIELAB of sRGB). Default: gray or RGB, as stored.
    - `align`: as for `Grid`.

    !!! example
        ```python
        image("photo.jpg", size=256, space="lab").shape  # (192, 256)
        ```
    """
    if space not in (None, "gray", "rgb", "lab"):
        raise ValueError(f"space is {space!r}; it must be 'gray', 'rgb' or 'lab'")
    dropped = []
    name, values = values_of(source, lambda path: _image_file(path, dropped))
    values = _as_channels(name, values)
    if values.shape[-1] in (2, 4):
        if not _opaque(values[..., -1]):
            dropped.append("its alpha channel")
        values = values[..., :-1]
    for what in dropped:
        warnings.warn(f"{name}: dropped {what}", stacklevel=2)
    values = util.img_as_float32(values) if size is None else resized(values, size)
    values = _in_space(values, space)
    medium = space or ("gray" if values.shape[-1] == 1 else "rgb")
    return Grid(values.astype(np.float32, copy=False), align=align, medium=medium)


def write_image(path: FilePath, values: Shaped[np.ndarray, "*shape channels"], medium: Medium | None = None) -> None:
    """Write an image with 8 bits per channel, as PNG, JPEG, WebP or TIFF by the suffix of the path.

    **Arguments:**

    - `path`: where to.
    - `values`: floats of shape `(height, width, channels)` with 1 or 3 channels; what lies outside [0, 1] is clipped.
    - `medium`: `"lab"` is converted to RGB; anything else is written as it is.

    !!! example
        ```python
        write_image("photo.png", image("photo.jpg", space="lab").values, "lab")
        ```
    """
    require_suffix(path, WRITTEN_IMAGES)
    if values.ndim != 3 or values.shape[-1] not in ((3,) if medium == "lab" else (1, 3)):
        raise ValueError(
            f"{path}: values has shape {values.shape} and medium is {medium!r}, but an image is (height, width, "
            "channels) with 3 channels, or 1 if it is gray; write the values as NPY"
        )
    require_finite_floats(path, values, "floats in [0, 1]")
    if medium == "lab":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # clipped, as all the rest
            values = color.lab2rgb(values)
    pixels = np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)
    with atomic_path(path) as temporary:
        Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(temporary, quality=95)


def _image_file(path: str, dropped: list[str]) -> np.ndarray:
    with reading(path, "an image", "get a whole copy, or convert it to a gray or RGB PNG or TIFF"):
        return decode(path, dropped)


def _as_channels(name: str, values: np.ndarray) -> np.ndarray:
    values = values[..., None] if values.ndim == 2 else values
    if values.ndim != 3 or not 1 <= values.shape[-1] <= 4:
        raise ValueError(
            f"{name}: the shape is {values.shape}, but an image is (height, width) or (height, width, channels) with "
            "at most 4 channels; read it with array"
        )
    if values.dtype.kind not in "biuf" or (values.dtype.kind in "iu" and values.dtype.itemsize == 8):
        raise ValueError(f"{name}: the dtype is {values.dtype}, which is not one of pixels; make it uint8 or float32")
    return util.img_as_ubyte(values) if values.dtype == bool else values


def _opaque(alpha: np.ndarray) -> bool:
    return bool((alpha >= (1.0 if alpha.dtype.kind == "f" else np.iinfo(alpha.dtype).max)).all())


def _in_space(values: np.ndarray, space: Space | None) -> np.ndarray:
    if space == "gray" and values.shape[-1] == 3:
        return color.rgb2gray(values)[..., None]
    if space in ("rgb", "lab") and values.shape[-1] == 1:
        values = np.repeat(values, 3, axis=-1)
    return color.rgb2lab(values) if space == "lab" else values
