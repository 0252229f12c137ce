import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.distributions import Constant
from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import (
    IMAGE_OMEGA,
    SCHEMES,
    cvp26_0,
    cvp26_1,
    cvp26_fixed_point,
    get_scheme,
    siren,
    sm20,
    tanh_pe,
    uniform_phase,
)
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Grid

D, C, N, L = 2, 3, 10, 4
MOMENTS = prescribe_moments(
    mean=[1.0, 2.0, 3.0],
    covariance=[[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]],
    structure_tensor=[[300.0, 20.0], [20.0, 60.0]],
)


# The contract that every scheme keeps.


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_contract_shape(name, depth):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=N, depth=depth)
    assert blueprint.scheme == name
    assert (blueprint.in_size, blueprint.out_size, blueprint.width) == (D, C, N)
    roles = [layer.role for layer in blueprint.layers]
    hidden = depth + (name == "tanh-pe")  # its encoding is followed by one more N×N layer
    assert roles == ["input"] + ["hidden"] * hidden + ["output"]
    assert blueprint.layers[-1].activation == "linear"
    assert all(layer.rows == layer.columns == N for layer in blueprint.layers if layer.role == "hidden")


@pytest.mark.parametrize("name", SCHEMES)
def test_contract_network(name):
    """Deterministic per key, finite, differentiable, and with as many parameters as the blueprint says."""
    blueprint = get_scheme(name).blueprint(MOMENTS, width=N, depth=L)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    again, other = (CoordinateMLP(blueprint, key=jax.random.key(seed)) for seed in (0, 1))
    assert eqx.tree_equal(network, again)
    assert not eqx.tree_equal(network, other)
    x = jnp.array([0.3, -0.2])
    assert network(x).shape == (C,)
    gradients = eqx.filter_grad(lambda n: jnp.square(n(x)).sum())(network)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    sizes = [leaf.size for layer in network.layers if layer.trainable for leaf in jax.tree.leaves(layer)]
    assert sum(sizes) == blueprint.parameters


@pytest.mark.parametrize("name", SCHEMES)
def test_contract_documentation(name):
    scheme = get_scheme(name)
    assert scheme.summary
    assert scheme.reference
    assert scheme.paper
    assert scheme.biases
    assert str(scheme.blueprint(MOMENTS, width=N, depth=L)).startswith(f"{name}: 2 → 3")


@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "uniform-phase"])
def test_contract_sizes_are_enough_without_data(name):
    scheme = get_scheme(name)
    assert scheme.blueprint((D, C), width=N, depth=L) == scheme.blueprint(MOMENTS, width=N, depth=L)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0, "depth": 1}, "width is 0; a layer needs at least 1 neuron"),
        ({"width": 4, "depth": -1}, "depth is -1; pass the number of hidden layers, 0 or more"),
    ],
)
def test_contract_bad_sizes(name, options, message):
    with pytest.raises(ValueError, match=message):
        get_scheme(name).blueprint(MOMENTS, **options)


@pytest.mark.parametrize("name", SCHEMES)
def test_contract_frequencies_for_sound_are_options(name):
    scheme = get_scheme(name)
    blueprint = scheme.blueprint((1, 1) if name != "uniform-phase" else MOMENTS, width=N, depth=L, **scheme.sound)
    assert (blueprint != scheme.blueprint((1, 1) if name != "uniform-phase" else MOMENTS, width=N, depth=L)) == bool(
        scheme.sound
    )


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no scheme 'sirens'; the known ones are uniform-phase, siren, sm20, .*gelu"):
        get_scheme("sirens")


# The exact distributions: (activation, ω, variance of the weights, variance of the biases) for each layer.


def laws(blueprint):
    input_layer, *hidden, output = blueprint.layers
    assert len(set(hidden)) == 1
    return [
        (
            layer.activation,
            layer.omega,
            layer.weight.variance(),
            None if layer.bias is None else layer.bias.variance(),
        )
        for layer in (input_layer, hidden[0], output)
    ]


def assert_laws(blueprint, expected):
    for found, wanted in zip(laws(blueprint), expected, strict=True):
        assert found[:2] == wanted[:2]
        np.testing.assert_allclose(found[2], wanted[2], rtol=1e-14)
        assert (found[3] is None) == (wanted[3] is None)
        if wanted[3] is not None:
            np.testing.assert_allclose(found[3], wanted[3], rtol=1e-14)


