"""Regions: what an observation is an average over, such as the cell of a pixel or the ray of a scanner.

`Averages` asks one thing of regions: to draw a position inside each of some of them. Where the positions of a region
are drawn more often, its average has more weight. A class with this one method is a kind of regions as well.
"""

import math
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import ArrayLike

from ..jax.render import grid_positions
from ..signals.fields import Align, Extent, Grid


@runtime_checkable
class Regions(Protocol):
    """What `Averages` asks of its regions. It may be an `eqx.Module`, whose arrays then are not compiled in.

    !!! example
        ```python
        import equinox as eqx


        class Discs(eqx.Module):
            centers: jax.Array  # (regions, 2)
            radius: float

            def draw(self, key, indices):
                square, turn = jax.random.uniform(key, (2, len(indices)))
                angle = 2 * jnp.pi * turn
                direction = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
                return self.centers[indices] + self.radius * jnp.sqrt(square)[:, None] * direction
        ```
    """

    def draw(self, key: PRNGKeyArray, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """A random position inside each of the regions with these indices, independent of all others."""
        ...


class Cells(eqx.Module):
    """The cells of a grid: boxes as wide as the distance between neighbouring samples, around each of them.

    With `align="corners"`, the cells at the ends reach beyond the domain by half their width.

    **Arguments:**

    - `grid`: the grid, of which only shape, extents and alignment are used.

    !!! example
        ```python
        Averages(field.flat_values(), over=Cells(field))  # what `Averages(field)` means
        ```
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    extents: tuple[Extent, ...] = eqx.field(static=True)
    align: Align = eqx.field(static=True)
    spacing: Array  # (in_size,)

    def __init__(self, grid: Grid):
        self.shape, self.extents, self.align = grid.shape, grid.extents, grid.align
        self.spacing = jnp.asarray(grid.spacing, jnp.result_type(float))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def draw(self, key: PRNGKeyArray, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """A random position inside each of some cells."""
        return self._centers(indices) + self._shifts(key, (len(indices), len(self.shape)))

    def draw_opposite(
        self, key: PRNGKeyArray, indices: Int[Array, " n"], draws: int
    ) -> Float[Array, "n {draws} in_size"]:
        """Pairs of opposite positions in each of some cells, over which the mean of a linear function is exact."""
        shifts = self._shifts(key, (len(indices), draws // 2, len(self.shape)))
        return self._centers(indices)[:, None] + jnp.concatenate([shifts, -shifts], axis=1)

    def _centers(self, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        return grid_positions(indices, self.shape, self.extents, self.align, dtype=self.spacing.dtype)

    def _shifts(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
        return self.spacing * (jax.random.uniform(key, shape, self.spacing.dtype) - 0.5)


class Boxes(eqx.Module):
    """Boxes with sides along the axes, in space, in time or in both.

    **Arguments:**

    - `low`, `high`: the corners of each box, `(regions, in_size)`; or one row or number for all.

    !!! example
        ```python
        starts = np.arange(5.0)[:, None]
        exposures = Boxes(starts, starts + 0.5)  # along one axis, that of time
        ```
    """

    low: Array  # (regions, in_size)
    high: Array  # (regions, in_size)

    def __init__(self, low: ArrayLike, high: ArrayLike):
        self.low, self.high = _pairs("low", low, "high", high)
        if bad := _where(~(np.asarray(self.low) < np.asarray(self.high)).all(axis=1)):
            raise ValueError(f"low is not below high in box {bad[0]}{_others(bad)}; exchange them")

    def __len__(self) -> int:
        return len(self.low)

    def draw(self, key: PRNGKeyArray, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """A random position inside each of some boxes."""
        low, high = self.low[indices], self.high[indices]
        return low + (high - low) * jax.random.uniform(key, low.shape, low.dtype)


class Rays(eqx.Module):
    """Straight lines between two points, as of X-rays: an observation is the mean along the line.

    A scanner that gives the integral along each ray gives the mean if it is divided by `lengths`.

    **Arguments:**

    - `starts`, `ends`: of each ray, `(regions, in_size)`; or one row for all.

    !!! example
        ```python
        angles = np.linspace(0, 2 * np.pi, 30, endpoint=False)
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        Rays(-directions, directions).lengths  # 30 times 2
        ```
    """

    starts: Array  # (regions, in_size)
    ends: Array  # (regions, in_size)

    def __init__(self, starts: ArrayLike, ends: ArrayLike):
        self.starts, self.ends = _pairs("starts", starts, "ends", ends)
        if bad := _where((np.asarray(self.starts) == np.asarray(self.ends)).all(axis=1)):
            raise ValueError(f"ray {bad[0]} has the length zero{_others(bad)}; leave it out")

    @property
    def lengths(self) -> Float[np.ndarray, " regions"]:
        """The length of each ray."""
        return np.linalg.norm(np.asarray(self.ends, np.float64) - np.asarray(self.starts, np.float64), axis=1)

    def __len__(self) -> int:
        return len(self.starts)

    def draw(self, key: PRNGKeyArray, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """A random position on each of some rays."""
        return self.draw_several(key, indices, 1)[:, 0]

    def draw_several(
        self, key: PRNGKeyArray, indices: Int[Array, " n"], draws: int
    ) -> Float[Array, "n {draws} in_size"]:
        """Positions at equal distances along each ray, from a random one on: their mean scatters much less."""
        starts, ends = self.starts[indices], self.ends[indices]
        first = jax.random.uniform(key, (len(indices), 1), starts.dtype)
        share = (first + jnp.arange(draws, dtype=starts.dtype)) / draws  # (n, draws)
        return starts[:, None] + share[..., None] * (ends - starts)[:, None]


class Gaussians(eqx.Module):
    """Gaussian footprints, as of a blurred instrument: an observation is the mean weighted by a Gaussian.

    **Arguments:**

    - `centers`: of each footprint, `(regions, in_size)`.
    - `std`: the standard deviation: one number, one for each coordinate, or `(regions, in_size)`.

    !!! example
        ```python
        probes = Gaussians(np.random.default_rng(0).uniform(-1, 1, (100, 2)), std=0.05)
        ```
    """

    centers: Array  # (regions, in_size)
    std: Array  # (regions, in_size)

    def __init__(self, centers: ArrayLike, std: float | ArrayLike):
        self.centers, self.std = _pairs("centers", centers, "std", std)
        if bad := _where(~(np.asarray(self.std) > 0).all(axis=1)):
            raise ValueError(f"std is {np.asarray(self.std)[bad[0]].tolist()} in footprint {bad[0]}; make it positive")

    def __len__(self) -> int:
        return len(self.centers)

    def draw(self, key: PRNGKeyArray, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """A random position around each of some centres."""
        centers, std = self.centers[indices], self.std[indices]
        return centers + std * jax.random.normal(key, centers.shape, centers.dtype)


def draw_several(
    regions: Any, key: PRNGKeyArray, indices: Int[Array, " n"], draws: int
) -> Float[Array, "n {draws} in_size"]:
    """Positions inside each of some regions: independent ones, unless the regions spread them by a method of their own.

    Whichever way, the mean of a function over them is right on expectation.
    """
    if hasattr(regions, "draw_several"):
        return regions.draw_several(key, indices, draws)
    positions = regions.draw(key, jnp.repeat(indices, draws))
    return positions.reshape(len(indices), draws, -1)


def _pairs(first: str, a: Any, second: str, b: Any) -> tuple[Array, Array]:
    """Two arrays with a row for each region."""
    given = {first: np.asarray(a, np.float64), second: np.asarray(b, np.float64)}
    for name, values in given.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has NaN or infinite entries; leave these regions out")
    try:
        a, b = np.broadcast_arrays(*given.values())
    except ValueError:
        a = b = np.zeros(0)
    if a.ndim != 2 or a.size == 0:
        shapes = " and ".join(f"{name} has shape {values.shape}" for name, values in given.items())
        raise ValueError(f"{shapes}; pass one row for each region, (regions, in_size)")
    dtype = jnp.result_type(float)
    return jnp.asarray(a, dtype), jnp.asarray(b, dtype)


def _where(bad: Any) -> list[int]:
    return np.flatnonzero(np.asarray(bad)).tolist()


def _others(bad: list[int]) -> str:
    """How many regions have the same fault as the first one."""
    return "" if len(bad) == 1 else f" (and so in {len(bad) - 1} more)"
