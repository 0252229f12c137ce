"""Fields of every kind to draw, and a check that a picture was drawn."""

from pathlib import Path

import numpy as np
from PIL import Image

from uniphase.signals.fields import Grid

RNG = np.random.default_rng(0)
LOSSES = np.geomspace(1.0, 1e-4, 50)
FIELDS = {
    "gray": Grid(RNG.uniform(size=(12, 16, 1)), medium="gray"),
    "lab": Grid(RNG.normal(50.0, 20.0, (12, 16, 3)), medium="lab"),
    "slender": Grid(RNG.normal(size=(2, 90, 3))),
    "integers": Grid(RNG.integers(0, 9, (12, 16, 2), dtype=np.uint8)),
    "flat": Grid(np.full((8, 8, 3), 2.0)),
    "volume": Grid(RNG.normal(size=(5, 6, 7, 1))),
    "video": Grid(RNG.uniform(size=(5, 6, 7, 3)), medium="rgb", rate=25.0),
    "curve": Grid(RNG.normal(size=(50, 1))),
    "long curve": Grid(RNG.normal(size=(5000, 1))),
    "sound": Grid(RNG.normal(size=(3000, 2)), extents=(-100.0, 100.0), medium="sound", rate=8000.0),
    "silence": Grid(np.zeros((9, 1)), medium="sound"),
}


def noisy(field: Grid) -> np.ndarray:
    return field.values + 0.1 * RNG.normal(size=field.values.shape)


def assert_picture(path: Path, widest: int = 3200) -> None:
    with Image.open(path) as picture:
        picture.load()
        assert (picture.format, 300 < picture.width < widest, 200 < picture.height < widest) == ("PNG", True, True)
