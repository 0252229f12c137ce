"""Every entry of the table of activations, and a new one through the whole package: one entry is all that it takes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.diagnosis.chain import draw_chain, recognize_activation
from uniphase.diagnosis.examination import examine
from uniphase.initialization.activations import ACTIVATIONS, Activation, get_activation, load_function
from uniphase.initialization.blueprint import Blueprint, LayerPlan
from uniphase.initialization.distributions import Constant, Normal
from uniphase.jax.diagnostics import diagnose
from uniphase.jax.files import load_network, save_network
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.datasets import load
from uniphase.storage.network_file import NetworkFile

ARCTAN = Activation(
    "arctan", "arctan({})", np.arctan, lambda z: 1 / (1 + z**2), "jax.numpy:arctan", "torch:atan", "atan"
)
ENTRIES = [*ACTIVATIONS.values(), ARCTAN]
Z = np.linspace(-3, 3, 60)  # zero is not among them, where ReLU has no slope
each = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@each
def test_the_slope_is_the_derivative(entry):
    step = 1e-5
    numerical = (entry.value(Z + step) - entry.value(Z - step)) / (2 * step)
    np.testing.assert_allclose(entry.slope(Z), numerical, rtol=0, atol=1e-9)  # step² and 1e-16 / step
    if entry.initial_slope is not None:
        assert entry.slope(np.zeros(1)) == pytest.approx(entry.initial_slope)


@each
def test_it_returns_the_stated_number_of_outputs(entry):
    assert entry.value(Z).shape == entry.slope(Z).shape == (60 * entry.outputs,)


@each
def test_jax_has_the_same_function(entry, x64):
    found = load_function(entry.jax)(jnp.asarray(Z))
    np.testing.assert_allclose(found, entry.value(Z), rtol=0, atol=1e-12)  # float64


@each
def test_torch_has_the_same_function(entry):
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    found = load_function(entry.torch)(torch.as_tensor(Z))
    np.testing.assert_allclose(found.numpy(), entry.value(Z), rtol=0, atol=1e-12)  # float64


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.outputs == 1], ids=lambda entry: entry.name)
@pytest.mark.parametrize("omega", [0.5, 1.0, 30.0])
def test_it_is_recognized_by_its_values(entry, omega, monkeypatch):
    monkeypatch.setitem(ACTIVATIONS, entry.name, entry)
    name, found = recognize_activation(lambda z: entry.value(omega * z))
    assert name == entry.name
    assert found == pytest.approx(omega, rel=1e-4)  # it is rounded to five digits


@each
def test_it_prints(entry):
    assert "2z" in entry.text.format("2z")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"activation is 'step'; it must be one of sine, sincos, tanh, .*linear"):
        get_activation("step")


# A new activation: nothing but its entry says that it exists.

FIELD = load("camera", size=8)


@pytest.fixture
def blueprint(monkeypatch) -> Blueprint:
    monkeypatch.setitem(ACTIVATIONS, "arctan", ARCTAN)
    zero = Constant(0.0)
    return Blueprint(
        "new",
        (
            LayerPlan("input", 8, 2, "arctan", Normal(1.0), zero, omega=2.0),
            LayerPlan("hidden", 8, 8, "arctan", Normal(0.5), zero),
            LayerPlan("output", 1, 8, "linear", Normal(0.3), zero),
        ),
    )


def test_a_new_one_in_a_blueprint(blueprint):
    assert "arctan(2z)" in str(blueprint)
    assert Blueprint.from_dict(blueprint.to_dict()) == blueprint


def test_a_new_one_in_a_diagnosis(blueprint):
    report = examine(draw_chain(blueprint, np.random.default_rng(0)), FIELD)
    assert [layer.activation for layer in report.layers] == ["arctan", "arctan", "linear"]
    assert "8 arctan" in str(report)


def test_a_new_one_in_jax(blueprint, tmp_path):
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    x = jnp.asarray(FIELD.coordinates(), jnp.float32)
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD))
    back = load_network(tmp_path / "a.uniphase").network
    np.testing.assert_array_equal(jax.vmap(back)(x), jax.vmap(network)(x))
    assert [layer.activation for layer in diagnose(network, FIELD).layers] == ["arctan", "arctan", "linear"]
    foreign = eqx.nn.MLP(2, 1, 8, 2, activation=jnp.arctan, key=jax.random.key(0))
    assert [layer.activation for layer in diagnose(foreign, FIELD).layers] == ["arctan", "arctan", "linear"]


def test_a_new_one_in_torch(blueprint, tmp_path):
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    from uniphase import torch as upt

    network = upt.CoordinateMLP(blueprint)
    x = torch.as_tensor(FIELD.coordinates(), dtype=torch.float32)
    upt.save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD))
    assert torch.equal(upt.load_network(tmp_path / "a.uniphase").network(x), network(x))
    assert [layer.activation for layer in upt.diagnose(network, FIELD).layers] == ["arctan", "arctan", "linear"]
    in_jax = load_network(tmp_path / "a.uniphase").network
    found, expected = jax.vmap(in_jax)(jnp.asarray(x.numpy())), network(x).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)  # float32
