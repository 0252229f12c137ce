"""Images for the tests: random pixels, and a file format that Pillow cannot write."""

import struct
import zlib

import numpy as np

from uniphase.signals.fields import Grid


def random_pixels(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(0).integers(info.min, info.max, shape, dtype, endpoint=True)


def stored_integers(grid: Grid, dtype: type) -> np.ndarray:
    """The integers that were stored: exact, since float32 resolves all of 16 bits."""
    assert grid.values.dtype == np.float32
    return np.rint(grid.values.astype(np.float64) * np.iinfo(dtype).max).astype(dtype)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png16(path, values: np.ndarray, *, interlaced: bool = False, extra: bytes = b"") -> None:
    """A 16-bit PNG, which Pillow writes only in gray. Rows use the Sub filter, as one without filters is too easy."""
    height, width, channels = values.shape
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    rows = b""
    for top, left, down, right in passes:
        part = values[top::down, left::right]
        for row in part.astype(">u2") if part.size else []:
            data = np.frombuffer(row.tobytes(), np.uint8)
            rows += b"\x01" + (data - np.pad(data, (2 * channels, 0))[: len(data)]).tobytes()
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, interlaced)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + extra
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )
