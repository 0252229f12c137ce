"""Moments of a large image, from its file."""

import tempfile
import time
from pathlib import Path

import numpy as np

import uniphase as up

from .size import Run, Size

PIXELS = 4096  # along each side


def _large_image() -> Path:
    path = Path(tempfile.gettempdir()) / f"uniphase-benchmark-{PIXELS}.npy"
    if not path.exists():
        partial = path.with_suffix(".partial.npy")
        np.save(partial, np.random.default_rng(0).random((PIXELS, PIXELS, 3), dtype=np.float32))
        partial.rename(path)
    return path


def uniphase_moments(_: Size) -> Run:
    path = _large_image()

    def run(count):
        begun = time.perf_counter()
        for _ in range(count):
            up.estimate_moments(up.array(path, axes=2))
        return time.perf_counter() - begun, []

    return run


def scipy_sobel(_: Size) -> Run:
    """Reading it, and one derivative per axis and channel."""
    import scipy.ndimage

    path = _large_image()

    def run(count):
        begun = time.perf_counter()
        for _ in range(count):
            image = np.load(path)
            for channel in range(3):
                for axis in range(2):
                    scipy.ndimage.sobel(image[..., channel], axis=axis)
        return time.perf_counter() - begun, []

    return run
