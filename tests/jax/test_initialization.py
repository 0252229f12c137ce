import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.jax_models import LIBRARIES, by_hand
from helpers.monte_carlo import draw_ensemble, moment_excesses, moment_statistics
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import OUTPUT_SCALE, SCHEMES, get_scheme, sm20, uniform_phase
from uniphase.jax.initialization import initialize
from uniphase.jax.network import CoordinateMLP

MOMENTS = prescribe_moments(mean=[1.0, -2.0, 0.5], covariance=[2.0, 0.5, 0.1], length_scale=[0.1, 0.3])
KEY = jax.random.key(0)
X = np.random.default_rng(0).uniform(-1, 1, (20, 2))


def sine(omega: float):
    return lambda z: jnp.sin(omega * z)


def mlp(activation, depth: int = 3, **options) -> eqx.nn.MLP:
    return eqx.nn.MLP(2, 3, 16, depth, activation=activation, key=KEY, **options)


def sequential(*omegas: float, widths=(16, 16, 16)) -> eqx.nn.Sequential:
    sizes = (2, *widths, 3)
    linears = [eqx.nn.Linear(n, m, key=KEY) for n, m in itertools.pairwise(sizes)]
    sines = [eqx.nn.Lambda(sine(omega)) for omega in omegas]
    between = [part for pair in zip(linears[:-1], sines, strict=True) for part in pair]
    return eqx.nn.Sequential([*between, linears[-1]])


@eqx.filter_jit
def rows(model, x):
    return jax.vmap(model)(x)


def assert_same_function(model, blueprint):
    """The network that the blueprint describes, drawn from the same random numbers."""
    expected = rows(CoordinateMLP(blueprint, key=KEY), jnp.asarray(X))
    np.testing.assert_allclose(rows(model, jnp.asarray(X)), expected, rtol=0, atol=1e-11)  # float64 phases of ~100


