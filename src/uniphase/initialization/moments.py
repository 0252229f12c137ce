"""Moments: the three statistics of a signal that a uniform-phase network is matched to.

Notation of Kuang, Chickering and Lin, "Stable initialization without the CLT": μ is the mean of the outputs, Σ their
covariance, and Ω = E[Jᵀ Σ⁻¹ J] the normalized structure tensor, where J (out_size × in_size) is the derivative of the
outputs by the coordinates.
"""

import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent

import numpy as np
from jaxtyping import Float
from scipy.ndimage import sobel
from scipy.spatial import KDTree

from ..signals.fields import Field, Grid, Points, slabs
from ..signals.markup import Html, preformatted, section, table
from .noise import noise_of_differences, require_noise, without_noise

Numbers = float | Sequence[float] | np.ndarray

# The paper's ε: an absolute number, for values and coordinates of about 1.
EPSILON = 1e-6
# Without an ε, every ridge is this fraction of the quantity that it is added to.
RELATIVE_RIDGE = 1e-6
# A channel whose standard deviation is below this fraction of its mean is constant: the rest is rounding.
_ROUNDING = 1e-12
# Slopes of fewer whole stencils of a grid say little; then those at scattered points are taken.
_FEW_SLOPES = 256
# A matrix of more numbers is shown in part.
_NUMBERS = 64


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean, covariance and normalized structure tensor of a signal, in float64.

    **Arguments:**

    - `mean`: μ, of shape `(out_size,)`.
    - `covariance`: Σ, of shape `(out_size, out_size)`, without ε.
    - `structure_tensor`: Ω, of shape `(in_size, in_size)`.
    - `epsilon`: the ridge of an estimate, one number or one per channel. It is added to the diagonal of `covariance`
        wherever that is inverted or sampled from. `structure_tensor` has its own ridge already. Prescribed moments
        need none.

    !!! example
        ```python
        moments = estimate_moments(Grid(np.random.default_rng(0).normal(size=(64, 64, 3))))
        print(moments)
        ```
    """

    mean: Float[np.ndarray, " out_size"]
    covariance: Float[np.ndarray, "out_size out_size"]
    structure_tensor: Float[np.ndarray, "in_size in_size"]
    epsilon: float | tuple[float, ...] = 0.0

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return len(self.structure_tensor)

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return len(self.mean)

    @property
    def regularized_covariance(self) -> Float[np.ndarray, "out_size out_size"]:
        """Σ_ε = Σ + εI, or Σ + diag(ε) if ε differs between channels."""
        return self.covariance + np.diag(np.broadcast_to(self.epsilon, self.out_size))

    def __str__(self) -> str:
        rows = (("mean", self.mean), ("covariance", self.covariance), ("structure tensor", self.structure_tensor))
        return "\n".join(f"{name}\n{indent(np.array2string(value, precision=6), '  ')}" for name, value in rows)

    def _repr_html_(self) -> str:
        names = ("mean", "μ"), ("covariance", "Σ"), ("structure_tensor", "Ω"), ("epsilon", "ε")
        rows = [(name.replace("_", " "), symbol, _numbers(np.asarray(getattr(self, name)))) for name, symbol in names]
        return section(f"moments: {self.in_size} → {self.out_size}", table((), rows))


def _numbers(array: np.ndarray) -> Html:
    return preformatted(np.array2string(array, precision=6, threshold=_NUMBERS))


def estimate_moments(field: Field, *, epsilon: float | None = None, noise: float = 0.0) -> Moments:
    r"""Estimate the moments of a sampled field.

    $$\hat\Omega = \frac1m \sum_i J_i^\top Σ_ε^{-1} J_i + R_Ω, \quad Σ_ε = \hat\Sigma + R_Σ$$

    with the unbiased sample covariance. On a grid the derivatives are Sobel differences, as in the paper; at scattered
    points they are local linear regressions over nearest neighbours. The field is read once, a slab at a time. Where
    samples of a grid are missing, derivatives are taken only where all samples that they need are known; if there are
    few such places, as at scattered points.

    The diagonal ridges R make singular matrices invertible. By default they are a millionth of each channel's
    variance, and of each coordinate's own entry of Ω, so that nothing depends on the units of either.

    **Arguments:**

    - `field`: a `Grid` or `Points`.
    - `epsilon`: the paper's ridges instead: R = εI for both, with ε = 1e-6 (`EPSILON`) there.
    - `noise`: the standard deviation of white noise in the values, see `estimate_noise`. What it adds to the variances
        and to the slopes is taken out, so that the moments are those of the field without it.

    **Returns:**

    The `Moments`. A signal that is constant, or varies less than `epsilon`, gives valid moments and a warning.

    !!! example
        ```python
        x = np.linspace(-1, 1, 1001)
        estimate_moments(Grid(np.sin(40 * x)[:, None], align="corners")).structure_tensor  # close to 40²
        ```
    """
    if not isinstance(field, Grid | Points):
        raise ValueError(
            f"field is a {type(field).__name__}; pass Grid(values) with values of shape (*shape, channels), or "
            "Points(positions, values)"
        )
    if epsilon is not None and not epsilon > 0:
        raise ValueError(f"epsilon is {epsilon}; it must be positive, so that constant channels can be inverted")
    require_noise(noise)
    mean, covariance, products, noise_products = (
        _grid_statistics(field) if isinstance(field, Grid) else _point_statistics(field)
    )
    if noise:
        covariance, products = without_noise(covariance, products, noise_products, noise)
    _warn_if_flat(mean, covariance, epsilon)
    return combine_statistics(mean, covariance, products, half_widths=_half_widths(field), epsilon=epsilon)


def combine_statistics(
    mean: Float[np.ndarray, " out_size"],
    covariance: Float[np.ndarray, "out_size out_size"],
    products: Float[np.ndarray, "out_size in_size out_size in_size"],
    *,
    half_widths: Float[np.ndarray, " in_size"] | None = None,
    epsilon: float | None = None,
    fraction: float = RELATIVE_RIDGE,
) -> Moments:
    """Moments from a mean, a covariance and the average products of slopes, E[(∂f_k/∂x_a)(∂f_l/∂x_b)].

    Ω contracts the products with Σ_ε⁻¹, which is known only at the end; so one pass over the data is enough.

    **Arguments:**

    - `mean`, `covariance`, `products`: the statistics.
    - `half_widths`: of the domain along each coordinate. With them Ω is positive along coordinates on which nothing
        depends, too: the phases of a network then change by a thousandth of a radian over the domain.
    - `epsilon`: as for `estimate_moments`.
    - `fraction`: without an `epsilon`, the ridges as a fraction of the diagonals.
    """
    ridge = fraction * _own_variances(mean, np.diag(covariance)) if epsilon is None else np.full(len(mean), epsilon)
    omega = np.einsum("kalb,kl->ab", products, _inverse(covariance + np.diag(ridge)))
    omega = (omega + omega.T) / 2
    if epsilon is not None:
        return Moments(mean, covariance, omega + epsilon * np.eye(len(omega)), epsilon)
    least = 0.0 if half_widths is None else half_widths**-2.0
    omega += fraction * np.diag(np.diag(omega) + least)
    return Moments(mean, covariance, omega, tuple(ridge.tolist()))


def prescribe_moments(
    *,
    mean: Numbers = 0.0,
    covariance: Numbers | Sequence[Sequence[float]] = 1.0,
    length_scale: Numbers | None = None,
    structure_tensor: Numbers | Sequence[Sequence[float]] | None = None,
) -> Moments:
    """Moments from prior knowledge instead of data, e.g. for the solution of a differential equation.

    **Arguments:**

    - `mean`: one number per channel.
    - `covariance`: a matrix, a variance per channel, or one variance for all channels.
    - `length_scale`: a length ℓ for each coordinate, over which the signal changes by about its own standard deviation:
        every channel then has E[(∂f/∂x)²] = Var f / ℓ². A sinusoid of wavelength λ has ℓ = λ/2π.
    - `structure_tensor`: the full Ω, in place of `length_scale`.

    !!! example
        ```python
        # a velocity and a pressure over (time, position)
        prescribe_moments(mean=[0.0, 1.0], covariance=[4.0, 0.1], length_scale=[0.5, 0.05])
        ```
    """
    mean = _vector("mean", mean)
    covariance = np.asarray(covariance, dtype=np.float64)
    if covariance.ndim < 2:
        variances = _vector("covariance", covariance)
        size = max(len(mean), len(variances))
        covariance = np.diag(np.broadcast_to(variances, size))
    mean = np.broadcast_to(mean, len(covariance)) if len(mean) == 1 else mean
    _require_definite("covariance", covariance, strictly=True)
    if len(mean) != len(covariance):
        raise ValueError(f"mean has {len(mean)} channels but covariance has {len(covariance)}; make them agree")
    if (length_scale is None) == (structure_tensor is None):
        raise ValueError(
            f"length_scale is {length_scale!r} and structure_tensor is {structure_tensor!r}; pass exactly one of them"
        )
    if length_scale is not None:
        lengths = _vector("length_scale", length_scale)
        if not (lengths > 0).all():
            raise ValueError(f"length_scale is {length_scale!r}; every length must be positive")
        structure_tensor = len(mean) * np.diag(lengths**-2)
    omega = np.atleast_2d(np.asarray(structure_tensor, dtype=np.float64))
    _require_definite("structure_tensor", omega, strictly=False)
    return Moments(mean.copy(), covariance, omega)


# Mean, covariance and products of slopes; and the products of slopes of white noise of variance 1.
_Statistics = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _grid_statistics(grid: Grid) -> _Statistics:
    channels, axes = grid.out_size, grid.in_size
    shift, known, whole = None, 0, 0
    total, squares = np.zeros(channels), np.zeros((channels, channels))
    products = np.zeros((channels * axes, channels * axes))
    for axis, start, stop in slabs(grid.shape, limit=(1 << 19) // channels):
        # With one more sample on either side, where there is one, the derivatives are those of the whole grid.
        low, high = max(start - 1, 0), min(stop + 1, grid.shape[axis])
        outer = (slice(None),) * axis
        slab = np.moveaxis(grid.values[(*outer, slice(low, high))], -1, 0).astype(np.float64, order="C")
        inner = (*outer, slice(start - low, stop - low))
        inside = slab[(slice(None), *inner)].reshape(channels, -1)  # (channels, samples)
        slopes = np.stack([_derivative(f, a, grid.spacing[a])[inner].ravel() for f in slab for a in range(axes)])
        if np.isnan(slopes).any():  # a difference with NaN is NaN
            inside, slopes = (numbers[:, ~np.isnan(numbers).any(axis=0)] for numbers in (inside, slopes))
        if inside.size == 0:
            continue
        shift = inside.mean(axis=1, keepdims=True) if shift is None else shift
        total += (inside - shift).sum(axis=1)
        squares += (inside - shift) @ (inside - shift).T
        products += slopes @ slopes.T
        known, whole = known + inside.shape[1], whole + slopes.shape[1]
    assert shift is not None
    if whole < min(_FEW_SLOPES, known):
        return _point_statistics(_known_points(grid))
    covariance = (squares - np.outer(total, total) / known) / (known - 1)
    products = (products / whole).reshape(channels, axes, channels, axes)
    return shift[:, 0] + total / known, covariance, products, noise_of_differences(grid)


def _known_points(grid: Grid) -> Points:
    known = ~grid.missing if grid.missing is not None else slice(None)
    return Points(grid.coordinates()[known], grid.flat_values()[known])


def _derivative(channel: np.ndarray, axis: int, spacing: float) -> np.ndarray:
    # Sobel's centered difference weighs 2 and its smoothing [1, 2, 1] weighs 4 along each of the other axes.
    return sobel(channel, axis=axis) / (spacing * 2 * 4 ** (channel.ndim - 1))


def _point_statistics(points: Points) -> _Statistics:
    # Sorting the positions makes the result independent of the order of the points, to the last bit.
    order = np.lexsort((*points.values.T, *points.positions.T))
    values = points.values[order].astype(np.float64)
    positions, group, counts = np.unique(points.positions[order], axis=0, return_inverse=True, return_counts=True)
    if len(positions) <= points.in_size:
        raise ValueError(
            f"positions has {len(positions)} distinct rows; the slopes in {points.in_size} coordinates need at least "
            f"{points.in_size + 1}"
        )
    grouped = np.zeros((len(positions), points.out_size))
    np.add.at(grouped, group.ravel(), values)
    grouped /= counts[:, None]
    scaled, unscale = _whiten(positions)
    parts = list(_slope_products(scaled, grouped, counts))
    products, noise = (functools.reduce(np.add, part) for part in zip(*parts, strict=True))
    products = np.einsum("kalb,ac,bd->kcld", products, unscale, unscale)
    return values.mean(axis=0), np.atleast_2d(np.cov(values.T, ddof=1)), products, unscale.T @ noise @ unscale


def require_dimensions(covariance: np.ndarray) -> None:
    """Positions of this covariance lie on no line or plane, up to rounding."""
    std = np.sqrt(np.diag(covariance))
    units = np.where(std > 0, std, 1.0)
    spread = np.linalg.eigvalsh(covariance / np.outer(units, units))
    if spread[0] <= 1e-12 * spread[-1]:
        raise ValueError(
            f"positions lie in fewer than {len(std)} dimensions (standard deviations {std.tolist()}); drop the "
            "coordinates that are constant or a combination of others"
        )


def _whiten(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions in units of their own spread, so that neighbourhoods do not depend on the units, and ∂scaled/∂x."""
    centered = positions - positions.mean(axis=0)
    units = np.where((std := centered.std(axis=0)) > 0, std, 1.0)
    require_dimensions(np.atleast_2d(np.cov(centered.T, ddof=0)))
    spread, axes = np.linalg.eigh(np.atleast_2d(np.cov((centered / units).T)))
    unscale = (axes / np.sqrt(spread)).T / units
    return centered @ unscale.T, unscale


