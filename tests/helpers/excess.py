"""Averages over initializations, compared with what they should be in units of their standard error."""

import math

import numpy as np
import scipy.stats

from uniphase.initialization.moments import Moments


def excess(samples: np.ndarray, expected) -> float:
    """The largest deviation of the mean from what is expected, over its bound: above 1, the statement is refuted.

    The bound is the quantile that all entries together exceed with probability 1e-6 if the statement is true.
    """
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    bound = scipy.stats.norm.isf(1e-6 / 2 / mean.size)
    return float((np.abs(mean - expected) / (bound * error + 1e-12)).max())


def moment_excesses(samples: np.ndarray, moments: Moments) -> tuple[float, float, float]:
    """The excesses of the mean, the covariance and the structure tensor, from samples of f - μ, (f - μ)(f - μ)ᵀ and
    ∇fᵀΣ⁻¹∇f, one row for each network."""
    c = moments.out_size
    return (
        excess(samples[:, :c], 0.0),
        excess(samples[:, c : c + c**2], moments.covariance.ravel()),
        excess(samples[:, c + c**2 :], moments.structure_tensor.ravel()),
    )
