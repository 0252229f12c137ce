"""Signals and fits that take no time, and what they leave."""

from pathlib import Path

import numpy as np
import soundfile

TINY = {"size": 16, "width": 16, "depth": 1, "steps": 20}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def write_sound(path: Path, samples: int = 400) -> None:
    soundfile.write(path, np.sin(np.arange(samples) / 5), 8000)