def test_uniform_phase_laws():
    blueprint = uniform_phase(MOMENTS, width=N, depth=L)
    circle = (2 * math.pi) ** 2 / 12
    assert_laws(
        blueprint,
        [
            ("sine", 1, [[300 / 3, 60 / 3]], circle),
            ("sine", 1, 2 / N, circle),
            ("linear", 1, [[2 * 2 / N], [2 * 1 / N], [2 * 3 / N]], 0),
        ],
    )
    input_layer, *_, output = blueprint.layers
    np.testing.assert_allclose(input_layer.weight.covariance, MOMENTS.structure_tensor / C)
    np.testing.assert_allclose(output.weight.covariance, 2 * MOMENTS.covariance / N)
    assert output.bias == Constant((1.0, 2.0, 3.0))


def test_uniform_phase_adds_epsilon_to_an_estimated_covariance():
    moments = estimate_moments(Grid(np.random.default_rng(0).normal(size=(9, 9, 2))), epsilon=0.25)
    output = uniform_phase(moments, width=N, depth=L).layers[-1]
    np.testing.assert_allclose(output.weight.covariance, 2 * (moments.covariance + 0.25 * np.eye(2)) / N)


def test_uniform_phase_needs_moments():
    with pytest.raises(ValueError, match=r"target is \(2, 1\), but uniform-phase matches the moments"):
        uniform_phase((2, 1), width=N, depth=L)


def test_sm20_laws():
    assert_laws(
        sm20((D, C), width=N, depth=L, omega=30.0, hidden_omega=7.0),
        [
            ("sine", 30, 1 / D**2 / 3, 1 / D / 3),
            ("sine", 7, 6 / (7**2 * N) / 3, 1 / N / 3),
            ("linear", 1, 3 / N / 7**2 / 3, None),
        ],
    )
    assert_laws(
        sm20((D, C), width=N, depth=L, hidden_omega=7.0, official_output=True),
        [
            ("sine", 64 * math.pi / math.sqrt(6), 1 / D**2 / 3, 1 / D / 3),
            ("sine", 7, 6 / (7**2 * N) / 3, 1 / N / 3),
            ("linear", 1, 6 / N / 7**2 / 3, 1 / N / 3),
        ],
    )
    assert round(IMAGE_OMEGA, 4) == 82.0832  # the printed digits


def test_siren_laws():
    assert_laws(
        siren((D, C), width=N, depth=L),
        [
            ("sine", 30, 1 / D**2 / 3, 1 / D / 3),
            ("sine", 30, 6 / (30**2 * N) / 3, 1 / N / 3),
            ("linear", 1, 6 / N / 30**2 / 3, 1 / N / 3),
        ],
    )
    assert_laws(
        siren((D, C), width=N, depth=L, omega=60.0, hidden_omega=7.0),
        [
            ("sine", 60, 1 / D**2 / 3, 1 / D / 3),
            ("sine", 7, 6 / (7**2 * N) / 3, 1 / N / 3),
            ("linear", 1, 6 / N / 7**2 / 3, 1 / N / 3),
        ],
    )
    again = sm20((D, C), width=N, depth=L, omega=12.0, hidden_omega=12.0, official_output=True)
    assert siren((D, C), width=N, depth=L, omega=12.0).layers == again.layers


def test_schemes_say_which_options_they_take():
    assert [name for name, scheme in SCHEMES.items() if scheme.takes("omega")] == [
        "siren",
        "sm20",
        "cvp26-0",
        "cvp26-1",
    ]
    assert all(scheme.takes(option) for scheme in SCHEMES.values() for option in ("target", "width", "depth"))


def test_cvp26_laws():
    first, last = ("sine", IMAGE_OMEGA, 1 / D**2 / 3, 1 / D / 3), ("linear", 1, 1 / N, None)
    assert_laws(cvp26_0((D, C), width=N, depth=L), [first, ("sine", 1, 3 / N / 3, 0), last])
    c = 2.298865
    one = cvp26_1((D, C), width=N, depth=L).layers[1]
    np.testing.assert_allclose(one.weight.variance(), c**2 / N / 3, rtol=1e-6)  # the printed digits of c
    np.testing.assert_allclose(one.bias.variance(), c**2 * math.exp(-2) / 3, rtol=1e-6)
    np.testing.assert_allclose(math.sqrt(one.bias.variance()), 0.488268, rtol=2e-6)
    fast = cvp26_1((D, C), width=N, depth=L, hidden_omega=30.0).layers[1]
    np.testing.assert_allclose(30**2 * fast.weight.variance(), one.weight.variance())
    np.testing.assert_allclose(30**2 * fast.bias.variance(), one.bias.variance())
    zero = cvp26_0((D, C), width=N, depth=L, zero_input_bias=True)
    assert zero.layers[0].bias == Constant(0.0)
    assert zero.layers[1:] == cvp26_0((D, C), width=N, depth=L).layers[1:]


