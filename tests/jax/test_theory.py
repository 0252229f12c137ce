"""The exact statements of the paper, by Monte Carlo.

Every statement is an expectation over initializations. It is estimated from independent networks and compared in units
of its standard error; the bound is the quantile that all entries together exceed with probability 1e-6 if the statement
is true. Schemes that are wrong on purpose must exceed it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from uniphase.initialization.blueprint import Blueprint, LayerPlan
from uniphase.initialization.distributions import Constant, Distribution, Normal, Uniform
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.jax.diagnostics import jacobian, phase_statistics
from uniphase.jax.network import CoordinateMLP

PHASE = Uniform(math.pi)


def hidden_layers(width: int, depth: int, *, variance: float = 2.0, bias: Distribution = PHASE) -> Blueprint:
    """The hidden layers of the definition alone, so that their input can be anything."""
    plan = LayerPlan("hidden", width, width, "sine", Normal(math.sqrt(variance / width)), bias)
    return Blueprint("hidden", (plan,) * depth)


def ensemble(blueprint: Blueprint, statistic, networks: int, seed: int = 0) -> np.ndarray:
    """`statistic(network)` for independent networks."""
    keys = jax.random.split(jax.random.key(seed), networks)
    draw = jax.jit(
        lambda keys: jax.lax.map(lambda key: statistic(CoordinateMLP(blueprint, key=key)), keys, batch_size=500)
    )
    return np.asarray(draw(keys), np.float64)


def excess(samples: np.ndarray, expected) -> float:
    """The largest deviation of the mean from what is expected, over its bound: above 1, the statement is refuted."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    bound = scipy.stats.norm.isf(1e-6 / 2 / mean.size)
    return float((np.abs(mean - expected) / (bound * error + 1e-12)).max())


def gramians(start: int, stop: int, h):
    """JJᵀ and JᵀJ between two layers, at the input h."""

    def statistic(network):
        j = jacobian(network, jnp.asarray(h, network.layers[0].weight.dtype), start, stop)
        return jnp.stack([j @ j.T, j.T @ j])

    return statistic


INPUTS = {"zero": 0.0, "ordinary": 1.0, "huge": 1e4}


@pytest.mark.parametrize("size", INPUTS)
@pytest.mark.parametrize("width", [1, 2, 3, 8, 64])
def test_one_layer_is_an_isometry_on_average(width, size):
    h = INPUTS[size] * np.cos(np.arange(width))
    samples = ensemble(hidden_layers(width, 1), gramians(0, 1, h), networks=10_000 if width < 64 else 1_000)
    assert excess(samples, np.eye(width)) < 1


# The variance of ‖Jv‖² grows like (1 + 3.5/width)^depth: for these it stays below 10 and the mean can be seen.
@pytest.mark.parametrize(
    ("width", "depth", "networks"), [(2, 2, 20_000), (3, 2, 20_000), (8, 4, 10_000), (64, 32, 400), (128, 32, 100)]
)
@pytest.mark.parametrize("size", ["zero", "ordinary"])
def test_several_layers_are_an_isometry_on_average(width, depth, networks, size):
    h = INPUTS[size] * np.cos(np.arange(width))
    samples = ensemble(hidden_layers(width, depth), gramians(0, depth, h), networks)
    assert excess(samples, np.eye(width)) < 1


@pytest.mark.parametrize(("start", "stop"), [(1, 2), (1, 4), (3, 5), (2, 2)])
def test_any_two_hidden_layers_of_a_whole_network(start, stop):
    """Also behind an input layer, from x in the user's coordinates."""
    blueprint = uniform_phase(prescribe_moments(length_scale=[0.1, 0.4]), width=8, depth=4)
    samples = ensemble(blueprint, gramians(start, stop, [0.3, -0.7]), networks=10_000)
    assert excess(samples, np.eye(8)) < 1


def test_a_huge_input_in_double_precision(x64):
    """Phases that float32 cannot resolve any more."""
    samples = ensemble(hidden_layers(8, 2), gramians(0, 2, 1e9 * np.cos(np.arange(8))), networks=10_000)
    assert excess(samples, np.eye(8)) < 1


