import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uniphase
from helpers.jax_models import LIBRARIES
from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import cvp26_0, relu, uniform_phase
from uniphase.jax.diagnostics import (
    diagnose,
    jacobian,
    jacobian_spectra,
    layer_outputs,
    network_moments,
    phase_statistics,
)
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Grid

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.1, 0.3])
NETWORK = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=3), key=jax.random.key(0))
X = jnp.array([0.2, -0.4])


def test_layer_outputs_run_from_the_position_to_the_channels():
    h = layer_outputs(NETWORK, X)
    assert [len(a) for a in h] == [2, 16, 16, 16, 16, 2]
    np.testing.assert_array_equal(h[0], X)
    np.testing.assert_array_equal(h[-1], NETWORK(X))


def test_positions_are_rows():
    rows = jax.random.uniform(jax.random.key(1), (3, 2, 2))
    h = layer_outputs(NETWORK, rows)
    assert [a.shape for a in h] == [(3, 2, size) for size in (2, 16, 16, 16, 16, 2)]
    for of_rows, of_one in zip(h, layer_outputs(NETWORK, rows[2, 1]), strict=True):
        np.testing.assert_allclose(of_rows[2, 1], of_one, atol=1e-5)  # float32
    flat = rows.reshape(6, 2)
    assert phase_statistics(NETWORK, rows) == phase_statistics(NETWORK, flat)
    spectra = jacobian_spectra(NETWORK, rows)
    np.testing.assert_array_equal(spectra.reshape(6, -1), jacobian_spectra(NETWORK, flat))
    np.testing.assert_array_equal(network_moments(NETWORK, rows).mean, network_moments(NETWORK, flat).mean)


@pytest.mark.parametrize("function", [layer_outputs, jacobian, jacobian_spectra, phase_statistics, network_moments])
def test_columns_are_refused(function):
    unchecked = inspect.unwrap(function)  # in the tests types are checked before
    with pytest.raises(ValueError, match=r"positions have the shape \(3,\), but the network takes 2 coordinates"):
        unchecked(NETWORK, jnp.zeros(3))
    with pytest.raises(ValueError, match=r"positions have the shape \(2, 7\), but .*; pass \(\*batch, 2\), with a row"):
        unchecked(NETWORK, jnp.zeros((2, 7)))


def test_a_jacobian_is_that_at_one_position():
    unchecked = inspect.unwrap(jacobian)
    with pytest.raises(ValueError, match=r"x has the shape \(7, 2\), but jacobian takes one position; call it under"):
        unchecked(NETWORK, jnp.zeros((7, 2)))


def test_jacobian_is_the_product_of_slopes_and_weights():
    """The chain rule written out, layer by layer."""
    h = layer_outputs(NETWORK, X)
    product = np.eye(16)
    for layer, below in list(zip(NETWORK.layers, h[:-1], strict=True))[1:4]:
        product = np.diag(np.cos(layer.preactivation(below))) @ np.asarray(layer.weight) @ product
    np.testing.assert_allclose(jacobian(NETWORK, X, 1, 4), product, rtol=1e-4, atol=1e-5)  # float32


def test_jacobians_compose_and_default_to_the_whole_network():
    whole = jacobian(NETWORK, X)
    np.testing.assert_allclose(whole, jax.jacfwd(NETWORK)(X), rtol=1e-6)
    parts = jacobian(NETWORK, X, 2) @ jacobian(NETWORK, X, 0, 2)
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(jacobian(NETWORK, X, 2, 2), np.eye(16))


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 6)])
def test_bad_layers(start, stop):
    with pytest.raises(ValueError, match=f"start is {start} and stop is {stop}; activations are numbered 0 to 5"):
        jacobian(NETWORK, X, start, stop)


