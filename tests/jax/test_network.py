import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import SCHEMES, cvp26_1, get_scheme, sm20, tanh_pe, uniform_phase
from uniphase.jax.network import CoordinateMLP, evaluate_rows, trainable_arrays
from uniphase.signals.fields import Grid

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.1, 0.3])
NONLINEARITIES = {
    "sine": np.sin,
    "sincos": lambda z: np.concatenate([np.sin(z), np.cos(z)], axis=-1),
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "gelu": lambda z: z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))),
    "linear": lambda z: z,
}


def naive(network, blueprint, x):
    """The network as its definition reads, in NumPy and double precision."""
    for layer, plan in zip(network.layers, blueprint.layers, strict=True):
        z = x @ np.asarray(layer.weight, np.float64).T
        z = z + (0 if layer.bias is None else np.asarray(layer.bias, np.float64))
        x = NONLINEARITIES[plan.activation](plan.omega * z)
    return x


@pytest.mark.parametrize("name", SCHEMES)
def test_network_equals_its_definition(name):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=16, depth=2)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    x = np.random.default_rng(0).uniform(-1, 1, (100, 2)).astype(np.float32)
    exact = naive(network, blueprint, x.astype(np.float64))
    # float32 preactivations of up to 200 are off by 1e-5; each of the layers that follow may double that
    np.testing.assert_allclose(jax.vmap(network)(jnp.asarray(x)), exact, rtol=0, atol=3e-4 * np.abs(exact).max())


@pytest.mark.parametrize("name", SCHEMES)
def test_double_precision(name, x64):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=16, depth=2)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(network)} == {np.dtype("float64")}
    x = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    exact = naive(network, blueprint, x)
    np.testing.assert_allclose(jax.vmap(network)(jnp.asarray(x)), exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("name", SCHEMES)
def test_rows_are_many_positions(name, x64):
    """The fast layout against one position at a time, for batches of any shape."""
    network = CoordinateMLP(get_scheme(name).blueprint(MOMENTS, width=16, depth=2), key=jax.random.key(0))
    x = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (4, 25, 2)))

    @jax.jit
    def evaluate(network, x):
        return jax.lax.map(network, x.reshape(100, 2)).reshape(4, 25, -1), network(x), jax.vmap(network)(x)

    expected, *found = evaluate(network, x)
    for values in found:  # sums of 16 products in another order, in float64
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5), (2, 1)])
def test_positions_of_a_wrong_size_are_refused(shape):
    """A batch given the wrong way round is no longer taken for another one."""
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=2), key=jax.random.key(0))
    message = (
        rf"positions have the shape {re.escape(str(shape))}, but the network takes 2 coordinates; pass \(\*batch, 2\)"
    )
    with pytest.raises(ValueError, match=message):
        network(jnp.zeros(shape))
    with pytest.raises(ValueError, match=message):
        eqx.filter_jit(network)(jnp.zeros(shape))


@pytest.mark.parametrize("batch", [(), (100,)])
def test_every_product_is_asked_for_in_full_float32(batch):
    """By default accelerators round the factors of a product to 8 or 11 bits, and phases reach hundreds of radians."""
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=2), key=jax.random.key(0))

    def loss(network, x):
        return jnp.square(network(x)).sum()

    text = jax.jit(jax.grad(loss)).lower(network, jnp.zeros((*batch, 2))).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(products) >= 4 + 3 + 3  # forward, by the weights, by the inputs of a layer
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)
    plain = jax.jit(lambda a: a @ a).lower(jnp.zeros((3, 3))).as_text()
    assert "HIGHEST" not in plain  # so the check can fail


