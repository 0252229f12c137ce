"""Pages of small networks, and what they should show."""

from pathlib import Path

import numpy as np
from PIL import Image

from helpers.small import save_drawn
from uniphase.export.targets import export_network
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid
from uniphase.signals.images import as_pixels

ENGINES = {"WebGL2": "", "typed arrays": "#typed-arrays"}
SMALL = {"width": 360, "height": 420}


def photo(space: str = "rgb", shape=(40, 52)) -> Grid:
    """A picture of waves, in which no pixel is like another."""
    y, x = np.mgrid[0 : 1 : shape[0] * 1j, 0 : 1 : shape[1] * 1j]
    waves = [0.5 + 0.45 * np.sin(9 * x + k) * np.cos(7 * y - k) for k in range(3)]
    Image.fromarray((255 * np.stack(waves, axis=-1)).astype(np.uint8)).save("photo.png")
    return load("photo.png", space=space)


def make(field, *, title: str = "a", bits: int | None = None, width: int = 18, **options):
    """A page of a small network, and the network in it. Its width is no multiple of four, as textures have it."""
    network = save_drawn("a.uniphase", field, width=width)
    if bits is not None:
        export_network("a.uniphase", "b.uniphase", bits=bits)
        network = load_network("b.uniphase").network
    export_network("a.uniphase", f"{title}.html", bits=bits, **options)
    return Path(f"{title}.html"), network


def expected(network, field: Grid) -> np.ndarray:
    values = render(network, field.shape, extents=field.extents, align=field.align)
    return as_pixels(values, field.medium, field.value_range).repeat(3 // field.out_size, axis=-1)


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    """To one of 255 levels, which is the rounding of both."""
    assert found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1
