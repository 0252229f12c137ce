import functools
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uniphase.training.identity import identify


class Plain:
    def __init__(self, values):
        self.values = values


def scaled(factor):
    return lambda x: factor * x


PAIRS = {
    "numbers": (1, 2),
    "types": (1, 1.0),
    "texts": ("ab", "abc"),
    "lists": ([1, [2]], [[1], 2]),
    "mappings": ({"a": 1}, {"a": 2}),
    "sets": (frozenset("ab"), frozenset("ac")),
    "arrays": (np.arange(3), np.arange(3) + 1),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "JAX arrays": (jnp.zeros(2), jnp.ones(2)),
    "keys": (jax.random.key(0), jax.random.key(1)),
    "objects": (Plain(np.zeros(2)), Plain(np.ones(2))),
    "functions": (lambda x: jnp.sin(30 * x), lambda x: jnp.sin(60 * x)),
    "closures": (scaled(2.0), scaled(3.0)),
    "closures over arrays": (scaled(np.zeros(2)), scaled(np.ones(2))),
    "defaults": (lambda x, a=1: x, lambda x, a=2: x),
    "partial functions": (functools.partial(max, 1), functools.partial(max, 2)),
    "methods": (Plain(1).__init__, Plain(2).__init__),
    "compiled functions": (jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)),
    "functions of JAX": (jax.nn.relu, jax.nn.silu),
    "optimizers": (optax.adam(1e-3), optax.adam(1e-1)),
    "schedules": (optax.adam(optax.cosine_decay_schedule(0.1, 9)), optax.adam(optax.cosine_decay_schedule(0.1, 8))),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_computes_other_things_has_another_identity(pair):
    first, second = pair
    assert identify(first) == identify(first)
    assert identify(first) != identify(second)


def test_equal_arrays_are_the_same_wherever_they_are():
    assert identify([np.ones(3, np.float32)] * 2) == identify([np.ones(3, np.float32), jnp.ones(3, jnp.float32)])


def test_an_object_that_contains_itself():
    circle = [1]
    circle.append(circle)
    assert identify(circle) == identify(circle)


def test_an_object_may_say_what_tells_it_from_others():
    class Named:
        def __init__(self, name, cache):
            self.name, self.cache = name, cache

        def identity(self):
            return self.name

    assert identify(Named("a", 1)) == identify(Named("a", 2))
    assert identify(Named("a", 1)) != identify(Named("b", 1))


PROGRAM = """
import equinox as eqx, jax, jax.numpy as jnp, optax
from uniphase.training.identity import identify
functions = jax.nn.relu, jnp.sin, lambda x: 2 * x
networks = [eqx.nn.MLP(2, 1, 4, 2, activation=function, key=jax.random.key(0)) for function in functions]
print(identify(networks, optax.adam(1e-3), {"a", "b", "c"}))
"""


def test_it_is_the_same_in_another_process():
    """Neither addresses in memory nor the order of sets come in."""
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    network = eqx.nn.MLP(2, 1, 4, 2, key=jax.random.key(0))
    other = eqx.tree_at(lambda tree: tree.layers[0].bias, network, jnp.ones(4))
    assert identify(network) != identify(other)