def test_spectra_are_sorted_singular_values():
    positions = jax.random.uniform(jax.random.key(1), (7, 2))
    spectra = jacobian_spectra(NETWORK, positions, 1, 4)
    assert spectra.shape == (7, 16)
    exact = np.linalg.svd(jacobian(NETWORK, positions[3], 1, 4), compute_uv=False)
    np.testing.assert_allclose(spectra[3], exact, rtol=1e-3, atol=1e-5)  # float32, and the least values are near zero


def test_phase_statistics_tell_uniform_phases_from_others():
    positions = jax.random.uniform(jax.random.key(1), (2000, 1), minval=-1.0)
    uniform = CoordinateMLP(uniform_phase(prescribe_moments(length_scale=0.01), width=256, depth=4),
                            key=jax.random.key(0))  # fmt: skip
    rows = phase_statistics(uniform, positions)
    assert [row.layer for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        # 256 phases drawn once: |mean exp(iz)| has the scale 1/√256, and six times that is 0.38
        assert row.resultant < 6 / np.sqrt(256)
        assert row.second_resultant < 6 / np.sqrt(256)
        assert abs(row.squared_slope - 0.5) < 3 / np.sqrt(256)
    dying = CoordinateMLP(cvp26_0((1, 1), width=256, depth=16, omega=30.0), key=jax.random.key(0))
    last = phase_statistics(dying, positions)[-1]
    assert last.resultant > 0.8
    assert last.squared_slope > 0.8
    assert last.std < phase_statistics(dying, positions)[1].std


def test_layers_without_sines_have_no_phases():
    network = CoordinateMLP(relu((1, 1), width=8, depth=2), key=jax.random.key(0))
    assert phase_statistics(network, jnp.zeros((3, 1))) == []


def test_network_moments_agree_with_the_estimate_from_its_rendering(x64):
    """Exact derivatives against Sobel's, on a grid fine enough for them."""
    moments = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.5, 0.3])
    network = CoordinateMLP(uniform_phase(moments, width=16, depth=1), key=jax.random.key(0))
    grid = Grid(np.zeros((300, 300, 1)))
    positions = jnp.asarray(grid.coordinates())
    rendered = Grid(np.asarray(jax.vmap(network)(positions)).reshape(300, 300, 2))
    found, estimated = network_moments(network, positions), estimate_moments(rendered)
    np.testing.assert_allclose(found.mean, estimated.mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, estimated.covariance, rtol=1e-9)
    # Sobel halves the slope in the two outermost of 300 rows
    np.testing.assert_allclose(
        found.structure_tensor, estimated.structure_tensor, rtol=0, atol=0.02 * np.trace(found.structure_tensor)
    )


KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
FIELD = Grid(np.sin(3 * np.arange(400.0)).reshape(20, 20, 1))


def linear(n: int, out: int) -> eqx.nn.Linear:
    return eqx.nn.Linear(n, out, key=KEY)


