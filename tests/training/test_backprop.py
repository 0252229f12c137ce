import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme
from uniphase.jax.network import CoordinateMLP
from uniphase.training.backprop import Chain, loss_and_gradients, parameters_of, transposes, with_parameters

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.1, 0.3])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("depth", [0, 2])
def test_it_is_the_gradient(scheme, depth, x64):
    """By hand against automatic differentiation of one position at a time."""
    blueprint = get_scheme(scheme).blueprint(MOMENTS, width=8, depth=depth)
    network, rng = CoordinateMLP(blueprint, key=jax.random.key(0)), np.random.default_rng(0)
    positions, values = jnp.asarray(rng.uniform(-1, 1, (2, 30))), jnp.asarray(rng.normal(size=(2, 30)))
    shares = jnp.asarray(rng.uniform(size=30))

    @jax.value_and_grad
    def readable(network):
        return jnp.sum(shares * jnp.square(jax.vmap(network, 1, 1)(positions) - values))

    parameters = parameters_of(network)
    found = loss_and_gradients(parameters, transposes(parameters), Chain.of(network), positions, values, shares)
    expected, gradients = readable(network)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)  # sums of 60 squares in another order
    pairs = zip(jax.tree.leaves(found[1]), jax.tree.leaves(parameters_of(gradients)), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * float(jnp.abs(b).max()))  # the same


def test_parameters_go_back_where_they_came_from():
    network = CoordinateMLP(get_scheme("sm20").blueprint((2, 1), width=4, depth=1), key=jax.random.key(0))
    doubled = with_parameters(network, jax.tree.map(lambda a: 2 * a, parameters_of(network)))
    assert doubled.layers[-1].bias is None
    for a, b in zip(jax.tree.leaves(doubled), jax.tree.leaves(network), strict=True):
        np.testing.assert_array_equal(a, 2 * b)