def test_tanh_pe_laws():
    blueprint = tanh_pe((D, C), width=N, depth=L, std=10.0)
    encoding = blueprint.layers[0]
    assert (encoding.rows, encoding.columns, encoding.out_size, encoding.trainable) == (N // 2, D, N, False)
    assert_laws(
        blueprint,
        [
            ("sincos", 2 * math.pi, 10.0**2, None),
            ("tanh", 1, 6 / (2 * N) / 3, 0),
            ("linear", 1, 6 / (N + C) / 3, 0),
        ],
    )
    with pytest.raises(ValueError, match="width is 7, but tanh-pe splits it"):
        tanh_pe((D, C), width=7, depth=L)


def test_relu_silu_gelu_laws():
    assert_laws(
        get_scheme("relu").blueprint((D, C), width=N, depth=L),
        [("relu", 1, 2 / D, 0), ("relu", 1, 2 / N, 0), ("linear", 1, 2 / N, 0)],
    )
    for name in ("silu", "gelu"):
        assert_laws(
            get_scheme(name).blueprint((D, C), width=N, depth=L),
            [(name, 1, 2 / (D + N), 0), (name, 1, 1 / N, 0), ("linear", 1, 2 / (N + C), 0)],
        )


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ((2, 0), {}, r"target is \(2, 0\); pass Moments, or \(in_size, out_size\)"),
        ((2, 1), {"omega": -3.0}, "omega is -3.0 and hidden_omega is 1.0; both must be positive"),
        ((2, 1), {"hidden_omega": 0.0}, "hidden_omega is 0.0; both must be positive"),
    ],
)
def test_bad_options(target, options, message):
    for scheme in (siren, sm20, cvp26_0) if "omega" not in options else (sm20, cvp26_0):
        with pytest.raises(ValueError, match=message):
            scheme(target, width=4, depth=1, **options)


# CVP26's fixed point.


def preactivation_variance(c_w, c_b, layers=200_000):
    """The recursion whose limit the Lambert equation gives: Var z = c_b² + (c_w²/3) E sin² z for Normal z."""
    variance = 1.0
    for _ in range(layers):
        variance = c_b**2 + c_w**2 / 6 * (1 - math.exp(-2 * variance))
    return variance


@pytest.mark.parametrize("c_w", [0.5, 1.7, 1.8, 2.0, math.sqrt(6), 4.0])
@pytest.mark.parametrize("c_b", [0.0, 0.1, 0.5, 2.0])
def test_fixed_point_is_the_limit_of_the_recursion(c_w, c_b):
    variance, gain = cvp26_fixed_point(c_w, c_b)
    assert variance == pytest.approx(preactivation_variance(c_w, c_b), rel=1e-9, abs=1e-9)
    assert gain == pytest.approx(c_w**2 / 6 * (1 + math.exp(-2 * variance)), rel=1e-12)


def test_fixed_point_of_the_named_cases():
    c = math.sqrt(6 / (1 + math.exp(-2)))
    assert cvp26_fixed_point(math.sqrt(3), 0.0) == pytest.approx((0, 1), abs=1e-12)
    assert cvp26_fixed_point(c, c * math.exp(-1) / math.sqrt(3)) == pytest.approx((1, 1), rel=1e-12)


@pytest.mark.parametrize("step", [-1e-9, -1e-15, 0.0, 1e-15, 1e-9])
def test_fixed_point_around_the_branch_point(step):
    """The slope of W₀ is infinite there: an error of δ in c_w moves σ_a² by about δ, and never makes it nan."""
    variance, gain = cvp26_fixed_point(math.sqrt(3) * (1 + step), 0.0)
    assert variance == pytest.approx(0, abs=1e-7)
    assert gain == pytest.approx(1, abs=1e-7)


def test_large_biases_tend_to_the_uniform_phase():
    variance, gain = cvp26_fixed_point(2.0, 10.0)
    assert variance == pytest.approx(10.0**2 + 2.0**2 / 6, rel=1e-12)
    assert gain == pytest.approx(2.0**2 / 6, rel=1e-12)
