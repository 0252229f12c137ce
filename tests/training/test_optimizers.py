import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, sm20, uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.recipe import default_rate
from uniphase.signals.fields import Grid
from uniphase.training.optimizers import unit_muon


@pytest.fixture(autouse=True)
def standard_promotion(strict_promotion):
    """Optax mixes integers and floats."""
    with jax.numpy_dtype_promotion("standard"):
        yield


FIELD = Grid(np.random.default_rng(0).normal(size=(12, 16, 2)), extents=((2.0, 5.0), (-1.0, 9.0)))
MOMENTS = estimate_moments(FIELD)


def update(network, seed=0, compiled=jax.jit):
    """The first update, from random gradients."""
    optimizer = unit_muon(network, FIELD, MOMENTS)
    rng = np.random.default_rng(seed)
    gradients = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape, np.float32)), network)
    first = compiled(lambda gradients, network: optimizer.update(gradients, optimizer.init(network), network)[0])
    return first(gradients, network)


def rms(array) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


@pytest.mark.parametrize("width", [32, 128])
def test_every_array_moves_by_its_unit(width):
    """Newton and Schulz's singular values lie between 0.7 and 1.2, and so do these ratios."""
    step = update(CoordinateMLP(uniform_phase(MOMENTS, width=width, depth=2), key=jax.random.key(0)))
    first, hidden, last = step.layers[0], step.layers[1], step.layers[-1]
    center, covariance = FIELD.position_moments()
    phases = np.asarray(first.weight) @ np.linalg.cholesky(covariance)  # the phase that it adds one spread away
    assert 0.6 < rms(phases) / 0.15 < 1.3
    at_center = np.asarray(first.bias) + np.asarray(first.weight) @ center
    assert 0.9 < rms(at_center) / 0.5 < 1.1  # Adam's first step is the sign
    assert 0.6 < rms(hidden.weight) * np.sqrt(width) < 1.3
    assert 0.9 < rms(hidden.bias) / 0.5 < 1.1
    spread = np.sqrt(np.diag(MOMENTS.covariance))
    np.testing.assert_allclose(np.abs(last.bias), 0.3 * spread, rtol=1e-3)
    assert 0.6 < rms(last.weight) / (10 * np.sqrt(2) / width * rms(spread)) < 1.3


def test_omega_divides_the_step():
    """An ω inside the sine makes the same step larger; a network with weights that much smaller takes the same one."""
    plain = CoordinateMLP(sm20(MOMENTS, width=16, depth=1, omega=1.0), key=jax.random.key(0))
    fast = CoordinateMLP(sm20(MOMENTS, width=16, depth=1, omega=30.0, hidden_omega=7.0), key=jax.random.key(0))
    a, b = (update(network, compiled=lambda f: f) for network in (plain, fast))  # op by op: both are rounded alike
    np.testing.assert_allclose(a.layers[0].weight, 30 * b.layers[0].weight, rtol=1e-5)
    np.testing.assert_allclose(a.layers[0].bias, 30 * b.layers[0].bias, rtol=1e-4)
    np.testing.assert_allclose(a.layers[1].weight, 7 * b.layers[1].weight, rtol=1e-5)
    np.testing.assert_allclose(a.layers[1].bias, 7 * b.layers[1].bias, rtol=1e-4)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_can_be_trained(name):
    network = CoordinateMLP(get_scheme(name).blueprint(MOMENTS, width=8, depth=2), key=jax.random.key(0))
    step = update(network)
    for layer, moved in zip(network.layers, step.layers, strict=True):
        assert np.isfinite(moved.weight).all()
        assert np.any(moved.weight) == layer.trainable


def test_it_chains_with_optax():
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=1), key=jax.random.key(0))
    optimizer = optax.chain(unit_muon(network, FIELD, MOMENTS), optax.scale_by_learning_rate(default_rate(network)))
    x, y = jnp.asarray(FIELD.coordinates(), jnp.float32), jnp.asarray(FIELD.flat_values(), jnp.float32)

    @eqx.filter_jit
    def step(network, state):
        loss, gradients = jax.value_and_grad(lambda n: jnp.mean(jnp.square(jax.vmap(n)(x) - y)))(network)
        updates, state = optimizer.update(gradients, state, network)
        return optax.apply_updates(network, updates), state, loss

    state = optimizer.init(eqx.filter(network, eqx.is_array))
    losses = []
    for _ in range(40):
        network, state, loss = step(network, state)
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]
