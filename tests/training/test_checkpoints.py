import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.disks import FULL_DISK
from uniphase.initialization.schemes import sm20
from uniphase.jax.files import load_network, save_network
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import NetworkFile, write_tensors
from uniphase.training.checkpoints import load_state, save_state

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)))


def draw() -> CoordinateMLP:
    return CoordinateMLP(sm20((2, 3), width=8, depth=1), key=jax.random.key(0))


def assert_same(tree, other):
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def _state(seed: int):
    """Every type of array that a run may hold."""
    network = draw()
    leaves = jnp.arange(6.0).reshape(2, 3) + seed
    return {
        "network": jax.tree.map(lambda leaf: leaf + seed, network),
        "optimizer": optax.adam(1e-3).init(network),
        "key": jax.random.key(seed),
        "keys": jax.random.split(jax.random.key(seed, impl="rbg"), 3),
        "data": jax.random.key_data(jax.random.key(seed)),
        "done": jnp.array(seed > 0),
        "step": jnp.int32(seed),
        "half": leaves.astype(jnp.bfloat16),
        "odd": jnp.array([np.nan, -0.0, np.inf, 1e-45], jnp.float32),
        "empty": jnp.zeros((0, 3)),
        "host": np.arange(4).reshape(2, 2).T + 0.5 * seed,
        "nothing": None,
    }


def test_a_state_comes_back_bit_by_bit(tmp_path):
    header = {"step": 7, "history": [1.5, 2.5], "name": "run"}
    save_state(tmp_path / "a", _state(3), header)
    tree, back = load_state(tmp_path / "a", _state(0))
    assert_same(tree, _state(3))
    assert back == header
    assert jax.random.normal(tree["key"]) == jax.random.normal(_state(3)["key"])


def test_a_state_in_double_precision(tmp_path, x64):
    tree = (jnp.arange(3) / 7, jnp.arange(3), optax.adam(1e-3).init(draw()))
    save_state(tmp_path / "a", tree, {})
    assert_same(load_state(tmp_path / "a", tree)[0], tree)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (
            {"a": np.zeros(3), "b": np.zeros(2)},
            r"the checkpoint has nothing, but this run needs float64\[2\] at \['b'\]; resume",
        ),
        ({}, r"the checkpoint has float64\[3\] at \['a'\], but this run needs nothing"),
        ({"c": np.zeros(3)}, r".*float64\[3\] at \['a'\], but this run needs float64\[3\] at \['c'\]"),
        ({"a": np.zeros(4)}, r".*, but this run needs float64\[4\] at \['a'\]"),
        ({"a": np.zeros(3, np.float32)}, r".*, but this run needs float32\[3\] at \['a'\]"),
        ({"a": jax.random.key(0)}, r".*, but this run needs key<fry>\[\] at \['a'\]"),
    ],
)
def test_a_state_of_another_structure(like, message, tmp_path):
    save_state(tmp_path / "a", {"a": np.zeros(3)}, {})
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / 'a'))}: {message}"):
        load_state(tmp_path / "a", like)


def test_a_state_holds_only_arrays(tmp_path):
    with pytest.raises(ValueError, match=r"tree has 5 at \['step'\]; keep only arrays"):
        save_state(tmp_path / "a", {"step": 5}, {})
    with pytest.raises(ValueError, match="the header does not fit JSON"):
        save_state(tmp_path / "a", {}, {"loss": np.inf})


def test_a_network_is_no_state_and_a_state_no_network(tmp_path):
    path = tmp_path / "a"
    save_network(path, NetworkFile.of(draw(), FIELD))
    with pytest.raises(ValueError, match=r"cannot be read as a training state \(its metadata have no uniphase-state\)"):
        load_state(path, np.zeros(3))
    save_state(path, np.zeros(3), {})
    with pytest.raises(ValueError, match=r"cannot be read as a uniphase network \(its metadata have no uniphase\)"):
        load_network(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(tmp_path / 'a'))}: no such file$"):
        load_state(tmp_path / "a", np.zeros(3))


@pytest.mark.parametrize(("owner", "name", "failure"), FULL_DISK)
def test_a_full_disk_leaves_the_old_state(owner, name, failure, tmp_path, monkeypatch):
    path = tmp_path / "a"
    save_state(path, np.zeros(3), {})
    before = path.read_bytes()
    monkeypatch.setattr(owner, name, failure)
    with pytest.raises(OSError, match="No space left on device"):
        save_state(path, np.ones(3), {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("metadata", "tensors", "message"),
    [
        ({"leaves": 5, "header": {}}, {"0": np.zeros(3)}, "'int' object is not iterable"),
        ({"leaves": ["float64[3] at "], "header": 5}, {"0": np.zeros(3)}, "'int' object is not iterable"),
        ({"leaves": ["float64[3] at "], "header": {}}, {"1": np.zeros(3)}, "'0'"),
        (
            {"leaves": ["float64[3] at "], "header": {}},
            {"0": np.zeros(4)},
            "it declares .*3., but has .*4.",
        ),
    ],
)
def test_a_damaged_state_is_refused_in_one_line(tmp_path, metadata, tensors, message):
    write_tensors(tmp_path / "a", tensors, "uniphase-state", metadata)
    with pytest.raises(ValueError, match=f"a: cannot be read as a training state .{message}"):
        load_state(tmp_path / "a", np.zeros(3))
