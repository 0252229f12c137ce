"""The exact statements of the paper, by Monte Carlo.

Every statement is an expectation over initializations. It is estimated from independent networks and compared in units
of its standard error; the bound is the quantile that all entries together exceed with probability 1e-6 if the statement
is true. Schemes that are wrong on purpose must exceed it.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.monte_carlo import excess, moment_excesses, moment_statistics
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


def ensemble(blueprint: Blueprint, statistic, inputs, networks: int) -> np.ndarray:
    """`statistic(network, x)` for every input x and for independent networks, in blocks that fit into memory."""
    rng, inputs = np.random.default_rng(0), jnp.asarray(inputs, jnp.result_type(float))
    blocks = (draw_networks(blueprint, min(1000, networks - start), rng) for start in range(0, networks, 1000))
    return np.concatenate([np.asarray(compiled(statistic)(block, inputs), np.float64) for block in blocks], axis=1)


def draw_networks(blueprint: Blueprint, count: int, rng: np.random.Generator) -> CoordinateMLP:
    """Independent networks in one, along a first axis of every array.

    The random numbers are NumPy's, which need no compiling for every shape. The laws make samples of them as always.
    """
    dtype = np.dtype(jnp.result_type(float))
    standard = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}
    arrays = [
        law.sample(standard[law.standard]((count, *shape), dtype=dtype), lambda numbers: numbers.astype(dtype))
        for plan in blueprint.layers
        for law, shape in ((plan.weight, (plan.rows, plan.columns)), (plan.bias, (plan.rows,)))
    ]
    structure = jax.tree.structure(jax.eval_shape(lambda key: CoordinateMLP(blueprint, key=key), jax.random.key(0)))
    return jax.tree.unflatten(structure, map(jnp.asarray, arrays))


@functools.cache
def compiled(statistic):
    """The statistic over inputs and networks, the same for all laws."""
    over_inputs = jax.vmap(statistic, in_axes=(None, 0))
    return jax.jit(jax.vmap(over_inputs, in_axes=(0, None), out_axes=1))


@functools.cache
def gramians(start: int, stop: int):
    """JJᵀ and JᵀJ between two layers."""

    def statistic(network, x):
        j = jacobian(network, x, start, stop)
        return jnp.stack([j @ j.T, j.T @ j])

    return statistic


INPUTS = {"zero": 0.0, "ordinary": 1.0, "huge": 1e4}


@functools.lru_cache(maxsize=1)
def hidden_gramians(width: int, depth: int, networks: int) -> dict[str, np.ndarray]:
    """For all inputs, with the same networks."""
    inputs = [size * np.cos(np.arange(width)) for size in INPUTS.values()]
    samples = ensemble(hidden_layers(width, depth), gramians(0, depth), inputs, networks)
    return dict(zip(INPUTS, samples, strict=True))


@pytest.mark.parametrize("size", INPUTS)
@pytest.mark.parametrize("width", [1, 2, 3, 8, 64])
def test_one_layer_is_an_isometry_on_average(width, size):
    samples = hidden_gramians(width, 1, networks=10_000 if width < 64 else 1_000)[size]
    assert excess(samples, np.eye(width)) < 1


# The variance of ‖Jv‖² grows like (1 + 3.5/width)^depth: for these it stays below 10 and the mean can be seen.
@pytest.mark.parametrize("size", ["zero", "ordinary"])
@pytest.mark.parametrize(
    ("width", "depth", "networks"), [(2, 2, 20_000), (3, 2, 20_000), (8, 4, 10_000), (64, 32, 400), (128, 32, 100)]
)
def test_several_layers_are_an_isometry_on_average(width, depth, networks, size):
    assert excess(hidden_gramians(width, depth, networks)[size], np.eye(width)) < 1


@pytest.mark.parametrize(("start", "stop"), [(1, 2), (1, 4), (3, 5), (2, 2)])
def test_any_two_hidden_layers_of_a_whole_network(start, stop):
    """Also behind an input layer, from x in the user's coordinates."""
    blueprint = uniform_phase(prescribe_moments(length_scale=[0.1, 0.4]), width=8, depth=4)
    (samples,) = ensemble(blueprint, gramians(start, stop), [[0.3, -0.7]], networks=10_000)
    assert excess(samples, np.eye(8)) < 1


def test_a_huge_input_in_double_precision(x64):
    """Phases that float32 cannot resolve any more."""
    (samples,) = ensemble(hidden_layers(8, 2), gramians(0, 2), [1e9 * np.cos(np.arange(8))], networks=10_000)
    assert excess(samples, np.eye(8)) < 1


