"""Expectations over initializations, compared with what they should be in units of their standard error."""

import math

import jax
import jax.numpy as jnp
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


def draw_ensemble(statistic, networks: int) -> np.ndarray:
    """`statistic(key)` for independent keys, in one compiled program."""
    return np.asarray(jax.jit(jax.vmap(statistic))(jax.random.split(jax.random.key(0), networks)), np.float64)


def moment_statistics(network, position: jax.Array, moments: Moments) -> jax.Array:
    """f - μ, (f - μ)(f - μ)ᵀ and ∇fᵀΣ⁻¹∇f of one network at one position, in one vector."""
    mean, precision = (jnp.asarray(a, jnp.float32) for a in (moments.mean, np.linalg.inv(moments.covariance)))
    values, along = jax.linearize(network, position)
    slopes = jax.vmap(along, out_axes=-1)(jnp.eye(len(position), dtype=position.dtype))
    centered = values - mean
    return jnp.concatenate([centered, jnp.outer(centered, centered).ravel(), (slopes.T @ precision @ slopes).ravel()])


def moment_excesses(samples: np.ndarray, moments: Moments) -> tuple[float, float, float]:
    """The excesses of the mean, the covariance and the structure tensor, from samples of `moment_statistics`."""
    c = moments.out_size
    return (
        excess(samples[:, :c], 0.0),
        excess(samples[:, c : c + c**2], moments.covariance.ravel()),
        excess(samples[:, c + c**2 :], moments.structure_tensor.ravel()),
    )