def _slope_products(
    positions: np.ndarray, values: np.ndarray, counts: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sums of slope products, a block of points at a time; a slope is fitted to 3·in_size + 1 neighbours.

    `counts` says how many samples each value is the mean of. Beside the products stand those of white noise of
    variance 1 in each sample.
    """
    neighbours = min(3 * positions.shape[1] + 1, len(positions))
    tree = KDTree(positions)
    block = max(1, (1 << 20) // (neighbours * (positions.shape[1] + values.shape[1])))
    for start in range(0, len(positions), block):
        nearest = tree.query(positions[start : start + block], neighbours)[1]  # (block, neighbours)
        dx = positions[nearest] - positions[nearest].mean(axis=1, keepdims=True)
        dy = values[nearest] - values[nearest].mean(axis=1, keepdims=True)
        # Neighbours on a line leave a direction undetermined; the pseudoinverse takes the smallest slope there.
        inverse = np.linalg.pinv(np.einsum("mna,mnb->mab", dx, dx), rcond=1e-9, hermitian=True)
        slopes = np.einsum("mab,mnb,mnk->mka", inverse, dx, dy)  # (block, out_size, in_size)
        stencil = np.einsum("mab,mnb->mna", inverse, dx)  # the weight of each neighbour in a slope
        weights = counts[start : start + block] / counts.sum()
        noise = np.einsum("mna,mnb,mn,m->ab", stencil, stencil, 1 / counts[nearest], weights)
        yield np.einsum("mka,mlb,m->kalb", slopes, slopes, weights), noise


def _half_widths(field: Field) -> np.ndarray:
    if isinstance(field, Grid):
        return np.ptp(field.extents, axis=1) / 2
    return np.ptp(field.positions, axis=0) / 2


def _is_constant(mean: np.ndarray, variances: np.ndarray) -> np.ndarray:
    return variances <= (_ROUNDING * mean) ** 2


def _own_variances(mean: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Each channel's variance, or for a constant channel a number in its place: its square, or the largest variance.

    The smaller of these two is taken, as a constant channel needs no spread.
    """
    constant = _is_constant(mean, variances)
    others = variances[~constant].max(initial=0.0)
    known = np.where(mean**2 > 0, mean**2, np.inf)
    known = np.minimum(known, others if others > 0 else np.inf)
    known = np.where(np.isfinite(known), known, 1.0)
    return np.where(constant, known, variances)


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """Inverted in units in which the diagonal is one: channels may differ by many orders of magnitude."""
    scale = np.sqrt(np.diag(covariance))
    units = np.outer(scale, scale)
    try:
        np.linalg.cholesky(covariance / units)
        return np.linalg.inv(covariance / units) / units
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "epsilon is too small for channels of this size that depend on each other: their covariance cannot be "
            "inverted; pass a larger epsilon, or leave it out (on the command line: leave out --recipe paper) for a "
            "ridge relative to the variance"
        ) from error


