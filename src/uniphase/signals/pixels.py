"""Pixels: image files are decoded and encoded at the precision they are stored in.

Pillow does most of it. This module adds what Pillow gets wrong or cuts short: 16-bit colour, which it has no mode for,
and some kinds of TIFF, which go to tifffile.
"""

import contextlib
import logging
import re
import struct
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import numpy as np
import tifffile
from jaxtyping import Shaped
from PIL import Image, ImageOps, TiffImagePlugin as tiff
from PIL.ImageFile import ImageFile

TIFFS = (".tif", ".tiff")

# All that Pillow may take a file for. It tries many more, whatever the suffix says, and runs Ghostscript on some.
_FORMATS = ("AVIF", "BMP", "DIB", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "TGA", "TIFF", "WEBP")


def decode(path: str, notes: list[str]) -> list[np.ndarray]:
    """The pages of a file, which are one but for a TIFF stack, in the type they are stored in.

    All have the same shape and type. What the caller should warn of, such as dropped frames, is added to `notes`.
    """
    # If the user has not set up logging, what these log would go to the terminal, unless there is a handler.
    quiet = {"PIL": logging.NullHandler(), "tifffile": logging.NullHandler()}
    with log_handlers(quiet), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")  # about metadata; a lack of pixels is an error
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with open(path, "rb") as stream, open_image(stream) as file:  # by name, Pillow scrambles turned TIFFs
                if not isinstance(file, tiff.TiffImageFile):
                    return [_first_frame(path, file, notes)]
                pages = None if _misread(file) else _pillow_pages(path, file, notes)
        except Image.UnidentifiedImageError as error:
            if Path(path).suffix.lower() not in TIFFS:
                raise ValueError("its format is not known") from error
            pages = None
        return _stack(path, _tifffile_pages(path, notes) if pages is None else pages, notes)


def open_image(source: str | IO[bytes]) -> ImageFile:
    """An image that Pillow opens, if it is in a format that is nothing but pixels."""
    Image.init()
    return Image.open(source, formats=[name for name in _FORMATS if name in Image.OPEN])


def encode(path: Path, pixels: Shaped[np.ndarray, "*shape channels"]) -> None:
    """Write pixels in their own type, as the format that the suffix says. TIFF takes a stack of pages too."""
    gray = pixels.shape[-1] == 1
    if path.suffix.lower() in TIFFS:
        kind, planes = ("minisblack", None) if gray else ("rgb", "contig")
        pages = pixels[..., 0] if gray else pixels
        tifffile.imwrite(path, pages, photometric=kind, planarconfig=planes, metadata=None)
    elif pixels.dtype == np.uint16:
        path.write_bytes(_png16(pixels))
    else:
        Image.fromarray(pixels[..., 0] if gray else pixels).save(path, quality=95)


def holds(suffix: str, kind: str) -> bool:
    """Whether a file with this suffix holds pixels in the NumPy type of the name `kind`."""
    return suffix in TIFFS or kind == "uint8" or (suffix == ".png" and kind == "uint16")


@contextlib.contextmanager
def log_handlers(handlers: Mapping[str, logging.Handler]) -> Iterator[None]:
    """Add handlers to the loggers of these names for the time of the block. Those of the user stay."""
    for name, handler in handlers.items():
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name, handler in handlers.items():
            logging.getLogger(name).removeHandler(handler)


class _ErrorNotes(logging.Handler):
    """A handler that adds errors to a list of notes."""

    def __init__(self, notes: list[str]):
        logging.Handler.__init__(self, logging.ERROR)
        self.notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self.notes.append(f"may be damaged ({' '.join(record.getMessage().split())})")


def _misread(file: tiff.TiffImageFile) -> bool:
    """Whether this is a TIFF that Pillow opens but gets wrong: beyond 8 bits it ignores these tags."""
    if max(file.tag_v2.get(tiff.BITSPERSAMPLE, (1,))) <= 8:
        return False
    in_planes = file.tag_v2.get(tiff.PLANAR_CONFIGURATION) == 2
    white_is_zero = file.tag_v2.get(tiff.PHOTOMETRIC_INTERPRETATION) == 0
    return file.mode == "I" or in_planes or white_is_zero


def _tifffile_pages(path: str, notes: list[str]) -> list[np.ndarray]:
    # Where the pages of a stack break off, tifffile logs an error and reads on; Pillow raises an exception.
    with log_handlers({"tifffile": _ErrorNotes(notes)}), tifffile.TiffFile(path) as file:
        photometric = file.pages.first.photometric
        if photometric not in (tifffile.PHOTOMETRIC.MINISBLACK, tifffile.PHOTOMETRIC.RGB):
            raise ValueError(f"its photometric interpretation is {tifffile.PHOTOMETRIC(photometric).name}")
        pages = [(page.asarray(), page.axes) for page in file.pages]
    return [np.moveaxis(values, 0, -1) if axes == "SYX" else values for values, axes in pages]


