import os
import subprocess
import sys

import numpy as np
import pytest

from uniphase.initialization.schemes import get_scheme
from uniphase.recipe import Recipe
from uniphase.signals.fields import Grid
from uniphase.training.memory import fit_memory, free_memory, in_words

# A fit in a process of its own, compiled as for users.
MEASURED = """
import sys
import jax, numpy as np
from uniphase.initialization.moments import estimate_moments
from uniphase.jax.network import CoordinateMLP
from uniphase.recipe import Recipe, default_blueprint
from uniphase.signals.fields import Grid
from uniphase.training.fit import fit
from uniphase.training.memory import fit_memory

def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(key))

side, width = map(int, sys.argv[1:])
field = Grid(np.random.default_rng(0).random((side, side, 3), dtype=np.float32), medium="rgb")
blueprint = default_blueprint(field, estimate_moments(field), width=width, depth=3)
network = CoordinateMLP(blueprint, key=jax.random.key(0))
recipe = Recipe("muon", 0.01, 1.0, 2, 4096)
jax.block_until_ready(jax.tree.leaves(network)[0])
before = memory("VmRSS")
fit(network, field, recipe=recipe)
print(memory("VmHWM") - before, fit_memory(field, blueprint, recipe).total)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say what a process takes")
@pytest.mark.parametrize(("side", "width"), [(1000, 64), (64, 256)])
def test_the_estimate_is_what_a_fit_takes(side, width):
    command = [sys.executable, "-c", MEASURED, str(side), str(width)]
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=usual)
    found, expected = map(int, done.stdout.split())
    assert found == pytest.approx(expected, rel=0.3)


def test_memory_grows_with_the_samples_the_network_and_the_batch():
    def estimate(side: int = 64, width: int = 32, batch: int = 1024):
        field = Grid(np.broadcast_to(np.float32(0), (side, side, 1)), value_range=(0.0, 1.0))
        return fit_memory(
            field, get_scheme("relu").blueprint((2, 1), width=width, depth=1), Recipe("adam", 1.0, 1.0, 1, batch)
        )

    assert estimate(side=8192).samples - estimate().samples > 8192**2 * 4
    assert estimate(side=8192).network == estimate().network
    assert estimate(width=2048).network - estimate().network > 2048**2 * 4
    assert estimate(batch=1 << 20).samples - estimate().samples > (1 << 20) * 4 * 3


def test_free_memory_and_sizes_in_words():
    assert free_memory() is None or free_memory() > 1 << 20
    assert [in_words(size) for size in (0, 999, 1500, 23_456_789, 9_940_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "23 MB",
        "9.9 GB",
    ]
