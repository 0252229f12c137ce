import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme
from uniphase.jax.derivatives import gradient, laplacian
from uniphase.jax.network import CoordinateMLP

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.1, 0.3, 0.2])


def network(scheme):
    return CoordinateMLP(get_scheme(scheme).blueprint(MOMENTS, width=16, depth=2), key=jax.random.key(0))


def positions(samples):
    return jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (samples, 3)))


def naive_laplacian(model, x):
    return jnp.trace(jax.hessian(model)(x), axis1=1, axis2=2)


def close(found, expected):
    """Sums of some hundred products of float64 numbers, in another order."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@jax.jit
def derivatives(model, x):
    """By rows, for a batch of two axes, and at one position."""
    batch = gradient(model, x.reshape(4, 5, 3))
    return gradient(model, x), batch, laplacian(model, x), gradient(model, x[0]), laplacian(model, x[0])


@eqx.filter_jit
def naive_derivatives(model, x):
    return jax.vmap(lambda x: (jax.jacfwd(model)(x), naive_laplacian(model, x)))(x)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_equal_the_derivatives_at_each_position(scheme, x64):
    model, x = network(scheme), positions(20)
    slopes, slopes_of_batch, laplacians, slope, laplacian_there = derivatives(model, x)
    expected, second = naive_derivatives(model, x)
    close(slopes, expected)
    close(slopes_of_batch, expected.reshape(4, 5, 2, 3))
    close(slope, expected[0])
    if scheme != "relu":  # whose second derivative is zero, and its scale as well
        close(laplacians, second)
        close(laplacian_there, second[0])
    else:
        np.testing.assert_array_equal(laplacians, 0)
        np.testing.assert_array_equal(laplacian_there, 0)


@pytest.mark.parametrize("scheme", ["uniform-phase", "sm20", "tanh-pe", "gelu"])
def test_a_loss_of_laplacians_has_the_right_gradients(scheme, x64):
    def fast(model, x):
        return jnp.mean(laplacian(model, x) ** 2)

    def naive(model, x):
        return jnp.mean(jax.vmap(naive_laplacian, in_axes=(None, 0))(model, x) ** 2)

    both = jax.jit(lambda *arguments: [jax.tree.leaves(jax.grad(f)(*arguments)) for f in (fast, naive)])
    for found, expected in zip(*both(network(scheme), positions(5)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * (np.abs(expected).max() + 1e-3))


def test_a_sum_of_waves(x64):
    """Known without differentiating: sin(k·x + b) has the Laplacian -|k|² sin(k·x + b)."""
    blueprint = get_scheme("uniform-phase").blueprint(MOMENTS, width=16, depth=0)
    model, x = CoordinateMLP(blueprint, key=jax.random.key(0)), positions(7)
    first, last = model.layers
    assert first.bias is not None
    frequencies = np.asarray(first.weight)
    waves = np.sin(frequencies @ np.asarray(x).T + np.asarray(first.bias)[:, None])
    expected = -(np.asarray(last.weight) @ (np.sum(frequencies**2, axis=1)[:, None] * waves)).T
    close(jax.jit(laplacian)(model, x), expected)


def test_any_function_of_a_position(x64):
    """A polynomial, whose derivatives are known, and a module of Equinox."""

    def polynomial(p):
        return jnp.stack([p[0] ** 2 * p[1], p[2]])

    @eqx.filter_jit
    def of_module(mlp, x):
        return laplacian(mlp, x), naive_derivatives(mlp, x)[1]

    x = positions(6)
    a, b, zero, one = *np.asarray(x).T[:2], np.zeros(6), np.ones(6)
    slopes, laplacians = jax.jit(lambda x: (gradient(polynomial, x), laplacian(polynomial, x)))(x)
    close(slopes[:, 0], np.stack([2 * a * b, a**2, zero], axis=1))
    close(slopes[:, 1], np.stack([zero, zero, one], axis=1))
    close(laplacians, np.stack([2 * b, zero], axis=1))
    close(*of_module(eqx.nn.MLP(3, 2, 8, 2, activation=jnp.sin, key=jax.random.key(0)), x))


@pytest.mark.parametrize("function", [gradient, laplacian])
@pytest.mark.parametrize(
    "network", [eqx.nn.MLP(1, 1, 4, 1, key=jax.random.key(0)), jnp.sin], ids=["module", "function"]
)
def test_a_number_is_no_position(function, network):
    unchecked = inspect.unwrap(function)  # in the tests types are checked before
    with pytest.raises(ValueError, match=r"positions have the shape \(\).*; pass \(\*batch, .*\), with a row for each"):
        unchecked(network, jnp.array(0.5))
