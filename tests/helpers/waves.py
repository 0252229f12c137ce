"""A smooth field of any shape."""

import numpy as np

from uniphase.signals.fields import Grid


def waves(shape: tuple[int, ...], channels: int = 1) -> Grid:
    """A smooth random field, of some twenty samples to a wavelength."""
    rng, grid = np.random.default_rng(0), Grid(np.zeros((*shape, 1)))
    x = grid.coordinates() / np.array(grid.spacing)
    values = np.zeros((len(x), channels))
    for _ in range(60):
        phase = x @ rng.normal(0, 0.25, len(shape)) + rng.uniform(0, 2 * np.pi)
        values += np.sin(phase)[:, None] * rng.normal(size=channels)
    return Grid(values.reshape(*shape, channels))