def _pillow_pages(path: str, file: tiff.TiffImageFile, notes: list[str]) -> list[np.ndarray]:
    pages = []
    for page in range(file.n_frames):
        file.seek(page)
        if 0 in file.tag_v2.get(tiff.EXTRASAMPLES, ()):
            notes.append("dropped its unspecified channels")
        pages.append(_pixels(path, file, notes))
    return pages


def _stack(path: str, pages: list[np.ndarray], notes: list[str]) -> list[np.ndarray]:
    """The pages that are like the first: the others are thumbnails, or coarser levels of a pyramid."""
    like = [page for page in pages if (page.shape, page.dtype) == (pages[0].shape, pages[0].dtype)]
    if odd := len(pages) - len(like):
        notes.append(f"dropped {odd} of its {len(pages)} pages, which differ from the first in size or type")
    with tifffile.TiffFile(path) as file:
        first = file.pages.first
        if len(like) > 1 or first.is_imagej or first.is_shaped:  # the last two may declare more pages than there are
            return _pages_of_one_axis(like, file.series[0])
    return like


def _pages_of_one_axis(pages: list[np.ndarray], series: tifffile.TiffPageSeries) -> list[np.ndarray]:
    axes = [axis for axis, n in zip(series.axes, series.shape, strict=True) if n > 1 and axis not in "YXS"]
    if len(axes) > 1 or axes == ["C"]:
        raise ValueError(f"its pages are channels or of several axes: {series.axes} of shape {series.shape}")
    if axes and len(pages) == 1:  # ImageJ writes large stacks in one piece, as a single page
        return list(series.asarray().reshape(-1, *pages[0].shape))
    return pages


def _first_frame(path: str, file: ImageFile, notes: list[str]) -> np.ndarray:
    frames = getattr(file, "n_frames", 1)
    if frames > 1:
        notes.append(f"dropped all but the first of its {frames} frames")
    return _pixels(path, file, notes)


def _pixels(path: str, file: ImageFile, notes: list[str]) -> np.ndarray:
    """The pixels of the frame that an opened file is at."""
    if file.mode == "I":
        raise ValueError("its 32-bit integers have no known range")
    raw = _raw_mode(file)
    if file.mode == "F" or ";16" in file.mode or ";16" in raw:
        if "transparency" in file.info:
            notes.append("dropped its transparent colour")
        return _upright(file) if file.mode[0] in "FI" else _wide_pixels(path, file, raw)
    gray = file.mode in ("1", "L", "LA", "La")
    return _upright(file.convert(("L" if gray else "RGB") + "A" * file.has_transparency_data))


def _wide_pixels(path: str, file: ImageFile, raw: str) -> np.ndarray:
    """The pixels of 16-bit colour.

    Pillow has no mode for them, and unpacks the high byte of every sample only. Told that the same file is in the
    opposite byte order, it unpacks the low byte.
    """
    if raw == "LA;16B":  # two samples are the four bytes of an RGBA pixel
        return _unpacked_as(path, "RGBA", file.tell()).view(">u2")
    if not re.fullmatch("(RGB|RGBA|RGBX);16[BLN]", raw):
        raise ValueError(f"its 16-bit samples of kind {raw} would be cut to 8 bits")
    opposite = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}[raw[-1]]
    low = _unpacked_as(path, raw[:-1] + opposite, file.tell())
    return _upright(file).astype(np.uint16) << 8 | low


def _raw_mode(file: ImageFile) -> str:
    args = file.tile[0].args if file.format in ("PNG", "TIFF") else ""
    return str(args[0] if isinstance(args, tuple) else args)


def _unpacked_as(path: str, raw: str, frame: int) -> np.ndarray:
    with open(path, "rb") as stream, open_image(stream) as file:
        file.seek(frame)
        file.tile = [
            tile._replace(args=(raw, *tile.args[1:]) if isinstance(tile.args, tuple) else raw) for tile in file.tile
        ]
        return _upright(file)


def _upright(file: Image.Image) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(file))


def _png16(pixels: Shaped[np.ndarray, "height width channels"]) -> bytes:
    """A PNG with 16 bits per channel in gray or RGB, which Pillow writes only in gray."""
    height, width, channels = pixels.shape
    rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    differences = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))  # PNG's filter 2: to the row above, modulo 256
    lines = np.pad(differences, ((0, 0), (1, 0)), constant_values=2)
    header = struct.pack(">IIBBBBB", width, height, 16, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
