import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.schemes import cvp26_0, tanh_pe
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.reading import as_function, read_layers, replace_arrays, require_whole

KEY = jax.random.key(0)


def sine(omega: float):
    return eqx.nn.Lambda(lambda z: jnp.sin(omega * z))


def linear(n: int, out: int) -> eqx.nn.Linear:
    return eqx.nn.Linear(n, out, key=KEY)


MODELS = {
    "MLP": eqx.nn.MLP(2, 3, 8, 3, activation=lambda z: jnp.sin(30.0 * z), key=KEY),
    "scanned MLP": eqx.nn.MLP("scalar", "scalar", 8, 3, activation=jnp.tanh, scan=True, key=KEY),
    "MLP without biases": eqx.nn.MLP(2, 3, 8, 3, use_bias=False, use_final_bias=False, scan=True, key=KEY),
    "Sequential": eqx.nn.Sequential(
        [linear(2, 8), sine(30.0), eqx.nn.Sequential([linear(8, 5), sine(2.0)]), linear(5, 1)]
    ),
    "CoordinateMLP": CoordinateMLP(cvp26_0((2, 1), width=8, depth=2, omega=30.0), key=KEY),
    "encoding": CoordinateMLP(tanh_pe((2, 1), width=8, depth=2), key=KEY),
}
READ = {
    "MLP": [*[(f"layers.{i}", "sine", 30.0) for i in range(3)], ("layers.3", "linear", 1.0)],
    "scanned MLP": [*[(f"layers.{i}", "tanh", 1.0) for i in range(3)], ("layers.3", "linear", 1.0)],
    "Sequential": [("layers.0", "sine", 30.0), ("layers.2.layers.0", "sine", 2.0), ("layers.3", "linear", 1.0)],
    "CoordinateMLP": [
        ("input", "sine", 30.0),
        ("hidden 1", "sine", 1.0),
        ("hidden 2", "sine", 1.0),
        ("output", "linear", 1.0),
    ],
}


@pytest.mark.parametrize("name", READ)
def test_layers_are_read_with_their_paths_activations_and_omegas(name):
    layers = read_layers(MODELS[name])
    assert [(layer.name, layer.activation, layer.omega) for layer in layers] == READ[name]


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_the_model(name):
    require_whole(MODELS[name], read_layers(MODELS[name]))


@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_are_replaced_are_read_again(name):
    model = MODELS[name]
    before = read_layers(model)
    doubled = replace_arrays(model, [(2 * la.weight, None if la.bias is None else la.bias + 1) for la in before])
    assert jax.tree.structure(doubled) == jax.tree.structure(model)
    for old, new in zip(before, read_layers(doubled), strict=True):
        np.testing.assert_array_equal(new.weight, 2 * old.weight)
        if old.bias is not None:
            np.testing.assert_array_equal(new.bias, old.bias + 1)


def test_the_same_layer_twice_has_its_own_arrays_each():
    """Equinox shares nothing unless it is told to: two places of a tree are two layers."""
    twice = linear(8, 8)
    model = eqx.nn.Sequential([linear(2, 8), sine(1.0), twice, sine(1.0), twice])
    arrays = [(i * jnp.ones_like(layer.weight), layer.bias) for i, layer in enumerate(read_layers(model))]
    assert [float(layer.weight[0, 0]) for layer in read_layers(replace_arrays(model, arrays))] == [0.0, 1.0, 2.0]


def test_values_are_rows_whatever_the_model_takes():
    positions = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    assert as_function(MODELS["scanned MLP"])(positions).shape == (5, 1)
    assert as_function(MODELS["MLP"])(np.tile(positions, 2)).shape == (5, 3)


def test_a_class_that_computes_something_else_is_told_from_its_layers():
    class Residual(eqx.nn.MLP):
        def __call__(self, x, *, key=None):
            return super().__call__(x) + x

    model = Residual(2, 2, 8, 2, activation=jnp.sin, key=KEY)
    with pytest.raises(ValueError, match=r"the model Residual computes something else than .* layers\.0, layers\.1"):
        require_whole(model, read_layers(model))
