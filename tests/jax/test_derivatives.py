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
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * float(jnp.abs(expected).max()))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_equal_the_derivatives_at_each_position(scheme, x64):
    model, x = network(scheme), positions(20)
    close(gradient(model, x), jax.vmap(jax.jacfwd(model))(x))
    close(gradient(model, x.reshape(4, 5, 3)), jax.vmap(jax.jacfwd(model))(x).reshape(4, 5, 2, 3))
    if scheme != "relu":  # whose second derivative is zero, and its scale as well
        close(laplacian(model, x), jax.vmap(naive_laplacian, in_axes=(None, 0))(model, x))
    else:
        np.testing.assert_array_equal(laplacian(model, x), 0)


def test_one_position(x64):
    model, (x,) = network("uniform-phase"), positions(1)
    close(gradient(model, x), jax.jacfwd(model)(x))
    close(laplacian(model, x), naive_laplacian(model, x))


@pytest.mark.parametrize("scheme", ["uniform-phase", "sm20", "tanh-pe", "gelu"])
def test_a_loss_of_laplacians_has_the_right_gradients(scheme, x64):
    model, x = network(scheme), positions(5)

    def fast(model):
        return jnp.mean(laplacian(model, x) ** 2)

    def naive(model):
        return jnp.mean(jax.vmap(naive_laplacian, in_axes=(None, 0))(model, x) ** 2)

    for found, expected in zip(*(jax.tree.leaves(jax.grad(f)(model)) for f in (fast, naive)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * float(jnp.abs(expected).max() + 1e-3))


def test_a_sum_of_waves(x64):
    """Known without differentiating: sin(k·x + b) has the Laplacian -|k|² sin(k·x + b)."""
    blueprint = get_scheme("uniform-phase").blueprint(MOMENTS, width=16, depth=0)
    model, x = CoordinateMLP(blueprint, key=jax.random.key(0)), positions(7)
    first, last = model.layers
    assert first.bias is not None
    waves = jnp.sin(first.weight @ x.T + first.bias[:, None])
    close(laplacian(model, x), -(last.weight @ (jnp.sum(first.weight**2, axis=1)[:, None] * waves)).T)


def test_any_function_of_a_position(x64):
    """A polynomial, whose derivatives are known, and a module of Equinox."""
    x = positions(6)
    found = gradient(lambda p: jnp.stack([p[0] ** 2 * p[1], p[2]]), x)
    zero, one = jnp.zeros(6), jnp.ones(6)
    close(found[:, 0], jnp.stack([2 * x[:, 0] * x[:, 1], x[:, 0] ** 2, zero], axis=1))
    close(found[:, 1], jnp.stack([zero, zero, one], axis=1))
    close(laplacian(lambda p: jnp.stack([p[0] ** 2 * p[1], p[2]]), x), jnp.stack([2 * x[:, 1], zero], axis=1))
    mlp = eqx.nn.MLP(3, 2, 8, 2, activation=jnp.sin, key=jax.random.key(0))
    close(laplacian(mlp, x), jax.vmap(naive_laplacian, in_axes=(None, 0))(mlp, x))


@pytest.mark.parametrize("function", [gradient, laplacian])
@pytest.mark.parametrize(
    "network", [eqx.nn.MLP(1, 1, 4, 1, key=jax.random.key(0)), jnp.sin], ids=["module", "function"]
)
def test_a_number_is_no_position(function, network):
    unchecked = inspect.unwrap(function)  # in the tests types are checked before
    with pytest.raises(ValueError, match=r"positions have the shape \(\).*; pass \(\*batch, .*\), with a row for each"):
        unchecked(network, jnp.array(0.5))
