"""White noise in the values of a field: its level, and what it adds to the statistics of the field."""

import math

import numpy as np
from skimage.restoration import estimate_sigma

from ..signals.fields import Field, Grid


def estimate_noise(field: Field) -> float:
    """The standard deviation of white noise in the values of a grid, by `skimage.restoration.estimate_sigma`.

    It uses the finest wavelet coefficients of each channel, most of which are noise. Fine texture is taken for noise
    as well, so where the level is known, give it instead. The mean over the channels is returned.

    !!! example
        ```python
        noisy = Grid(field.values + np.random.default_rng(0).normal(0, 0.1, field.values.shape))
        estimate_noise(noisy)  # about 0.1
        ```
    """
    if not isinstance(field, Grid) or field.missing is not None:
        what = "are scattered" if not isinstance(field, Grid) else "are missing in places"
        raise ValueError(f"the noise of samples that {what} cannot be estimated; pass its standard deviation")
    return float(np.mean(estimate_sigma(field.values.astype(np.float64), channel_axis=-1)))


def require_noise(noise: float) -> None:
    """Raise an error for a noise that is negative or not finite."""
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise is {noise}; pass a standard deviation, at least 0 and finite")


def without_noise(
    covariance: np.ndarray, products: np.ndarray, noise_products: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """The covariance and the slope products of a field, from those of the field with white noise added.

    Noise of the channels is independent, and differences of noise are not detail. The difference may be negative where
    there is more noise than signal; it then is a thousandth of what was there.
    """
    channels, axes = products.shape[:2]
    cleaned = _at_least(covariance - noise**2 * np.eye(channels), 1e-3 * covariance)
    taken = np.einsum("kl,ab->kalb", noise**2 * np.eye(channels), noise_products)
    flat = (products - taken).reshape(channels * axes, channels * axes)
    slopes = _at_least(flat, 1e-3 * products.reshape(flat.shape))
    return cleaned, slopes.reshape(products.shape)


def noise_of_differences(grid: Grid) -> np.ndarray:
    """What white noise of variance 1 adds to the products of Sobel differences: the squared weights of their stencil.

    The smoothing has the weights [1, 2, 1]/4, and [3, 1]/4 at the ends, where the end is repeated.
    """
    smoothing = np.array([(6 * (n - 2) + 2 * 10) / (16 * n) for n in grid.shape])
    return np.diag([0.5 / h**2 * smoothing.prod() / smoothing[a] for a, h in enumerate(grid.spacing)])


def _at_least(matrix: np.ndarray, least: np.ndarray) -> np.ndarray:
    """The symmetric matrix, raised along its own axes to what the positive semidefinite `least` has there."""
    values, vectors = np.linalg.eigh(matrix)
    floor = np.einsum("ai,ab,bi->i", vectors, least, vectors)
    return (vectors * np.maximum(values, floor)) @ vectors.T
