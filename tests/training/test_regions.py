import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.signals.fields import Grid
from uniphase.training.regions import Boxes, Cells, Gaussians, Rays

GRID = Grid(np.zeros((4, 6, 1)), extents=((0.0, 2.0), (-3.0, 3.0)))
N = 20_000

REGIONS = {
    "cells": (Cells(GRID), GRID.coordinates()[[7]], np.array([0.5, 1.0]) / np.sqrt(12)),
    "boxes": (Boxes([[0.0, 1.0]] * 8, [1.0, 4.0]), np.array([[0.5, 2.5]]), np.array([1.0, 3.0]) / np.sqrt(12)),
    "rays": (Rays([[0.0, 1.0]] * 8, [[2.0, -3.0]] * 8), np.array([[1.0, -1.0]]), np.array([2.0, 4.0]) / np.sqrt(12)),
    "gaussians": (Gaussians([[1.0, 2.0]] * 8, std=[0.1, 0.3]), np.array([[1.0, 2.0]]), np.array([0.1, 0.3])),
}


@pytest.mark.parametrize(("regions", "center", "std"), REGIONS.values(), ids=REGIONS)
def test_positions_are_spread_over_their_region(regions, center, std):
    positions = np.asarray(regions.draw(jax.random.key(0), jnp.full(N, 7, jnp.int32)), np.float64)
    # Five standard errors: of a mean, and of a standard deviation, whose relative one is at most 1/√(2N).
    np.testing.assert_allclose(positions.mean(axis=0), center[0], rtol=0, atol=5 * std.max() / np.sqrt(N))
    np.testing.assert_allclose(positions.std(axis=0), std, rtol=5 / np.sqrt(2 * N))


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_cells_tile_the_domain(align):
    """Every position lies in the cell of its own sample."""
    grid = Grid(np.zeros((5, 7, 1)), extents=((-1.0, 1.0), (0.0, 3.0)), align=align)
    cells = Cells(grid)
    assert len(cells) == 35
    positions = np.asarray(cells.draw(jax.random.key(0), jnp.arange(35, dtype=jnp.int32)))
    offsets = np.abs(positions - grid.coordinates()) / grid.spacing
    assert offsets.max() <= 0.5 + 1e-6  # float32 rounding
    assert offsets.max() > 0.4


def test_rays_stay_on_their_line():
    rays = Rays([[0.0, 1.0], [1.0, 1.0]], [[2.0, -3.0], [5.0, 4.0]])
    np.testing.assert_allclose(rays.lengths, [np.sqrt(20), 5.0])
    x, y = np.asarray(rays.draw(jax.random.key(0), jnp.zeros(100, jnp.int32))).T
    np.testing.assert_allclose(y, 1 - 2 * x, atol=1e-5)  # float32 rounding


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Rays(np.zeros((3, 2)), [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]), "ray 1 has the length zero"),
    (lambda: Boxes([[0.0]], [[0.0]]), "low is not below high in box 0"),
    (lambda: Gaussians(np.zeros((2, 1)), 0.0), r"std is \[0.0\] in footprint 0; make it positive"),
    (lambda: Rays(np.zeros((3, 2)), np.ones((2, 2))), r"starts has shape \(3, 2\) and ends has shape \(2, 2\); pass"),
    (lambda: Rays(np.zeros(2), np.ones(2)), "pass one row for each region"),
    (lambda: Rays(np.full((1, 2), np.nan), np.ones((1, 2))), "starts has NaN or infinite entries"),
])  # fmt: skip
def test_bad_regions(make, message):
    with pytest.raises(ValueError, match=message):
        make()