def test_precision_can_be_chosen(x64):
    network = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=2), dtype=jnp.float32, key=jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(network)} == {np.dtype("float32")}
    assert network(jnp.zeros(2, jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize("name", SCHEMES)
def test_transformations(name):
    network = CoordinateMLP(get_scheme(name).blueprint(MOMENTS, width=16, depth=2), key=jax.random.key(0))
    x = jnp.array([0.2, -0.4])

    @eqx.filter_jit
    def transform(network, x):
        forward, backward = jax.jacfwd(network)(x), jax.jacrev(network)(x)
        return network(x), jax.vmap(network)(x[None])[0], forward, backward, jax.hessian(network)(x)

    y = network(x)
    compiled, mapped, forward, backward, hessian = transform(network, x)
    np.testing.assert_allclose(compiled, y, rtol=1e-4, atol=1e-4)  # fused: rounded elsewhere
    np.testing.assert_allclose(mapped, y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(forward, backward, rtol=1e-3, atol=1e-2)
    assert hessian.shape == (2, 2, 2)
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize("name", ["uniform-phase", "sm20", "tanh-pe", "silu"])
def test_derivatives_by_finite_differences(name, x64):
    network = CoordinateMLP(get_scheme(name).blueprint(MOMENTS, width=16, depth=2), key=jax.random.key(0))
    x, step = jnp.array([0.2, -0.4]), 1e-6
    jacobian = np.asarray(jax.jit(jax.jacfwd(network))(x))
    moved = x + step * np.concatenate([np.eye(2), -np.eye(2)])
    forward, backward = np.asarray(network(moved)).reshape(2, 2, -1)
    for slope, exact in zip((forward - backward) / (2 * step), jacobian.T, strict=True):
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("scheme", [sm20, cvp26_1])
def test_the_same_key_gives_the_same_weights_at_every_omega(scheme):
    networks = [
        CoordinateMLP(scheme((2, 1), width=16, depth=2, omega=omega), key=jax.random.key(3)) for omega in (1.0, 50.0)
    ]
    for a, b in zip(*map(jax.tree.leaves, networks), strict=True):
        np.testing.assert_array_equal(a, b)
    x = jnp.array([0.1, 0.2])
    assert not jnp.allclose(networks[0](x), networks[1](x))


def test_omega_multiplies_the_bias_too():
    plan = sm20((1, 1), width=4, depth=0, omega=5.0)
    layer = CoordinateMLP(plan, key=jax.random.key(0)).layers[0]
    np.testing.assert_allclose(layer.preactivation(jnp.zeros(1)), 5 * layer.bias, rtol=1e-6)


def test_an_ensemble_is_drawn_under_vmap():
    blueprint = uniform_phase(MOMENTS, width=16, depth=2)
    keys = jax.random.split(jax.random.key(0), 5)

    @jax.jit
    def evaluate(keys):
        ensemble = eqx.filter_vmap(lambda key: CoordinateMLP(blueprint, key=key))(keys)
        return eqx.filter_vmap(lambda network: network(jnp.zeros(2)))(ensemble)

    outputs = evaluate(keys)
    alone = jnp.stack([CoordinateMLP(blueprint, key=key)(jnp.zeros(2)) for key in keys])
    np.testing.assert_allclose(outputs, alone, rtol=1e-4, atol=1e-4)  # float32 rounding, batched products


def test_one_compilation_serves_all_signals_of_a_shape():
    """The laws differ between signals, but they are no part of the network's static structure."""
    compilations = 0

    @eqx.filter_jit
    def evaluate(network, x):
        nonlocal compilations
        compilations += 1
        return network(x)

    for length in (0.1, 0.2):
        moments = prescribe_moments(length_scale=[length, length])
        evaluate(CoordinateMLP(uniform_phase(moments, width=16, depth=2), key=jax.random.key(0)), jnp.zeros(2))
    assert compilations == 1


def test_the_encoding_is_frozen():
    network = CoordinateMLP(tanh_pe((2, 1), width=16, depth=2), key=jax.random.key(0))
    gradients = eqx.filter_grad(lambda n: n(jnp.array([0.1, 0.2])).sum())(network)
    assert not gradients.layers[0].weight.any()
    assert gradients.layers[1].weight.any()


def test_a_frozen_layer_has_a_frozen_bias():
    blueprint = uniform_phase(MOMENTS, width=16, depth=2)
    first, *others = blueprint.layers
    frozen = dataclasses.replace(blueprint, layers=(dataclasses.replace(first, trainable=False), *others))
    network = CoordinateMLP(frozen, key=jax.random.key(0))
    gradients = eqx.filter_grad(lambda n: n(jnp.array([0.1, 0.2])).sum())(network)
    assert not gradients.layers[0].bias.any()
    assert gradients.layers[1].bias.any()
    assert jax.tree.leaves(trainable_arrays(network)) == [False, False, *[True] * 6]


def test_a_constant_signal_gives_a_valid_network():
    with pytest.warns(UserWarning, match="constant"):
        moments = estimate_moments(Grid(np.full((8, 8, 3), 0.25)))
    network = CoordinateMLP(uniform_phase(moments, width=16, depth=2), key=jax.random.key(0))
    values = jax.vmap(network)(jnp.zeros((4, 2)))
    np.testing.assert_allclose(values, 0.25, atol=6e-3)  # six times √ε


def test_any_module_is_evaluated_in_rows():
    x = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (7, 2)), jnp.float32)
    mlp = eqx.nn.MLP(2, 3, 8, 1, key=jax.random.key(0))
    np.testing.assert_array_equal(evaluate_rows(mlp, x), jax.vmap(mlp)(x))
    scalar = eqx.nn.MLP(2, "scalar", 8, 1, key=jax.random.key(0))
    assert evaluate_rows(scalar, x).shape == (7, 1)
    with pytest.raises(ValueError, match="but the network takes 2 coordinates"):
        evaluate_rows(mlp, x.T)
