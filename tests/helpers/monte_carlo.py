"""Expectations over initializations, compared with what they should be in units of their standard error."""

import jax
import jax.numpy as jnp
import numpy as np

from helpers.excess import excess as excess, moment_excesses as moment_excesses
from uniphase.initialization.moments import Moments


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