MODELS = {
    "MLP": eqx.nn.MLP(2, 1, 8, 3, activation=lambda z: jnp.sin(30.0 * z), key=KEY),
    "scanned MLP": eqx.nn.MLP(2, "scalar", 8, 3, activation=lambda z: jnp.sin(30.0 * z), scan=True, key=KEY),
    "Sequential": eqx.nn.Sequential(
        [
            linear(2, 8),
            eqx.nn.Lambda(lambda z: 30.0 * z),  # what stands between two linear layers is read as one
            eqx.nn.Lambda(jnp.sin),
            eqx.nn.Sequential([linear(8, 8), eqx.nn.Lambda(lambda z: jnp.sin(30.0 * z))]),
            linear(8, 8),
            eqx.nn.Lambda(lambda z: jnp.sin(30.0 * z)),
            linear(8, 1),
        ]
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_networks_of_equinox_are_read_as_they_are(name):
    report = diagnose(MODELS[name], FIELD)
    assert [layer.activation for layer in report.layers] == ["sine", "sine", "sine", "linear"]
    assert report.layers[1].preactivation_std > 5  # with its omega of 30
    assert not report.healthy


def test_the_fix_for_a_model_of_equinox_initializes_it():
    fix = diagnose(MODELS["MLP"], FIELD).fix
    assert fix == "model = uniphase.initialize(model, moments, key=key)"
    assert diagnose(followed(fix, model=MODELS["MLP"])["model"], FIELD).healthy


def followed(fix, **names):
    """What is there after a recommendation was followed."""
    scope = {"uniphase": uniphase, "moments": estimate_moments(FIELD), "key": KEY, **names}
    exec(fix, scope)
    return scope


@pytest.mark.parametrize("name", LIBRARIES)
def test_chains_of_every_library_are_examined_and_the_fix_runs(name):
    field = Grid(np.repeat(FIELD.values, 3, axis=-1) * [1.0, 2.0, -1.0] + RNG.normal(size=(20, 20, 3)))
    model = LIBRARIES[name]()
    report = diagnose(model, field)
    assert [layer.activation for layer in report.layers] == ["sine", "sine", "linear"]
    pair = isinstance(model, tuple)
    names = {"apply": model[0], "params": model[1]} if pair else {"model": model}
    scope = followed(report.fix, **names, moments=estimate_moments(field))
    assert diagnose((scope["apply"], scope["params"]) if pair else scope["model"], field).healthy


@pytest.mark.parametrize(
    "model",
    [
        eqx.nn.MLP(2, 1, 8, 3, key=KEY),  # without sines
        eqx.nn.MLP(2, 1, 8, 3, activation=jnp.sin, use_bias=False, key=KEY),
        CoordinateMLP(cvp26_0((2, 1), width=8, depth=2, omega=30.0), key=KEY),  # without a bias at the end
    ],
    ids=["relu", "no biases", "CoordinateMLP"],
)
def test_the_fix_for_other_models_replaces_them(model):
    fix = diagnose(model, FIELD).fix
    assert fix == (
        "model = uniphase.CoordinateMLP(uniphase.uniform_phase(moments, width=8, depth=2, output_scale=0.05), key=key)"
    )
    assert diagnose(followed(fix)["model"], FIELD).healthy


def test_a_coordinate_network_and_its_layers_given_by_hand_have_one_report():
    network = CoordinateMLP(cvp26_0((2, 1), width=8, depth=1, omega=30.0), key=KEY)
    layers = {
        name: (layer.weight, layer.bias, layer.activation, layer.omega)
        for name, layer in zip(("input", "hidden 1", "output"), network.layers, strict=True)
    }
    assert diagnose(lambda x: network(x), FIELD, layers=layers).to_dict() == diagnose(network, FIELD).to_dict()


@pytest.mark.parametrize(
    ("model", "layers", "message"),
    [
        (jnp.sum, None, "computes 'reduce_sum' of the positions, which is not read; .* diagnose takes them as layers="),
        (eqx.nn.MLP(2, 1, 8, 1, activation=jax.nn.elu, key=KEY), None, "after 'layers.0.weight', which is not read"),
        (linear(2, 1), {"a": (np.eye(2), None, "sine")}, r"layers\['a'\] has 3 entries"),
        (linear(2, 1), {"a": (np.eye(2), np.zeros(3), "sine", 1)}, r"weight has shape \(2, 2\) and bias \(3,\)"),
        (linear(2, 1), {"a": (np.eye(2), None, "sinus", 1)}, "activation is 'sinus'; it must be one of sine, sincos"),
        (
            linear(2, 1),
            {"a": (np.eye(2), None, "sine", 1), "b": (np.ones((1, 2)), None, "linear", 1)},
            "the layers read from the model are not all of it",
        ),
        (eqx.nn.MLP(2, 3, 8, 1, key=KEY), None, "the network has 3 channels, but the field has 1"),
    ],
)
def test_models_that_cannot_be_read(model, layers, message):
    with pytest.raises(ValueError, match=message):
        diagnose(model, FIELD, layers=layers)
