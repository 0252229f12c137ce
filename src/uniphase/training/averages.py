"""Averages: observations that are means of a field over regions, such as the cells of pixels or the rays of a scanner.

For an average y of f over a region, two independent estimates F and G of the mean of f over it, from a few random
positions each, give E[(F - y)(G - y)] = (mean of f - y)²: the squared error of the average without bias. One estimate,
squared, would add its variance, and a network that makes this small is not the one that the averages tell of.

In the cells of a grid, F and G are means over two opposite positions c + d and c - d around the centre each. What is
linear in the cell cancels, which leaves far less noise in the gradients than independent positions do. The product is
the square of (F + G)/2 - y, less that of (F - G)/2, which has half the variance of F; here only half of that is taken
off. What stays damps oscillations within the cells, of which the samples say nothing and which are noise to the steps.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped
from numpy.typing import ArrayLike

from ..fitting.observations import loss_unit
from ..initialization.moments import Moments, estimate_moments
from ..initialization.noise import require_noise
from ..jax.network import Network, Transposed, evaluate_rows, transposed_weights
from ..jax.render import predict
from ..recipe import CALM, DRAWS
from ..signals.fields import Extent, Grid, Points, taken_range
from ..signals.metrics import Metrics, evaluate, metrics_of_error
from .regions import Cells, Regions, draw_several
from .sampling import Samples, replicate
from .terms import Observations, PositionMoments

# Positions that the mean over a region is measured by after a fit.
_DRAWS = 64
# Positions that the moments of all positions are estimated from.
_POSITIONS = 1 << 14


@dataclass(frozen=True, eq=False)
class Averages(Observations):
    """Averages of a field over regions, by the squared error of the average in units of the signal's variance.

    The loss of a sample of a grid is the square of (f(u) + f(v))/2 - y at two random positions u and v, opposite in its
    cell: the squared error of the average, and a little more where the network is rough within the cell.

    Over other regions it is (f(u) - y)(f(v) - y) at two independent positions, or with more `draws` the product for the
    means over one half of them and over the other. It may be negative; its expectation is the squared error of the
    average.

    **Arguments:**

    - `values`: a `Grid`, whose samples are means over their cells; or an array with a row for each region,
        `(regions, out_size)`, or `(regions,)` for one channel. Rows with NaN are missing.
    - `over`: the regions of an array: `Boxes`, `Rays`, `Gaussians`, `Cells`, or any class with their method `draw`.
    - `moments`: of the field. Default: estimated from a grid. An array has none, so pass them to `fit`, or another
        optimizer than the default.
    - `noise`: as for `Values`.
    - `draws`: random positions in the region of an observation in each step, a multiple of 4. Four are enough for
        cells; a field that varies much within its regions, as along rays, needs more.

    !!! example
        ```python
        result = fit(network, Averages(field), steps=20)

        angles = np.linspace(0, np.pi, 30)
        ends = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        term = Averages(np.ones(30), over=Rays(-ends, ends), draws=16)
        result = fit(network, term, moments=estimate_moments(field), steps=20)
        ```
    """

    values: Any
    over: Regions | None = None
    moments: Moments | None = None
    noise: float = 0.0
    draws: int = DRAWS

    def __post_init__(self):
        require_noise(self.noise)
        if self.draws < 4 or self.draws % 4:
            raise ValueError(f"draws is {self.draws}; it must be a multiple of 4")
        if isinstance(self.values, Points):
            raise ValueError("scattered points have no cells; pass Averages(values, over=regions), or Values(points)")
        if isinstance(self.values, Grid):
            if self.over is not None:
                raise ValueError("a grid has its own cells; pass its values as an array to average over other regions")
            return
        object.__setattr__(self, "values", _rows(self.values))
        if not isinstance(self.over, Regions):
            raise ValueError(f"over is {self.over!r}; pass the regions of the values, e.g. Rays(starts, ends)")
        regions = cast(Sequence[Any], self.over)
        if hasattr(regions, "__len__") and len(regions) != self.samples:
            raise ValueError(f"there are {self.samples} values and {len(regions)} regions; pass one for each")

    @property
    def field(self) -> Grid | None:
        """The grid, if the regions are its cells."""
        return self.values if isinstance(self.values, Grid) else None

    @functools.cached_property
    def regions(self) -> Regions:
        """What each observation is an average over."""
        if self.field is not None:
            return Cells(self.field)
        assert self.over is not None
        return self.over

    @property
    def samples(self) -> int:
        """Number of observations."""
        return self.values.samples if isinstance(self.values, Grid) else len(self.values)

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.values.out_size if isinstance(self.values, Grid) else self.values.shape[1]

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        first = jnp.zeros(1, jnp.int32)
        return eqx.filter_eval_shape(self.regions.draw, jax.random.key(0), first).shape[1]

    @property
    def value_range(self) -> Extent:
        """The interval that PSNR refers to."""
        return self.values.value_range if isinstance(self.values, Grid) else taken_range(self.values)

    @functools.cached_property
    def signal_moments(self) -> Moments | None:
        """The moments of the field, if they are known."""
        if self.moments is None and self.field is not None:
            return estimate_moments(self.field, noise=self.noise)
        return self.moments

    @functools.cached_property
    def variance(self) -> float:
        """The variance over all observations and channels, the unit of the loss."""
        if self.field is not None:
            assert self.signal_moments is not None
            return loss_unit(self.signal_moments)
        variance = float(np.nanvar(self.values.astype(np.float64)))
        return variance if variance > 0 else 1.0

    def position_moments(self) -> PositionMoments:
        """The mean and the covariance of the positions in all regions."""
        if self.field is not None:
            return self.field.position_moments()
        numbers = np.arange(max(_POSITIONS, min(self.samples, 4 * _POSITIONS)), dtype=np.int32) % self.samples
        positions = np.asarray(self.regions.draw(jax.random.key(0), jnp.asarray(numbers)), np.float64)
        return positions.mean(axis=0), np.atleast_2d(np.cov(positions.T, ddof=0))

    def prepare(self, dtype: jnp.dtype) -> "SampledAverages":
        """The same with its observations on the devices. `fit` asks for it once."""
        grid = self.field
        missing = np.isnan(self.values).any(axis=1) if grid is None else grid.missing
        rows = self.values if grid is None else grid.flat_values()
        samples = Samples.of_rows(rows, dtype, missing if missing is not None and missing.any() else None)
        convert = lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
        regions = replicate(jax.tree.map(convert, self.regions))
        calm = CALM if hasattr(regions, "draw_opposite") else 0.0
        return SampledAverages(samples, regions, np.asarray(self.variance, dtype), self.draws, calm)

    def measure(self, network: Network) -> tuple[np.ndarray, Metrics]:
        """The averages of a network, and their metrics.

        Over the cells of a grid they are exact up to rounding, by quadrature; over other regions the averages are means
        of 64 random positions, and the error is that of the true averages on expectation.
        """
        if self.field is not None:
            prediction = predict(network, self.field, average=True)
            return prediction, evaluate(prediction, self.field)
        numbers = jnp.arange(self.samples, dtype=jnp.int32)
        total, squares = (np.zeros(self.values.shape) for _ in range(2))
        for i in range(_DRAWS):
            positions = np.asarray(self.regions.draw(jax.random.fold_in(jax.random.key(0), i), numbers), np.float64)
            error = predict(network, Points(positions, np.zeros(self.samples))).astype(np.float64) - self.values
            total, squares = total + error, squares + np.square(error)
        known = ~np.isnan(self.values).any(axis=1)
        # The square of a mean of draws, less the draws multiplied with themselves, has no bias.
        error = ((np.square(total) - squares) / (_DRAWS * (_DRAWS - 1)))[known].mean()
        return self.values + total / _DRAWS, metrics_of_error(
            max(0.0, float(error)), self.values[known], self.value_range
        )

    def identity(self) -> tuple[Any, ...]:
        """What tells these observations from others."""
        rows = self.values if self.field is None else self.field.flat_values()
        return f"averages {self.noise} {self.variance} {self.draws}", self.regions, rows


class SampledAverages(eqx.Module):
    """`Averages` with its observations on the devices."""

    samples: Samples
    regions: Any
    variance: Any  # an array, so that it is not compiled in
    evaluations: int = eqx.field(static=True)  # of the network, for each observation
    calm: float = eqx.field(static=True)  # the share of the variance of the estimates that stays in the loss

    def draw_in_turn(self, key: PRNGKeyArray, n: int, step: int | Int[Array, ""] = 0) -> tuple[Array, ...]:
        """Indices, weights, and two independent sets of positions, `(drawn, draws // 2, in_size)`."""
        choice, places = jax.random.split(key)
        keys = jax.random.split(jax.random.fold_in(places, step))
        indices, weights = self.samples.draw(choice, n, step)
        numbers = self.samples.numbers_at(indices)
        draw = getattr(self.regions, "draw_opposite", functools.partial(draw_several, self.regions))
        return indices, weights, *(draw(each, numbers, self.evaluations // 2) for each in keys)

    def once(self, network: Network) -> Transposed | None:
        return transposed_weights(network)

    def loss(
        self, network: Network, batch: tuple[Array, ...], transposed: Transposed | None = None
    ) -> Float[Array, " n"]:
        indices, weights, *sets = batch
        values = self.samples.values_at(indices)
        one, other = (self._means(network, positions, transposed) - values for positions in sets)
        squares = jnp.square((one + other) / 2) - (1 - self.calm) * jnp.square((one - other) / 2)
        return weights * squares.mean(axis=1) / self.variance

    def _means(self, network: Network, positions: Array, transposed: Transposed | None) -> Array:
        n, draws, in_size = positions.shape
        outputs = evaluate_rows(network, positions.reshape(n * draws, in_size), transposed)
        return outputs.reshape(n, draws, -1).mean(axis=1)


def _rows(values: ArrayLike) -> Shaped[np.ndarray, "regions out_size"]:
    rows = np.asarray(values)
    if rows.dtype.kind not in "biuf" or rows.ndim not in (1, 2) or rows.size == 0:
        raise ValueError(
            f"values has shape {rows.shape} and dtype {rows.dtype}; pass a grid, or real numbers with a row for each "
            "region"
        )
    if np.isinf(rows).any() or np.isnan(rows.reshape(len(rows), -1)).any(axis=1).all():
        raise ValueError("values has infinite entries, or NaN in every row; pass NaN only where one is missing")
    return (rows if rows.dtype.kind == "f" else rows.astype(np.float64)).reshape(len(rows), math.prod(rows.shape[1:]))
