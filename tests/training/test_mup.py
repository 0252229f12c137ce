import dataclasses

import jax
import numpy as np
import optax
import pytest

from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.schemes import get_scheme, sm20, tanh_pe
from uniphase.jax.network import CoordinateMLP
from uniphase.training.mup import Rates, mup_output, mup_rates, role_rates, scale_by_roles

NETWORK = CoordinateMLP(sm20((2, 1), width=16, depth=2), key=jax.random.key(0))


def test_hidden_and_output_weights_slow_down_with_the_width():
    assert mup_rates(1e-3, width=256, base_width=64) == Rates(1e-3, 2.5e-4, 2.5e-4, 1e-3)
    assert mup_rates(1e-3, width=16, base_width=64) == Rates(1e-3, 4e-3, 4e-3, 1e-3)


def test_at_the_base_width_nothing_is_scaled():
    assert mup_rates(3e-4, width=64, base_width=64) == Rates.uniform(3e-4)
    np.testing.assert_array_equal(mup_output(NETWORK, base_width=16).layers[-1].weight, NETWORK.layers[-1].weight)


def test_only_the_output_weights_are_rescaled():
    """The variance of the output falls by N₀/N, as that of the weights."""
    scaled = mup_output(NETWORK, base_width=4)
    np.testing.assert_array_equal(scaled.layers[-1].weight, NETWORK.layers[-1].weight / 2)
    for before, after in zip(NETWORK.layers[:-1], scaled.layers[:-1], strict=True):
        np.testing.assert_array_equal(after.weight, before.weight)


@pytest.mark.parametrize("scheme", ["uniform-phase", "sm20", "relu"])
def test_every_array_has_the_rate_of_its_role(scheme):
    from uniphase.initialization.moments import prescribe_moments

    blueprint = get_scheme(scheme).blueprint(prescribe_moments(length_scale=[0.1, 0.1]), width=8, depth=2)
    tree = role_rates(CoordinateMLP(blueprint, key=jax.random.key(0)), Rates(1.0, 2.0, 3.0, 4.0))
    assert [layer.weight for layer in tree.layers] == [1.0, 2.0, 2.0, 3.0]
    assert {layer.bias for layer in tree.layers} <= {4.0, None}


def test_a_frozen_encoding_does_not_move():
    network = CoordinateMLP(tanh_pe((2, 1), width=8, depth=1), key=jax.random.key(0))
    assert role_rates(network, Rates.uniform(1.0)).layers[0].weight == 0


def test_neither_do_the_biases_of_a_frozen_layer():
    plan = dataclasses.replace(sm20((2, 1), width=8, depth=1).layers[0], trainable=False)
    frozen = Blueprint("frozen", (plan, *sm20((2, 1), width=8, depth=1).layers[1:]))
    tree = role_rates(CoordinateMLP(frozen, key=jax.random.key(0)), Rates.uniform(1.0))
    assert [layer.bias for layer in tree.layers] == [0.0, 1.0, None]


def test_one_rate_for_all_is_the_rate_of_optax():
    gradients = jax.tree.map(lambda a: a + 1, NETWORK)
    by_role, plain = scale_by_roles(NETWORK, Rates.uniform(0.5)), optax.scale_by_learning_rate(0.5)
    ours, _ = by_role.update(gradients, by_role.init(NETWORK))
    theirs, _ = plain.update(gradients, plain.init(NETWORK))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "call", [lambda: mup_rates(1.0, width=0, base_width=8), lambda: mup_output(NETWORK, base_width=0)]
)
def test_widths_are_positive(call):
    with pytest.raises(ValueError, match="width is 0; it must be at least 1"):
        call()