def _warn_if_flat(mean: np.ndarray, covariance: np.ndarray, epsilon: float | None) -> None:
    variance = float(np.trace(covariance)) / len(covariance)
    if epsilon is None and _is_constant(mean, np.diag(covariance)).all():
        warnings.warn(
            f"the signal is constant, or nearly so: its variance {variance:.3g} is not above the rounding of its "
            "values. If it does carry detail, subtract the mean before rounding",
            stacklevel=3,
        )
    if epsilon is not None and variance <= epsilon:
        warnings.warn(
            f"the signal is constant, or nearly so: its variance {variance:.3g} is not above ε = {epsilon:g}. "
            "If it does carry detail, leave epsilon out or pass a smaller one",
            stacklevel=3,
        )


def _vector(name: str, value: Numbers) -> np.ndarray:
    vector = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise ValueError(f"{name} is {value!r}; pass a finite number or a list of them")
    return vector


def _require_definite(name: str, matrix: np.ndarray, *, strictly: bool) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{name} has shape {matrix.shape}; pass a finite square matrix")
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
        raise ValueError(f"{name} is not symmetric: {matrix.tolist()}; pass (M + M.T) / 2")
    smallest, largest = (np.linalg.eigvalsh(matrix)[i] for i in (0, -1))
    if smallest < -1e-9 * abs(largest) or (strictly and smallest <= 0):
        kind = "positive definite" if strictly else "positive semidefinite"
        raise ValueError(f"{name} has the eigenvalue {smallest:.3g}, but it must be {kind}: {matrix.tolist()}")
