"""Images: PNG, JPEG, TIFF, WebP, BMP, AVIF, JPEG 2000 and TGA, as a `Grid` of pixels."""

import os
import warnings
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool, Shaped
from skimage import color, util

from .fields import Align, Extent, Grid, Medium, image_range, taken_range
from .paths import FilePath, atomic_path, reading
from .pixels import TIFFS, decode, encode, holds
from .sources import (
    Extents,
    Source,
    as_type,
    cells_or_points,
    given_or_square,
    masked,
    require_finite_floats,
    require_suffix,
    resized,
)

Space = Literal["gray", "rgb", "lab"]
Alpha = Literal["drop", "mask"]
IMAGES = (".avif", ".bmp", ".jp2", ".jpeg", ".jpg", ".png", ".tga", ".tif", ".tiff", ".webp")
WRITTEN_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def image(
    source: Source,
    *,
    size: int | None = None,
    space: Space | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
    mask: Source | None = None,
    alpha: Alpha = "drop",
) -> Grid:
    """An image as a grid of float32 values with 1 or 3 channels; axis 0 runs down the rows.

    Integers are divided by the largest value of their type, so that those without a sign lie in [0, 1]; floats are
    kept. PNG and TIFF keep 16 bits per channel; colours in other formats come at the 8 bits that Pillow gives. The EXIF
    orientation is applied, colour profiles are not. Alpha is dropped with a warning, or marks missing pixels.

    A TIFF with several pages is a volume, with the axes page, row and column. Pages that differ from the first in
    size, such as thumbnails, and the further frames of other formats are dropped with a warning.

    A pixel is an average over its cell, which the grid's `sampling` says, unless its samples are aligned to corners.

    The `value_range` is (0, 1) for 8-bit images, and for others that lie in [0, 1] and reach beyond 1/2; otherwise it
    is the interval that the stored values take, as with 12 bits stored in 16, or with physical units.

    **Arguments:**

    - `source`: the path of a PNG, JPEG, TIFF, WebP, BMP, AVIF, JPEG 2000 or TGA, or an array of shape
        `(height, width)` or `(height, width, channels)`, where 2 or 4 channels are gray or RGB with alpha.
    - `size`: samples along the longest axis after anti-aliased resizing by `skimage.transform.resize`, which comes
        before any colour conversion. Default: as stored.
    - `space`: `"gray"`, `"rgb"` or `"lab"` (CIELAB of sRGB). Default: gray or RGB, as stored.
    - `align`: as for `Grid`.
    - `extents`: as for `Grid`. Default: square pixels, by `square_extents` of the image as stored. The paper's images
        have (-1, 1) along both axes, whether or not they are square.
    - `mask`: an image or an array of the same size, white or true where pixels are missing: these become NaN, and are
        neither fitted nor counted.
    - `alpha`: `"mask"` for pixels that are missing where they are more than half transparent.

    !!! example
        ```python
        photo = image("photo.jpg", size=256, space="lab")
        photo.shape  # (192, 256)
        photo.extents  # ((-0.75, 0.75), (-1.0, 1.0))
        ```
    """
    if space not in (None, "gray", "rgb", "lab"):
        raise ValueError(f"space is {space!r}; it must be 'gray', 'rgb' or 'lab'")
    if alpha not in ("drop", "mask"):
        raise ValueError(f"alpha is {alpha!r}; it must be 'drop' or 'mask'")
    values, transparent = _pixels(source, alpha)
    shape, kind = values.shape[:-1], values.dtype
    value_range = None if space == "lab" else _stored_range(values)
    for missing in (transparent, None if mask is None else read_mask(mask)):
        if missing is not None:
            values = masked(_name_of(source), util.img_as_float32(values), missing)
    values = util.img_as_float32(values) if size is None else resized(values, size)
    values = in_space(values, space)
    return Grid(
        values.astype(np.float32, copy=False),
        extents=given_or_square(extents, shape, align),
        align=align,
        medium=space or ("gray" if values.shape[-1] == 1 else "rgb"),
        value_range=value_range,
        stored=kind.name,
        sampling=cells_or_points(align),
    )