@pytest.mark.parametrize("width", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("wrong", [{"variance": 1.0}, {"bias": Constant(0.0)}], ids=["variance 1/N", "biases at zero"])
def test_a_wrong_scheme_is_caught(width, wrong):
    h = 0.5 * np.cos(np.arange(width))
    samples = ensemble(hidden_layers(width, 1, **wrong), gramians(0, 1, h), networks=10_000 if width < 64 else 1_000)
    assert excess(samples, np.eye(width)) > 2


# Moments of the whole network (section 3 of the paper).

TARGET = prescribe_moments(
    mean=[1.0, -2.0, 0.5],
    covariance=[[2.0, 0.9, -0.3], [0.9, 1.0, 0.2], [-0.3, 0.2, 0.5]],
    structure_tensor=[[300.0, -120.0], [-120.0, 90.0]],
)
POSITIONS = {"zero": [0.0, 0.0], "ordinary": [0.3, -0.7], "huge": [300.0, -200.0]}


def network_statistics(x):
    """f, (f - μ)(f - μ)ᵀ and ∇fᵀΣ⁻¹∇f at one position."""
    precision = jnp.asarray(np.linalg.inv(TARGET.covariance), jnp.float32)

    def statistic(network):
        position = jnp.asarray(x, jnp.float32)
        centered = network(position) - jnp.asarray(TARGET.mean, jnp.float32)
        slopes = jacobian(network, position)
        return jnp.concatenate(
            [centered, jnp.outer(centered, centered).ravel(), (slopes.T @ precision @ slopes).ravel()]
        )

    return statistic


def moment_excesses(blueprint: Blueprint, x) -> tuple[float, float, float]:
    samples = ensemble(blueprint, network_statistics(x), networks=10_000)
    return (
        excess(samples[:, :3], 0.0),
        excess(samples[:, 3:12], TARGET.covariance.ravel()),
        excess(samples[:, 12:], TARGET.structure_tensor.ravel()),
    )


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("width", "depth"), [(1, 0), (3, 1), (32, 8)])
def test_moments_are_matched(width, depth, position):
    """E f = μ, Cov f = Σ and E ∇fᵀΣ⁻¹∇f = Ω, with correlated channels and an anisotropic Ω."""
    assert max(moment_excesses(uniform_phase(TARGET, width=width, depth=depth), POSITIONS[position])) < 1


def replace(blueprint: Blueprint, index: int, **laws: Distribution) -> Blueprint:
    layers = list(blueprint.layers)
    plan = layers[index]
    layers[index] = LayerPlan(
        plan.role,
        plan.rows,
        plan.columns,
        plan.activation,
        laws.get("weight", plan.weight),
        laws.get("bias", plan.bias),
    )
    return Blueprint("wrong", tuple(layers))


def test_wrong_input_and_output_laws_are_caught():
    """Each moment is missed by the law that should set it."""
    blueprint = uniform_phase(TARGET, width=8, depth=1)
    x = POSITIONS["ordinary"]
    assert moment_excesses(replace(blueprint, -1, bias=Constant(0.0)), x)[0] > 2
    assert moment_excesses(replace(blueprint, -1, weight=Normal(math.sqrt(2 / 8))), x)[1] > 2
    assert moment_excesses(replace(blueprint, 0, weight=Normal(10.0)), x)[2] > 2
    assert moment_excesses(replace(blueprint, 1, weight=Normal(math.sqrt(1 / 8))), x)[2] > 2


# Independence of slopes and weights (the lemma behind it all).


def slopes_and_weights(network):
    """Products whose means vanish if cos z is independent of W: of first powers and of centered squares."""
    layer = network.layers[-1]
    h = jnp.full(layer.weight.shape[1], 0.8)
    for below in network.layers[:-1]:
        h = below(h)
    slope, weight = jnp.cos(layer.preactivation(h))[:, None], layer.weight
    variance = 2 / layer.weight.shape[1]
    return jnp.stack([slope * weight, (slope**2 - 0.5) * (weight**2 - variance)])


@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize("depth", [1, 3])
def test_slopes_are_independent_of_weights(width, depth):
    assert excess(ensemble(hidden_layers(width, depth), slopes_and_weights, networks=10_000), 0.0) < 1


@pytest.mark.parametrize("width", [1, 2, 3])
def test_without_phases_slopes_depend_on_weights(width):
    wrong = hidden_layers(width, 1, bias=Constant(0.0))
    assert excess(ensemble(wrong, slopes_and_weights, networks=10_000), 0.0) > 2


@pytest.mark.parametrize("width", [1, 3, 16])
def test_wrapped_phases_are_uniform(width):
    """Lemma on sinusoids: E cos z = 0 and E cos z cos zᵀ = I/2, at every layer and for any input."""

    def statistic(network):
        h, rows = jnp.full(width, 3.0), []
        for layer in network.layers:
            cosines = jnp.cos(layer.preactivation(h))
            rows.append(jnp.concatenate([cosines[None], jnp.outer(cosines, cosines)]))
            h = layer(h)
        return jnp.stack(rows)

    expected = np.concatenate([np.zeros((1, width)), np.eye(width) / 2])
    assert excess(ensemble(hidden_layers(width, 3), statistic, networks=10_000), expected) < 1


def test_phases_stay_uniform_through_thirty_layers():
    """The same in one wide network: a resultant of n phases is about 1/√n."""
    network = CoordinateMLP(uniform_phase(TARGET, width=512, depth=30), key=jax.random.key(0))
    for row in phase_statistics(network, jnp.array([[0.1, 0.2]])):
        # P(R > r) = exp(-n r²) for n uniform phases: 1e-6 over 31 layers and 2 harmonics
        assert max(row.resultant, row.second_resultant) < math.sqrt(math.log(62 / 1e-6) / 512)
