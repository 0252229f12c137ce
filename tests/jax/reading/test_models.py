import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from helpers.jax_models import KEY, LIBRARIES, by_hand
from uniphase.diagnosis.chain import evaluate_chain
from uniphase.initialization.schemes import cvp26_0, tanh_pe
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.reading import Parameters, read_layers
from uniphase.jax.sine import sine as own_sine


def linear(n: int, out: int) -> eqx.nn.Linear:
    return eqx.nn.Linear(n, out, key=KEY)


def sine(omega: float):
    return eqx.nn.Lambda(lambda z: jnp.sin(omega * z))


def layers_of(*names: str, last: str, omegas=(30.0, 2.0), activation: str = "sine"):
    return [*[(name, activation, omega) for name, omega in zip(names, omegas, strict=True)], (last, "linear", 1.0)]


ONES = (1.0, 1.0)
# A model, and the name, the activation and the ω of each of its layers.
MODELS = {
    "linen": (LIBRARIES["linen"](), layers_of("params.Dense_0", "params.Dense_1", last="params.Dense_2")),
    "nnx": (LIBRARIES["nnx"](), layers_of("layers.0", "layers.1", last="layers.2")),
    "haiku": (LIBRARIES["haiku"](), layers_of("linear", "linear_1", last="linear_2")),
    "equinox": (LIBRARIES["equinox"](), layers_of("layers.0", "layers.2", last="layers.4")),
    "Partial": (Partial(*LIBRARIES["linen"]()), layers_of("0.0.params.Dense_0", "0.0.params.Dense_1",
                                                          last="0.0.params.Dense_2")),
    "scanned MLP": (
        eqx.nn.MLP("scalar", "scalar", 8, 3, activation=jnp.tanh, scan=True, key=KEY),
        layers_of("layers.0", "layers.1[0]", "layers.1[1]", last="layers.2", omegas=(1.0,) * 3, activation="tanh"),
    ),
    "CoordinateMLP": (
        CoordinateMLP(cvp26_0((2, 1), width=8, depth=1, omega=30.0), key=KEY),
        layers_of("input", "hidden 1", last="output", omegas=(30.0, 1.0)),
    ),
    "encoding": (
        CoordinateMLP(tanh_pe((2, 1), width=8, depth=1), key=KEY),
        [("input", "sincos", 2 * np.pi),
         *layers_of("hidden 1", "hidden 2", last="output", omegas=ONES, activation="tanh")],
    ),
    "rows": (by_hand(lambda w, x, b: (x[None] @ w.T + b)[0]), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    "ω first": (by_hand(lambda w, x, b: w @ (30 * x) + b), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    "2x - 1": (by_hand(before=lambda x: 2 * x - 1), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    "y/2 + 1/2": (by_hand(after=lambda y: y / 2 + 0.5), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    "sigmoid": (by_hand(after=jax.nn.sigmoid), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    "own sine": (by_hand(activation=lambda z: own_sine(3 * z)), layers_of("0.0", "1.0", last="2.0", omegas=(3.0,) * 2)),
    "cosines": (by_hand(activation=jnp.cos), layers_of("0.0", "1.0", last="2.0", omegas=ONES)),
    **{
        name: (by_hand(activation=f), layers_of("0.0", "1.0", last="2.0", omegas=ONES, activation=name.split()[0]))
        for name, f in {
            "relu": jax.nn.relu,
            "silu": jax.nn.silu,
            "gelu": jax.nn.gelu,
            "gelu with erf": lambda z: jax.nn.gelu(z, approximate=False),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_read_as_the_layers_that_it_computes(name):
    model, expected = MODELS[name]
    chain = read_layers(model)
    assert [(layer.name, layer.activation, pytest.approx(layer.omega)) for layer in chain.layers] == expected
    parameters, rng = Parameters(model), np.random.default_rng(1)
    x = rng.uniform(-1, 1, (5, chain.in_size)).astype(np.float32)
    rows = [x[i, 0] if name == "scanned MLP" else x[i] for i in range(5)]
    values = np.stack([np.asarray(parameters.apply(parameters.tree, jnp.asarray(row))).ravel() for row in rows])
    found = chain.outer.scale * evaluate_chain(chain.readings(), x) + chain.outer.shift
    # float32 phases of some hundred radians, and 2e-3 between the two forms of GELU in two layers
    np.testing.assert_allclose(found, values, atol=2e-2 if name == "gelu with erf" else 1e-3)


def test_maps_around_the_layers_are_told_from_them():
    before, after, squash = (read_layers(MODELS[name][0]) for name in ("2x - 1", "y/2 + 1/2", "sigmoid"))
    np.testing.assert_array_equal([before.before.scale, before.before.shift], [[2, 2], [-1, -1]])
    np.testing.assert_array_equal([after.after.scale, after.after.shift], [[0.5] * 3, [0.5] * 3])
    assert squash.squash.activation == "sigmoid"
    assert [layer.gain for layer in read_layers(MODELS["ω first"][0]).layers] == [30.0, 30.0, 1.0]


def test_a_model_whose_numbers_are_traced_is_read():
    apply, params = LIBRARIES["linen"]()
    layers = []
    jax.eval_shape(lambda params: layers.extend(read_layers((apply, params)).layers), params)
    assert [(layer.activation, layer.omega) for layer in layers] == [("sine", 30.0), ("sine", 2.0), ("linear", 1.0)]


def test_weights_outside_of_the_tree_are_read():
    w, v = np.ones((8, 2), np.float32), np.ones((1, 8), np.float32)
    layers = read_layers(lambda x: v @ jnp.sin(5 * (w @ x)), in_size=2).layers
    assert [(layer.activation, layer.omega, layer.bias) for layer in layers] == [
        ("sine", 5.0, None),
        ("linear", 1.0, None),
    ]


class Residual(eqx.nn.MLP):
    def __call__(self, x, *, key=None):
        return super().__call__(x) + x


def mlp(activation, **options) -> eqx.nn.MLP:
    return eqx.nn.MLP(2, 2, 8, 2, activation=activation, key=KEY, **options)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Residual(2, 2, 8, 2, activation=jnp.sin, key=KEY), "Residual combines different activations after 'layers"),
        (mlp(jax.nn.elu), "computes a function of its activations that is not known after 'layers.0.weight'"),
        (mlp(eqx.nn.PReLU()), "MLP .* after 'layers.0.weight', which is not read; initialize its layers one by one"),
        (by_hand(before=lambda x: x * jnp.sin(x)), "computes a function of its activations that is not known of"),
        (by_hand(after=lambda y: y / jnp.linalg.norm(y)), "after '2.0'"),
        (by_hand(after=lambda y: y[::-1]), "returns its channels in another order, or only some of them"),
        (by_hand(after=lambda y: jax.lax.cond(y[0] > 0, jnp.sin, jnp.cos, y)), "computes 'cond' after '2.0'"),
        (by_hand(lambda w, x, b: (w / jnp.linalg.norm(w)) @ x + b), "has weights that are computed from 0.0"),
        (by_hand(activation=lambda z: z), "applies '2.0' to another linear layer without an activation between them"),
        (by_hand(lambda w, x, b: jnp.arange(1.0, 9.0) * (w @ x + b)), "has another ω for each neuron of '0.0'"),
        (by_hand(after=lambda y: {"rgb": y}), "returns a dict, not an array; pass a module that maps a position"),
        (by_hand(after=jnp.zeros_like), "returns what does not depend on the position"),
        (eqx.nn.Sequential([sine(1.0), linear(2, 1)]), "has an activation that does not follow a linear layer"),
        (jnp.matmul, "does not take a position"),
        ({"w": 1}, "model is a dict; pass a module that maps a position"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_named(model, message):
    with pytest.raises(ValueError, match=message):
        read_layers(model)


def test_what_was_read_wrongly_is_refused_at_its_layer(monkeypatch):
    monkeypatch.setattr("uniphase.jax.reading.operations._functions", lambda: {"tanh": np.sin})
    with pytest.raises(ValueError, match=r"computes something else than layer '0\.0'"):
        read_layers(by_hand())