def write_image(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    medium: Medium | None = None,
    *,
    stored: str | None = None,
    value_range: Extent = (0.0, 1.0),
) -> None:
    """Write an image as PNG, JPEG, WebP or TIFF by the suffix of the path.

    With the `medium`, `stored` and `value_range` of a `Grid`, the numbers in the file are those of the file or array
    that the grid was read from, in the same type, as far as the format holds that type: TIFF all, PNG 8 and 16 bits.
    Otherwise the file has 8 bits per channel.

    **Arguments:**

    - `path`: where to.
    - `values`: floats of shape `(height, width, channels)` with 1 or 3 channels, for a TIFF also with pages first.
    - `medium`: `"lab"` is converted to RGB; any other is written as it is.
    - `stored`: the NumPy type of the pixels. Integers are rounded and clipped to it, after those of an image (whose
        medium is not `None`) were multiplied by its largest value, which `image` divided by.
    - `value_range`: what becomes 0 and 255 if `stored` is not given or does not fit the format; what lies outside is
        clipped.

    !!! example
        ```python
        photo = image("photo.jpg", space="lab")
        write_image("photo.png", photo.values, photo.medium, stored=photo.stored)
        ```
    """
    require_suffix(path, WRITTEN_IMAGES)
    suffix = Path(path).suffix.lower()
    axes = (3, 4) if suffix in TIFFS else (3,)
    if values.ndim not in axes or values.shape[-1] not in ((3,) if medium == "lab" else (1, 3)):
        raise ValueError(
            f"{path}: values has shape {values.shape} and medium is {medium!r}, but an image is (height, width, "
            "channels) with 3 channels, or 1 if it is gray; write the values as NPY"
        )
    require_finite_floats(path, values, "floats in [0, 1]")
    if stored is None or not holds(suffix, stored):
        pixels = as_pixels(values, medium, value_range)
    else:
        values = _without_lab(values, medium)
        pixels = as_type(values if medium is None else values * _largest(stored), stored)
    with atomic_path(path) as temporary:
        encode(temporary, pixels)


def as_pixels(
    values: Shaped[np.ndarray, "*shape channels"], medium: Medium | None, value_range: Extent
) -> Shaped[np.ndarray, "*shape channels"]:
    """Values as bytes, of which 0 and 255 are the ends of the value range; CIELAB as RGB."""
    low, high = (0.0, 1.0) if medium == "lab" else value_range
    return as_type(255.0 * (_without_lab(values, medium) - low) / (high - low or 1.0), "uint8")


def _without_lab(values: np.ndarray, medium: Medium | None) -> np.ndarray:
    if medium != "lab":
        return values
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # out of gamut: clipped
        return color.lab2rgb(values)


def read_mask(source: Source) -> Bool[np.ndarray, "*shape"]:
    """Which samples a mask marks as missing: those of an image that are brighter than half, or not zero in an array.

    !!! example
        ```python
        read_mask(np.eye(4, dtype=bool)).sum()  # 4
        ```
    """
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == ".npy":
        with reading(source, "a mask", "save an array of zeros and ones with numpy.save"):
            source = np.load(source)
    if not isinstance(source, str | os.PathLike):
        return np.asarray(source) != 0
    pixels, _ = _pixels(source, "drop")
    return util.img_as_float32(pixels).mean(axis=-1) > 0.5


def _name_of(source: Source) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "source"


def _pixels(source: Source, alpha: Alpha) -> tuple[np.ndarray, np.ndarray | None]:
    """The pixels as stored, with channels last and without alpha, and which are missing if alpha is a mask.

    Warns of what a file holds beyond them.
    """
    name, pages = _name_of(source), [source]
    transparent = None
    notes: list[str] = []
    if isinstance(source, str | os.PathLike):
        with reading(name, "an image", "get a whole copy, or convert it to a gray or RGB PNG or TIFF, or to NPY"):
            pages = decode(name, notes)
    pages = [_as_channels(name, np.asanyarray(page)) for page in pages]
    values = pages[0] if len(pages) == 1 else np.stack(pages)
    if values.shape[-1] in (2, 4):
        if alpha == "mask":
            transparent = values[..., -1] < _largest(values.dtype.name) / 2
        elif not _opaque(values[..., -1]):
            notes.append("dropped its alpha channel")
        values = values[..., :-1]
    elif alpha == "mask":
        raise ValueError(f"{name}: alpha is 'mask', but there is no alpha channel; leave it out, or pass a mask")
    for note in dict.fromkeys(notes):
        warnings.warn(f"{name}: {note}", stacklevel=3)
    return values, transparent


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


def _largest(kind: str) -> float:
    """What the values of an image in the grid are multiplied with in the file."""
    return 1.0 if np.dtype(kind).kind == "f" else float(np.iinfo(kind).max)


def _stored_range(values: np.ndarray) -> Extent:
    """The value range as stored. Resizing shrinks what the values take, and so a test would differ from a training."""
    if values.dtype == np.uint8 or values.size == 0:
        return (0.0, 1.0)
    low, high = taken_range(values)
    largest = _largest(values.dtype.name)
    return image_range((low / largest, high / largest))


def in_space(values: np.ndarray, space: Space | None) -> np.ndarray:
    """Gray or RGB values in [0, 1] in a colour space; by default as they are."""
    if space == "gray" and values.shape[-1] == 3:
        return color.rgb2gray(values)[..., None]
    if space in ("rgb", "lab") and values.shape[-1] == 1:
        values = np.repeat(values, 3, axis=-1)
    return color.rgb2lab(values) if space == "lab" else values
