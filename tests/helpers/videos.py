"""Small videos."""

from pathlib import Path

import numpy as np

from uniphase.signals.videos import write_video


def wave(frames: int = 8, height: int = 24, width: int = 32) -> np.ndarray:
    """A gray wave that moves to the right, in three equal channels, so that coarser colours are no loss."""
    t, y, x = np.meshgrid(np.arange(frames), np.arange(height), np.arange(width), indexing="ij")
    values = 0.5 + 0.4 * np.sin(2 * np.pi * (x / width - t / frames)) * np.cos(y / height)
    return np.repeat(values[..., None], 3, axis=-1).astype(np.float32)


def write_clip(path: Path, frames: int = 8, rate: float = 10.0) -> np.ndarray:
    """Write a video of 32 × 24 pixels, and return its values."""
    values = wave(frames)
    write_video(path, values, rate)
    return values
