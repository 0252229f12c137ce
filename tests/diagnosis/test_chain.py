"""Chains in NumPy against the same networks in JAX."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.diagnosis.chain import LayerReading, draw_chain, evaluate_chain, layer_name, recognize_activation
from uniphase.diagnosis.measurements import measure_chain
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, sm20, uniform_phase
from uniphase.jax.diagnostics import jacobian
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Points

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.5, 0.3])
RNG = np.random.default_rng(0)
POSITIONS = RNG.uniform(-1, 1, (20, 2))
VALUES = RNG.normal(size=(20, 2))


def pair(scheme: str) -> tuple[CoordinateMLP, list[LayerReading]]:
    """A network in JAX in double precision, and its reading."""
    network = CoordinateMLP(SCHEMES[scheme].blueprint(MOMENTS, width=8, depth=2), key=jax.random.key(0))
    return network, [
        LayerReading(
            layer_name(i, len(network.layers)),
            np.asarray(layer.weight),
            None if layer.bias is None else np.asarray(layer.bias),
            layer.activation,
            layer.omega,
        )
        for i, layer in enumerate(network.layers)
    ]


@pytest.mark.parametrize("scheme", ["uniform-phase", "sm20", "tanh-pe", "relu", "silu", "gelu"])
def test_values_and_gradients_are_those_of_jax(scheme, x64):
    network, chain = pair(scheme)

    def loss(network):
        outputs = jax.vmap(network)(jnp.asarray(POSITIONS))
        return jnp.mean((outputs - jnp.asarray(VALUES)) ** 2), outputs

    gradients, outputs = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))(network)
    measured = measure_chain(chain, POSITIONS, VALUES, np.random.default_rng(0))
    np.testing.assert_allclose(evaluate_chain(chain, POSITIONS), outputs, rtol=1e-9, atol=1e-11)  # float64
    np.testing.assert_array_equal(measured.outputs, evaluate_chain(chain, POSITIONS))
    for layer, row, gradient in zip(network.layers, measured.layers, gradients.layers, strict=True):
        if layer.trainable:  # JAX has zeros for a frozen encoding
            np.testing.assert_allclose(row.weight_gradient, np.linalg.norm(gradient.weight), rtol=1e-9)
        if layer.bias is not None:
            np.testing.assert_allclose(row.bias_gradient, np.linalg.norm(gradient.bias), rtol=1e-9)
        assert (row.bias_gradient is None) == (layer.bias is None)


def test_gradients_of_an_encoding_that_shares_its_weights(x64):
    """A trainable one, which no scheme has: both halves count."""
    weight, output = RNG.normal(size=(3, 2)), RNG.normal(size=(2, 6))
    chain = [LayerReading("a", weight, None, "sincos", 2.0), LayerReading("b", output, None, "linear")]

    def loss(weight):
        z = 2.0 * jnp.asarray(POSITIONS) @ weight.T
        outputs = jnp.concatenate([jnp.sin(z), jnp.cos(z)], axis=1) @ jnp.asarray(output).T
        return jnp.mean((outputs - jnp.asarray(VALUES)) ** 2)

    row = measure_chain(chain, POSITIONS, VALUES, np.random.default_rng(0)).layers[0]
    np.testing.assert_allclose(row.weight_gradient, np.linalg.norm(jax.grad(loss)(jnp.asarray(weight))), rtol=1e-9)


def test_slopes_and_singular_values_are_those_of_jax(x64):
    network, chain = pair("tanh-pe")

    def jacobians(start, stop):
        return np.asarray(jax.jit(jax.vmap(lambda x: jacobian(network, x, start, stop)))(jnp.asarray(POSITIONS)))

    measured = measure_chain(chain, POSITIONS, VALUES, np.random.default_rng(0))
    whole, first = jacobians(0, None), jacobians(0, 1)
    np.testing.assert_allclose(measured.slope_products, np.einsum("mka,mlb->kalb", whole, whole) / 20, rtol=1e-9)
    np.testing.assert_allclose(measured.input_products, np.einsum("mna,mnb->ab", first, first) / 20 / 8, rtol=1e-9)
    for number, row in enumerate(measured.layers, start=1):
        exact = jacobians(number - 1, number)
        squares = np.square(exact).sum(axis=(1, 2)).mean() / min(exact.shape[1:])
        np.testing.assert_allclose(row.squared_singular, squares, rtol=1e-9)
    # The probes are random: five standard errors over thirty draws of them.
    last = len(chain) - 2
    draws = [measure_chain(chain, POSITIONS, VALUES, np.random.default_rng(seed)).layers[last] for seed in range(30)]
    probed = np.array([row.squared_singular_from_first for row in draws])
    exact = np.square(jacobians(1, last + 1)).sum(axis=(1, 2)).mean() / 8
    assert abs(probed.mean() - exact) < 5 * probed.std(ddof=1) / math.sqrt(30)
    assert [row.squared_singular_from_first is None for row in measured.layers] == [False] * (last + 1) + [True]


def test_moments_are_those_of_the_outputs():
    chain = draw_chain(uniform_phase(MOMENTS, width=8, depth=1), np.random.default_rng(0))
    measured = measure_chain(chain, POSITIONS, VALUES, np.random.default_rng(0))
    field, moments = Points(POSITIONS, measured.outputs), measured.moments()
    np.testing.assert_allclose(moments.covariance, np.cov(field.values.T), rtol=1e-12)
    slopes = np.einsum("kalb,kl->ab", measured.slope_products, np.linalg.inv(np.cov(field.values.T)))
    np.testing.assert_allclose(moments.structure_tensor, slopes, rtol=1e-6)  # the ridge is 1e-9 of the spread


@pytest.mark.parametrize("std", [0.0, 0.5, 1.0])
def test_resultants_are_those_of_the_law_of_the_phases(std):
    """|E exp(inz)| = exp(-n²σ²/2) for Normal phases; for uniform ones it vanishes, with the 1/N of chance taken off."""
    rng, n = np.random.default_rng(0), 4000
    bias = rng.normal(0.7, std, n) if std else np.full(n, 0.7)
    chain = [LayerReading("a", np.zeros((n, 2)), bias, "sine"), LayerReading("b", np.zeros((2, n)), None, "linear")]
    row = measure_chain(chain, POSITIONS, VALUES, rng).layers[0]
    error = 5 / math.sqrt(n)  # a mean of 4,000 unit vectors, five standard errors
    assert row.resultant == pytest.approx(math.exp(-(std**2) / 2), abs=error)
    assert row.second_resultant == pytest.approx(math.exp(-2 * std**2), abs=error)
    assert sum(row.phases) == pytest.approx(1.0)
    uniform = [LayerReading("a", np.zeros((n, 2)), rng.uniform(0, 7 * np.pi * 2, n), "sine"), chain[1]]
    assert measure_chain(uniform, POSITIONS, VALUES, rng).layers[0].resultant < error


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (np.sin, ("sine", 1.0)),
        (lambda z: np.sin(30 * z), ("sine", 30.0)),
        (lambda z: np.sin(82.0832 * z), ("sine", 82.0832)),
        (np.tanh, ("tanh", 1.0)),
        (lambda z: np.maximum(z, 0), ("relu", 1.0)),
        (lambda z: z / (1 + np.exp(-z)), ("silu", 1.0)),
        (lambda z: np.asarray(jax.nn.gelu(z)), ("gelu", 1.0)),
        (lambda z: np.asarray(jax.nn.gelu(z, approximate=False)), ("gelu", 1.0)),
        (lambda z: z, ("linear", 1.0)),
    ],
)
def test_activations_are_told_by_their_values(function, expected):
    name, omega = recognize_activation(function)
    assert name == expected[0]
    assert omega == pytest.approx(expected[1], rel=1e-4)  # five digits, and the two GELUs that pass for one


@pytest.mark.parametrize("function", [np.cos, np.exp, lambda z: -np.sin(z), lambda z: 2 * np.sin(z), np.abs])
def test_other_functions_are_not_mistaken_for_activations(function):
    with pytest.raises(ValueError, match="the activation is none of sine, tanh"):
        recognize_activation(function)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": np.full((2, 2), np.nan)}, "the weight of a has NaN or infinite entries: the network has diverged"),
        ({"bias": np.array([0.0, np.inf])}, "the bias of a has NaN"),
        ({"omega": 0.0}, "the omega of a is 0.0; it must be positive"),
    ],
)
def test_bad_readings(change, message):
    entries = {"name": "a", "weight": np.eye(2), "bias": None, "activation": "sine", "omega": 1.0}
    with pytest.raises(ValueError, match=message):
        LayerReading(**{**entries, **change})


def test_draws_follow_their_laws():
    chain = draw_chain(sm20((2, 1), width=64, depth=1, omega=30.0), np.random.default_rng(0))
    assert [layer.name for layer in chain] == ["input", "hidden 1", "output"]
    assert (chain[0].omega, chain[2].bias) == (30.0, None)
    # 5 standard errors of the variance of a uniform law, estimated from 4,096 entries: √(0.8/4096) = 1.4 %
    assert np.var(chain[1].weight) == pytest.approx(2 / 64, rel=5 * 0.014)  # 7 %
    assert np.abs(chain[1].weight).max() <= math.sqrt(6 / 64)