MODELS = {
    "MLP": lambda: mlp(sine(30.0)),
    "scanned MLP": lambda: mlp(sine(7.0), scan=True),
    "Sequential": lambda: sequential(7.0, 3.0, 1.0),
    "CoordinateMLP": lambda: CoordinateMLP(sm20((2, 3), width=16, depth=2, official_output=True), key=KEY),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_function_has_the_law_of_the_blueprint_whatever_omega(make, x64):
    model = make()
    before = jax.tree.map(lambda leaf: leaf, model)
    drawn = initialize(model, MOMENTS, key=KEY)
    assert_same_function(drawn, uniform_phase(MOMENTS, width=16, depth=2, output_scale=OUTPUT_SCALE))
    paper = initialize(model, MOMENTS, key=KEY, output_scale=1.0)
    assert_same_function(paper, uniform_phase(MOMENTS, width=16, depth=2))
    assert jax.tree.structure(drawn) == jax.tree.structure(model)
    assert eqx.tree_equal(model, before)


@pytest.mark.parametrize("name", ["sm20", "cvp26-0", "cvp26-1"])
def test_schemes_with_an_omega_take_the_models(name, x64):
    model = initialize(mlp(sine(20.0)), scheme=name, key=KEY)
    assert_same_function(model, get_scheme(name).blueprint((2, 3), width=16, depth=2, omega=20.0, hidden_omega=20.0))
    assert not model.layers[-1].bias.any()  # the blueprint has none


def test_options_are_the_schemes(x64):
    model = initialize(mlp(sine(30.0)), scheme="sm20", omega=82.0, official_output=True, key=KEY)
    assert_same_function(model, sm20((2, 3), width=16, depth=2, omega=82.0, hidden_omega=30.0, official_output=True))


@pytest.mark.parametrize(("name", "activation"), [("relu", jax.nn.relu), ("silu", jax.nn.silu), ("gelu", jax.nn.gelu)])
def test_other_activations(name, activation, x64):
    model = initialize(mlp(activation, use_bias=False), scheme=name, key=KEY)
    assert_same_function(model, get_scheme(name).blueprint((2, 3), width=16, depth=2))


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_on_its_own_network(name, x64):
    scheme = get_scheme(name)
    blueprint = scheme.blueprint(MOMENTS, width=16, depth=2, **scheme.fit)
    model = CoordinateMLP(blueprint, key=jax.random.key(1))
    assert_same_function(initialize(model, MOMENTS, name, key=KEY), blueprint)


def test_the_type_of_the_arrays_stays():
    model = mlp(sine(30.0), dtype=jnp.float16)
    drawn = eqx.filter_eval_shape(lambda key: initialize(model, MOMENTS, key=key), KEY)
    assert {leaf.dtype for leaf in jax.tree.leaves(drawn) if hasattr(leaf, "dtype")} == {jnp.dtype(jnp.float16)}


@pytest.mark.parametrize("name", LIBRARIES)
def test_models_of_every_library_are_drawn_alike(name):
    """From the same random numbers as a blueprint's network; of a pair the parameters are returned."""
    model = LIBRARIES[name]()
    drawn = initialize(model, MOMENTS, key=KEY)
    apply = model[0] if isinstance(model, tuple) else lambda tree, x: tree(x)
    assert jax.tree.structure(drawn) == jax.tree.structure(model[1] if isinstance(model, tuple) else model)
    network = CoordinateMLP(uniform_phase(MOMENTS, width=8, depth=1, output_scale=OUTPUT_SCALE), key=KEY)
    x = jnp.asarray(X, jnp.float32)
    found = jax.vmap(lambda row: apply(drawn, row))(x)
    np.testing.assert_allclose(found, network(x), atol=1e-4)  # float32, phases of some ten radians


@pytest.mark.parametrize(
    ("around", "sign"),
    [({"before": lambda x: 3 * x}, 1), ({"after": lambda y: y / 2 + 0.5}, 1), ({"after": lambda y: 1 - y}, -1)],
    ids=["3x", "y/2 + 1/2", "1 - y"],
)
def test_maps_around_the_layers_are_folded_into_the_law(around, sign):
    """The function is that of the blueprint's network; what turns the channels around turns their deviations around."""
    apply, params = by_hand(**around)
    drawn = initialize((apply, params), MOMENTS, key=KEY, output_scale=1.0)
    network = CoordinateMLP(uniform_phase(MOMENTS, width=8, depth=1), key=KEY)
    x, mean = jnp.asarray(X, jnp.float32), np.asarray(MOMENTS.mean, np.float32)
    found = jax.vmap(lambda row: apply(drawn, row))(x)
    np.testing.assert_allclose(found - mean, sign * (network(x) - mean), atol=2e-4)  # float32


OUTSIDE = {"w": jnp.ones((8, 2)), "b": jnp.ones(8), "v": jnp.ones((3, 8)), "c": jnp.ones(3)}
UNEVEN = {
    "narrowing": sequential(30.0, 3.0, 1.0, widths=(12, 5, 3)),
    "widening": sequential(1.0, 2.0, 30.0, widths=(3, 5, 12)),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_moments_are_matched_also_where_the_widths_differ(name):
    """Initialization under `jit` and `vmap`."""

    def statistic(key):
        model = initialize(UNEVEN[name], MOMENTS, key=key, output_scale=1.0)
        return moment_statistics(model, jnp.array([0.3, -0.7]), MOMENTS)

    samples = draw_ensemble(statistic, networks=10_000)
    assert max(moment_excesses(samples, MOMENTS)) < 1


@pytest.mark.parametrize(
    ("model", "moments", "scheme", "message"),
    [
        (mlp(sine(30.0)), None, "relu", "layer 'layers.0' has 2 → 16, sine, but relu has 2 → 16, relu there; pass"),
        (mlp(sine(30.0)), None, "uniform-phase", r"target is \(2, 3\), but uniform-phase matches the moments"),
        (mlp(sine(1.0)), prescribe_moments(length_scale=[1.0]), "uniform-phase", "has 2 → 16, sine, but .* has 1 → 16"),
        (
            mlp(sine(1.0)),
            prescribe_moments(length_scale=[1.0, 1.0]),
            "uniform-phase",
            "'layers.3' has 16 → 3, .* 16 → 1",
        ),
        (mlp(sine(1.0)), MOMENTS, "unknown", "there is no scheme 'unknown'; the known ones are uniform-phase, "),
        (
            mlp(sine(1.0), use_bias=False),
            MOMENTS,
            "uniform-phase",
            r"'layers.0' has no bias, .* from U\(±3.142\); make",
        ),
        (
            mlp(sine(1.0), use_final_bias=False),
            MOMENTS,
            "uniform-phase",
            "'layers.3' has no bias, .* make the layer with",
        ),
        (mlp(sine(1.0), depth=0), MOMENTS, "uniform-phase", "'layers.0' has 2 → 3, linear, but .* has 2 → 2, sine"),
        (
            UNEVEN["narrowing"],
            None,
            "sm20",
            "'layers.0' has 2 → 12, sine, but sm20 has 2 → 3, sine there; .* one by one",
        ),
        (
            mlp(jax.nn.softplus),
            MOMENTS,
            "uniform-phase",
            "the model MLP .* after 'layers.0.weight', which is not read; initialize its layers one by one",
        ),
        (jnp.sin, MOMENTS, "uniform-phase", "has an activation that does not follow a linear layer, which is not read"),
        (
            lambda x: OUTSIDE["v"] @ jnp.sin(OUTSIDE["w"] @ x + OUTSIDE["b"]) + OUTSIDE["c"],
            MOMENTS,
            "uniform-phase",
            r"has weights that are not in its tree .*; pass a pair \(apply, params\)",
        ),
        (
            (
                lambda p, x: p["v"] @ jnp.sin(p["w"] @ jnp.sin(p["w"] @ x + p["b"]) + p["b"]) + 1,
                {"v": jnp.ones((3, 2)), "w": jnp.ones((2, 2)), "b": jnp.ones(2)},
            ),
            None,
            "sm20",
            "two layers share the numbers of 'w'",
        ),
    ],
)
def test_what_does_not_fit_is_told(model, moments, scheme, message):
    with pytest.raises(ValueError, match=message):
        initialize(model, moments, scheme, key=KEY)
