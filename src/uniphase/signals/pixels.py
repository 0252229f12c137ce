"""Pixels: the decoding of image files at the precision they are stored in.

Pillow decodes; this module looks after what it gets wrong or cuts short: 16-bit colour, which it has no mode for, and
some kinds of TIFF, which go to tifffile.
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image, ImageOps, TiffImagePlugin as tiff
from PIL.ImageFile import ImageFile


def decode(path: str, dropped: list[str]) -> np.ndarray:
    """The pixels of a file, in the type they are stored in. What they leave out of the file is added to `dropped`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with open(path, "rb") as stream, Image.open(stream) as file:  # by name, Pillow scrambles turned TIFFs
                return _tiff_pixels(path, dropped) if _misread(file) else _pixels(path, file, dropped)
        except Image.UnidentifiedImageError as error:
            if Path(path).suffix.lower() not in (".tif", ".tiff"):
                raise ValueError("its format is not known") from error
            return _tiff_pixels(path, dropped)


def _misread(file: ImageFile) -> bool:
    """Whether this is a TIFF that Pillow opens but gets wrong: beyond 8 bits it ignores these tags."""
    if not isinstance(file, tiff.TiffImageFile) or max(file.tag_v2.get(tiff.BITSPERSAMPLE, (1,))) <= 8:
        return False
    in_planes = file.tag_v2.get(tiff.PLANAR_CONFIGURATION) == 2
    white_is_zero = file.tag_v2.get(tiff.PHOTOMETRIC_INTERPRETATION) == 0
    return file.mode == "I" or in_planes or white_is_zero


def _tiff_pixels(path: str, dropped: list[str]) -> np.ndarray:
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        if page.photometric not in (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.RGB):
            raise ValueError(f"its photometric interpretation is {tifffile.PHOTOMETRIC(page.photometric).name}")
        if len(file.pages) > 1:
            dropped.append(f"all but the first of its {len(file.pages)} frames")
        values = page.asarray()
    return np.moveaxis(values, 0, -1) if page.axes == "SYX" else values


def _pixels(path: str, file: ImageFile, dropped: list[str]) -> np.ndarray:
    frames = getattr(file, "n_frames", 1)
    if frames > 1:
        dropped.append(f"all but the first of its {frames} frames")
    if isinstance(file, tiff.TiffImageFile) and 0 in file.tag_v2.get(tiff.EXTRASAMPLES, ()):
        dropped.append("its unspecified channels")
    if file.mode == "I":
        raise ValueError("its 32-bit integers have no known range")
    raw = _raw_mode(file)
    if file.mode == "F" or ";16" in file.mode or ";16" in raw:
        if "transparency" in file.info:
            dropped.append("its transparent colour")
        return _upright(file) if file.mode[0] in "FI" else _wide_pixels(path, file, raw)
    gray = file.mode in ("1", "L", "LA", "La")
    return _upright(file.convert(("L" if gray else "RGB") + "A" * file.has_transparency_data))


def _wide_pixels(path: str, file: ImageFile, raw: str) -> np.ndarray:
    """The pixels of 16-bit colour.

    Pillow has no mode for them, and unpacks the high byte of every sample only. Told that the same file is in the
    opposite byte order, it unpacks the low byte.
    """
    if raw == "LA;16B":  # two samples are the four bytes of an RGBA pixel
        return _unpacked_as(path, "RGBA").view(">u2")
    if not re.fullmatch("(RGB|RGBA|RGBX);16[BLN]", raw):
        raise ValueError(f"its 16-bit samples of kind {raw} would be cut to 8 bits")
    opposite = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}[raw[-1]]
    low = _unpacked_as(path, raw[:-1] + opposite)
    return _upright(file).astype(np.uint16) << 8 | low


def _raw_mode(file: ImageFile) -> str:
    args = file.tile[0].args if file.format in ("PNG", "TIFF") else ""
    return str(args[0] if isinstance(args, tuple) else args)


def _unpacked_as(path: str, raw: str) -> np.ndarray:
    with open(path, "rb") as stream, Image.open(stream) as file:
        file.tile = [
            tile._replace(args=(raw, *tile.args[1:]) if isinstance(tile.args, tuple) else raw) for tile in file.tile
        ]
        return _upright(file)


def _upright(file: Image.Image) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(file))
