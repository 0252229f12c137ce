import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.sharded import train
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


def test_samples_are_visited_in_turn():
    """The second round is in another order, and another key has another one."""
    visit = jax.jit(jax.vmap(lambda key, step: choose(key, 960, 40, step), in_axes=(None, 0)))
    steps = np.asarray(visit(jax.random.key(0), jnp.arange(48)))
    first, second = steps[:24], steps[24:]
    for each in (first, second):
        assert sorted(each.ravel().tolist()) == list(range(960))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, visit(jax.random.key(1), jnp.arange(24)))


def test_samples_that_do_not_fill_a_round_are_left_out_by_turns():
    visit = jax.jit(jax.vmap(lambda step: choose(jax.random.key(0), 23, 4, step)))
    counts = np.bincount(np.asarray(visit(jnp.arange(5 * 200))).ravel(), minlength=23)
    mean = 200 * 20 / 23  # six standard deviations of a binomial law
    assert np.abs(counts - mean).max() < 6 * math.sqrt(200 * (20 / 23) * (3 / 23))


@pytest.mark.parametrize("batch", [8192, 65536])
def test_batches_of_huge_fields_stay_within_int32(batch):
    samples = 2**31 - 5
    for step in (0, 1, 32_000, 2**31 - 1):
        indices = choose(jax.random.key(3), samples, batch, step)
        assert int(indices.min()) >= 0
        assert int(indices.max()) < samples
        assert len(set(indices.tolist())) == batch


SHARDED = """
import sys
import jax
import numpy as np
if len(sys.argv) > 3:  # the number of this process, and where the first one listens
    jax.distributed.initialize(sys.argv[4], num_processes=2, process_id=int(sys.argv[3]))
from helpers.sharded import train
arrays = train(int(sys.argv[2]))
if jax.process_index() == 0:
    np.savez(sys.argv[1], **arrays)
"""
TESTS = Path(__file__).parents[1]


def run_sharded(path, size, *arguments, flags):
    """Train in another process."""
    environment = {
        **os.environ,
        "XLA_FLAGS": flags,
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    return subprocess.Popen([sys.executable, "-c", SHARDED, str(path), str(size), *arguments], env=environment)


# 23² points cannot be shared evenly
@pytest.mark.parametrize(("size", "processes"), [(23, 1), pytest.param(24, 2, marks=pytest.mark.slow)])
def test_two_devices_compute_what_one_does(tmp_path, size, processes):
    """Two devices of one process, or one each of two that talk over the loopback; and the one of the tests."""
    path = tmp_path / "two.npz"
    if processes == 1:  # in the code that users have: without the flags of the tests
        runs = [run_sharded(path, size, flags="--xla_force_host_platform_device_count=2")]
    else:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{listener.getsockname()[1]}"
        flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=1"
        runs = [run_sharded(path, size, str(number), address, flags=flags) for number in range(2)]
    expected = train(size)
    assert [run.wait(timeout=240) for run in runs] == [0] * len(runs)
    with np.load(path) as found:
        assert (int(expected["devices"]), int(found["devices"])) == (1, 2)
        for key in expected:
            if key.startswith("gradient"):  # float32 sums in another order
                np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=1e-5 * np.abs(expected[key]).max())
        np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-3)
        assert float(found["snr"]) == pytest.approx(float(expected["snr"]), abs=3.0)  # other batches, the same fit
