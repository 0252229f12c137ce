import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from helpers.jax_models import LIBRARIES, by_hand
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, sm20, uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.reading import arrays_of, read_layers
from uniphase.recipe import Scales, default_rate
from uniphase.signals.fields import Grid
from uniphase.training.optimizers import _bounded, unit_muon


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


# The bound on hidden weights.


def walk(network, scales=None, steps=300):
    """The norms of hidden weights during steps by random gradients, relative to their law: (steps, layers)."""
    optimizer = unit_muon(network, FIELD, MOMENTS, scales=scales)
    rate, hidden = default_rate(network), network.layers[1:-1]
    laws = jnp.array([np.sqrt(2 * layer.weight.shape[0]) / layer.omega for layer in hidden])

    def step(carry, key):
        network, state = carry
        leaves, structure = jax.tree.flatten(network)
        keys = jax.random.split(key, len(leaves))
        noise = [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
        updates, state = optimizer.update(jax.tree.unflatten(structure, noise), state, network)
        network = eqx.apply_updates(network, jax.tree.map(lambda u: -rate * u, updates))
        norms = jnp.stack([jnp.linalg.norm(layer.weight) for layer in network.layers[1:-1]])
        return (network, state), norms / laws

    keys = jax.random.split(jax.random.key(1), steps)
    return np.asarray(jax.jit(lambda n: jax.lax.scan(step, (n, optimizer.init(n)), keys)[1])(network))


@pytest.mark.parametrize("omega", [1.0, 7.0])
def test_noise_does_not_enlarge_hidden_weights_beyond_their_bound(omega):
    """At the bound a step along the tangent enlarges W by η²‖u‖²/2‖W‖² of itself, and η times the excess comes back.

    Both are equal at an excess of η‖u‖²/2‖W‖². With ‖W‖² = 1.5² · 2 · rows and ‖u‖² < 1.2² · rows that is 0.16 η, one
    percent at the default rate; the bound of two percent leaves as much for the steps around it.
    """
    network = CoordinateMLP(sm20(MOMENTS, width=16, depth=3, omega=1.0, hidden_omega=omega), key=jax.random.key(0))
    norms = walk(network, Scales(growth=1.5))
    assert norms.max() < 1.02 * 1.5
    assert norms[-1].min() > 0.98 * 1.5  # all layers got there
    assert walk(network, Scales(growth=np.inf)).max() > 1.2 * 1.5  # as they would without the bound


def test_weights_below_their_bound_move_as_without_it():
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=3), key=jax.random.key(0))
    bounded, free = (walk(network, scales, steps=5) for scales in (None, Scales(growth=np.inf)))
    assert bounded.max() < Scales().growth
    np.testing.assert_array_equal(bounded, free)
    rng = np.random.default_rng(0)
    weights, updates = (jnp.asarray(rng.normal(size=(2, 8, 4)).astype(np.float32)) for _ in range(2))
    transform = _bounded(100.0)
    np.testing.assert_array_equal(transform.update(updates, transform.init(weights), weights)[0], updates)


def test_weights_that_start_above_their_bound_are_not_shrunk():
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=3), key=jax.random.key(0))
    large = eqx.tree_at(lambda n: [layer.weight for layer in n.layers[1:-1]], network,
                        [3.0 * layer.weight for layer in network.layers[1:-1]])  # fmt: skip
    start = np.array([np.linalg.norm(layer.weight) / np.sqrt(2 * 16) for layer in large.layers[1:-1]])
    assert (start > 2).all()
    norms = walk(large) / start
    # A random gradient points inwards as often as outwards, until noise has brought the norm back to its bound.
    assert norms.min() > 0.95
    assert norms.max() < 1.02  # as above, where the excess is even less
    transform = _bounded(1.0)
    weights = jnp.asarray(np.full((1, 4, 4), 2.0, np.float32))
    still, _ = transform.update(jnp.zeros_like(weights), transform.init(weights), weights)
    assert not np.any(still)
    outwards, _ = transform.update(-weights, transform.init(weights), weights + 1e-3)  # the weights move against it
    # Only the excess of a two-thousandth is left to be taken back.
    np.testing.assert_allclose(outwards, 5e-4 * weights, rtol=0.05)


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


def as_network(chain) -> CoordinateMLP:
    """The same layers as a network of this package."""
    network = CoordinateMLP(sm20((2, 3), width=8, depth=1, omega=30.0, hidden_omega=2.0), key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, jnp.zeros(3), is_leaf=lambda leaf: leaf is None)
    arrays = [array for layer in chain.layers for array in (layer.weight, layer.bias)]
    return eqx.tree_at(lambda n: [a for layer in n.layers for a in (layer.weight, layer.bias)], network, arrays)


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_of_every_library_take_the_steps_of_a_network(name):
    field = Grid(np.random.default_rng(0).normal(size=(12, 16, 3)))
    moments, model = estimate_moments(field), LIBRARIES[name]()
    tree = model[1] if isinstance(model, tuple) else model
    params = nnx.state(model) if name == "nnx" else eqx.filter(tree, eqx.is_array)
    rng = np.random.default_rng(1)
    gradients = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape), a.dtype), params)
    optimizer = unit_muon(model, field, moments)
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    assert jax.tree.structure(updates) == jax.tree.structure(params)

    chain = read_layers(model)
    of = lambda tree: as_network(_with_arrays(chain, arrays_of(tree)))  # noqa: E731
    plain = unit_muon(of(params), field, moments)
    expected, _ = plain.update(of(gradients), plain.init(of(params)), of(params))
    for found, wanted in zip(of(updates).layers, expected.layers, strict=True):
        np.testing.assert_allclose(found.weight, wanted.weight, rtol=2e-3, atol=1e-5)  # products in another order
        np.testing.assert_allclose(found.bias, wanted.bias, rtol=2e-3, atol=1e-5)


def _with_arrays(chain, arrays):
    layers = [
        dataclasses.replace(
            layer,
            weight=layer.stored.arrange(arrays[layer.stored.name]),
            bias=layer.stored_bias.arrange(arrays[layer.stored_bias.name]),
        )
        for layer in chain.layers
    ]
    return dataclasses.replace(chain, layers=tuple(layers))


def test_a_factor_before_a_matrix_makes_its_steps_smaller_and_other_arrays_are_left():
    """The same function with weights that are 30 times as small moves by updates that are 30 times as small."""
    field = Grid(np.random.default_rng(0).normal(size=(12, 16, 3)))
    moments, steps, plain = estimate_moments(field), {}, None
    for gain in (1.0, 30.0):
        apply, params = by_hand(lambda w, x, b, gain=gain: w @ (gain * x) + b)
        params = {"layers": [(w / gain, b) for w, b in params[:-1]] + [params[-1]], "unused": jnp.ones(2)}
        model = (lambda p, x, apply=apply: apply(p["layers"], x), params)
        with pytest.warns(UserWarning, match="unit_muon leaves unused as they are"):
            optimizer = unit_muon(model, field, moments)
        plain = plain or jax.tree.map(jnp.cos, params)
        gradients = {**plain, "layers": [(gain * w, b) for w, b in plain["layers"][:-1]] + [plain["layers"][-1]]}
        steps[gain] = optimizer.update(gradients, optimizer.init(params), params)[0]
    assert not steps[30.0]["unused"].any()
    for (slow, _), (fast, _) in zip(steps[1.0]["layers"][:-1], steps[30.0]["layers"][:-1], strict=True):
        np.testing.assert_allclose(fast, slow / 30, rtol=1e-3, atol=1e-6)  # float32
