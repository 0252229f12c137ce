import math
import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.signals.fields import Grid, Points
from uniphase.training.sampling import Samples, choose, cut


@pytest.mark.parametrize("field", [
    Grid(np.arange(24.0).reshape(4, 6, 1), extents=((0.0, 1.0), (2.0, 5.0)), align="corners"),
    Points(np.random.default_rng(0).normal(size=(24, 2)), np.arange(24.0)),
], ids=["grid", "points"])  # fmt: skip
def test_samples_are_those_of_the_field(field):
    samples = Samples.of(field, jnp.dtype("float32"))
    positions, values = samples.at(jnp.array([3, 17, 8]))
    np.testing.assert_allclose(positions, field.coordinates()[[3, 17, 8]], rtol=1e-6)
    np.testing.assert_array_equal(values, field.flat_values()[[3, 17, 8]])


@pytest.mark.parametrize("size", [10, 100, 10**9])
def test_a_batch_in_blocks_has_every_observation_once(size):
    samples = Samples.of(Grid(np.zeros((50, 1))), jnp.dtype("float32"))
    batch = samples.draw(jax.random.key(0), size)
    drawn = len(batch[0])
    assert drawn == min(size, 50)
    (indices, weights), counted = cut(batch, drawn, 8)
    assert indices.shape == weights.shape
    assert indices.shape[1] <= 8
    counted = jnp.ones(weights.shape) if counted is None else counted
    assert float((weights * counted).sum()) == drawn  # each weighs 1
    assert sorted(indices[counted > 0].tolist()) == sorted(batch[0].tolist())


@pytest.mark.parametrize(("samples", "batch"), [(1000, 100), (1003, 100), (5000, 3000), (7, 7)])
def test_batches_are_valid_and_cover_everything_evenly(samples, batch):
    draws = 400
    chosen = jax.vmap(lambda key: choose(key, samples, batch))(jax.random.split(jax.random.key(0), draws))
    assert chosen.shape == (draws, batch)
    assert int(chosen.min()) >= 0
    assert int(chosen.max()) < samples
    assert all(len(set(row)) == batch for row in np.asarray(chosen).tolist())  # no sample twice in a batch
    counts = np.bincount(np.ravel(chosen), minlength=samples)
    expected = draws * batch / samples
    # each sample is chosen at most once a draw: a count is Binomial, and six of its deviations cover all of them
    assert np.abs(counts - expected).max() <= 6 * math.sqrt(expected * (1 - batch / samples)) + 1e-9


def test_batches_of_huge_fields_stay_within_int32():
    samples = 2**31 - 5
    indices = choose(jax.random.key(3), samples, 8192)
    assert int(indices.min()) >= 0
    assert int(indices.max()) < samples


SHARDED = """
import sys
import jax
import numpy as np
if len(sys.argv) > 3:  # the number of this process, and where the first one listens
    jax.distributed.initialize(sys.argv[4], num_processes=2, process_id=int(sys.argv[3]))
import equinox as eqx
import uniphase as up
import uniphase.training.sampling
from uniphase.training.fit import RecipeRule
from uniphase.training.sampling import replicate
from uniphase.training.step import Problem, loss_and_gradients, split_network

field = up.load("camera", size=int(sys.argv[2]))
if sys.argv[2] == "23":
    field = up.Points(field.coordinates(), field.values.reshape(-1, 1))
moments = up.estimate_moments(field)
network = up.CoordinateMLP(up.uniform_phase(moments, width=16, depth=2), key=jax.random.key(0))
recipe = up.Recipe("adam", 1e-3, 1.0, 20, 10**9)
uniphase.training.sampling._BLOCK_CPU = 100 * 16
parameters, frozen, static = replicate(split_network(network))
term = up.Values(field, moments).prepare(np.dtype("float32"))
problem = Problem((term,), frozen, static, None, RecipeRule("adam", None), recipe.batch)
loss, gradient = eqx.filter_jit(loss_and_gradients)(problem, parameters, frozen, jax.random.key(0))
fitted = up.fit(network, field, recipe=recipe, moments=moments)
partial = up.fit(network, field, recipe=up.Recipe("muon", 0.05, 0.01, 100, 128), moments=moments)
if jax.process_index() == 0:
    arrays = [np.asarray(leaf) for leaf in (loss, *jax.tree.leaves(gradient))]
    np.savez(sys.argv[1], *arrays, losses=fitted.losses, snr=partial.metrics.snr_db, devices=jax.device_count())
"""


def run_sharded(path, size, *arguments, devices=1):
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    return subprocess.Popen([sys.executable, "-c", SHARDED, str(path), str(size), *arguments], env=environment)


@pytest.mark.parametrize(("size", "processes"), [(23, 1), (24, 2)])  # 23² points cannot be shared evenly
def test_two_devices_compute_what_one_does(tmp_path, size, processes):
    """Two devices of one process, or one each of two that talk over the loopback."""
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    runs = [run_sharded(one, size)]
    if processes == 1:
        runs.append(run_sharded(two, size, devices=2))
    else:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{listener.getsockname()[1]}"
        runs += [run_sharded(two, size, str(number), address) for number in range(2)]
    assert [run.wait(timeout=240) for run in runs] == [0] * len(runs)
    with np.load(one) as expected, np.load(two) as found:
        assert (int(expected["devices"]), int(found["devices"])) == (1, 2)
        for key in expected.files:
            if key.startswith("arr_"):  # float32 sums in another order
                np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=1e-5 * np.abs(expected[key]).max())
        np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-3)
        assert float(found["snr"]) == pytest.approx(float(expected["snr"]), abs=3.0)  # other batches, the same fit