@pytest.mark.parametrize("width", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("wrong", [{"variance": 1.0}, {"bias": Constant(0.0)}], ids=["variance 1/N", "biases at zero"])
def test_a_wrong_scheme_is_caught(width, wrong):
    inputs, networks = [0.5 * np.cos(np.arange(width))], 10_000 if width < 64 else 1_000
    (samples,) = ensemble(hidden_layers(width, 1, **wrong), gramians(0, 1), inputs, networks)
    assert excess(samples, np.eye(width)) > 2


# Moments of the whole network (section 3 of the paper).

TARGET = prescribe_moments(
    mean=[1.0, -2.0, 0.5],
    covariance=[[2.0, 0.9, -0.3], [0.9, 1.0, 0.2], [-0.3, 0.2, 0.5]],
    structure_tensor=[[300.0, -120.0], [-120.0, 90.0]],
)
POSITIONS = {"zero": [0.0, 0.0], "ordinary": [0.3, -0.7], "huge": [300.0, -200.0]}


def target_statistics(network, x):
    return moment_statistics(network, x, TARGET)


@functools.lru_cache(maxsize=1)
def matched_moments(width: int, depth: int) -> dict[str, tuple[float, float, float]]:
    """For all positions, with the same networks."""
    blueprint = uniform_phase(TARGET, width=width, depth=depth)
    samples = ensemble(blueprint, target_statistics, list(POSITIONS.values()), networks=10_000)
    return {name: moment_excesses(each, TARGET) for name, each in zip(POSITIONS, samples, strict=True)}


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("width", "depth"), [(1, 0), (3, 1), (32, 8)])
def test_moments_are_matched(width, depth, position):
    """E f = μ, Cov f = Σ and E ∇fᵀΣ⁻¹∇f = Ω, with correlated channels and an anisotropic Ω."""
    assert max(matched_moments(width, depth)[position]) < 1


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

    def excesses(index: int, **laws: Distribution) -> tuple[float, float, float]:
        wrong = replace(blueprint, index, **laws)
        (samples,) = ensemble(wrong, target_statistics, [POSITIONS["ordinary"]], networks=10_000)
        return moment_excesses(samples, TARGET)

    assert excesses(-1, bias=Constant(0.0))[0] > 2
    assert excesses(-1, weight=Normal(math.sqrt(2 / 8)))[1] > 2
    assert excesses(0, weight=Normal(10.0))[2] > 2
    assert excesses(1, weight=Normal(math.sqrt(1 / 8)))[2] > 2


# Independence of slopes and weights (the lemma behind it all).


def slopes_and_weights(network, h):
    """Products whose means vanish if cos z is independent of W: of first powers and of centered squares."""
    layer = network.layers[-1]
    for below in network.layers[:-1]:
        h = below(h)
    slope, weight = jnp.cos(layer.preactivation(h))[:, None], layer.weight
    variance = 2 / layer.weight.shape[1]
    return jnp.stack([slope * weight, (slope**2 - 0.5) * (weight**2 - variance)])


@pytest.mark.parametrize("width", [1, 2, 3, 8])
@pytest.mark.parametrize("depth", [1, 3])
def test_slopes_are_independent_of_weights(width, depth):
    (samples,) = ensemble(hidden_layers(width, depth), slopes_and_weights, [[0.8] * width], networks=10_000)
    assert excess(samples, 0.0) < 1


@pytest.mark.parametrize("width", [1, 2, 3])
def test_without_phases_slopes_depend_on_weights(width):
    wrong = hidden_layers(width, 1, bias=Constant(0.0))
    (samples,) = ensemble(wrong, slopes_and_weights, [[0.8] * width], networks=10_000)
    assert excess(samples, 0.0) > 2


def cosines_and_products(network, h):
    """cos z and cos z cos zᵀ at every layer."""
    rows = []
    for layer in network.layers:
        cosines = jnp.cos(layer.preactivation(h))
        rows.append(jnp.concatenate([cosines[None], jnp.outer(cosines, cosines)]))
        h = layer(h)
    return jnp.stack(rows)


@pytest.mark.parametrize("width", [1, 3, 16])
def test_wrapped_phases_are_uniform(width):
    """Lemma on sinusoids: E cos z = 0 and E cos z cos zᵀ = I/2, at every layer and for any input."""
    (samples,) = ensemble(hidden_layers(width, 3), cosines_and_products, [[3.0] * width], networks=10_000)
    assert excess(samples, np.concatenate([np.zeros((1, width)), np.eye(width) / 2])) < 1


def test_phases_stay_uniform_through_thirty_layers():
    """The same in one wide network: a resultant of n phases is about 1/√n."""
    network = CoordinateMLP(uniform_phase(TARGET, width=512, depth=30), key=jax.random.key(0))
    for row in phase_statistics(network, jnp.array([[0.1, 0.2]])):
        # P(R > r) = exp(-n r²) for n uniform phases: 1e-6 over 31 layers and 2 harmonics
        assert max(row.resultant, row.second_resultant) < math.sqrt(math.log(62 / 1e-6) / 512)
