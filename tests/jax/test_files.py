import json
import pickle
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from helpers.disks import FULL_DISK
from helpers.ten_lines import TEN_LINES
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, sm20, uniform_phase
from uniphase.jax.files import load_network, save_network
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate
from uniphase.storage.network_file import Domain, NetworkFile, read_header

FIELD = Grid(
    np.random.default_rng(0).uniform(size=(6, 8, 3)), extents=((0.0, 0.6), (-1.0, 1.0)), align="corners", medium="rgb"
)
MOMENTS = estimate_moments(FIELD)
BLUEPRINT = uniform_phase(MOMENTS, width=8, depth=1)


@eqx.filter_jit
def draw(blueprint, dtype=None):
    return CoordinateMLP(blueprint, dtype=dtype, key=jax.random.key(0))


def saved(**options) -> NetworkFile:
    return NetworkFile.of(draw(BLUEPRINT), FIELD, blueprint=BLUEPRINT, **options)


@pytest.fixture
def path(tmp_path) -> Path:
    save_network(tmp_path / "field.uniphase", saved())
    return tmp_path / "field.uniphase"


def assert_same(tree, other):
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        assert type(a) is type(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def rewrite(path: Path, tensors=None, **header):
    """Change a file as only a program with a mistake, or of another version, would."""
    entries = read_header(path) | header
    entries = {key: value for key, value in entries.items() if value is not ...}
    save_file(load_file(path) | (tensors or {}), path, {"uniphase": json.dumps(entries)})


@pytest.mark.parametrize("name", SCHEMES)
def test_a_network_comes_back_as_it_was(name, tmp_path):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=8, depth=1)
    network = draw(blueprint)
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD, blueprint=blueprint))
    back = load_network(str(tmp_path / "a.uniphase"))
    assert back.blueprint == blueprint
    assert_same(back.network, network)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_network_is_saved_without_its_blueprint(name, tmp_path):
    network = draw(get_scheme(name).blueprint(MOMENTS, width=8, depth=1))
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD))
    back = load_network(tmp_path / "a.uniphase")
    assert_same(back.network, network)
    assert back.blueprint.scheme == "given"
    with pytest.raises(ValueError, match="these weights were given, so there is no distribution to draw them from"):
        CoordinateMLP(back.blueprint, key=jax.random.key(0))


def test_all_that_is_known_comes_back(tmp_path):
    metrics = evaluate(0.9 * FIELD.values, FIELD)
    training = {"optimizer": "adam", "steps": 10, "loss": np.float32(0.5), "losses": np.arange(3.0)}
    save_network(tmp_path / "a.uniphase", saved(moments=MOMENTS, metrics=metrics, training=training))
    back = load_network(tmp_path / "a.uniphase")
    assert back.domain == Domain((6, 8), FIELD.extents, "corners")
    assert (back.medium, back.rate, back.value_range) == ("rgb", None, (0.0, 1.0))
    for name in ("mean", "covariance", "structure_tensor"):
        np.testing.assert_array_equal(getattr(back.moments, name), getattr(MOMENTS, name))
    assert back.moments.epsilon == MOMENTS.epsilon
    assert back.metrics == metrics.to_dict()
    assert back.training == {"optimizer": "adam", "steps": 10, "loss": 0.5, "losses": [0, 1, 2]}
    assert set(back.versions) == {"uniphase", "jax", "numpy", "python"}


def test_a_sound_and_scattered_points(tmp_path):
    sound = Grid(np.linspace(-0.5, 0.5, 9)[:, None], extents=(-100.0, 100.0), medium="sound", rate=4000.0)
    points = Points([[0.0, 5.0], [1.0, 4.0], [0.5, 7.0]], [1.0, 2.0, 3.0])
    for field, domain, rest in (
        (sound, Domain((9,), ((-100.0, 100.0),), "centers"), ("sound", 4000.0, (-1.0, 1.0))),
        (points, Domain(None, ((0.0, 1.0), (4.0, 7.0)), "corners"), (None, None, (1.0, 3.0))),
    ):
        blueprint = sm20((field.in_size, 1), width=8, depth=1)
        save_network(tmp_path / "a.uniphase", NetworkFile.of(draw(blueprint), field, blueprint=blueprint))
        back = load_network(tmp_path / "a.uniphase")
        assert back.domain == domain
        assert (back.medium, back.rate, back.value_range) == rest
        assert (back.moments, back.metrics, back.training) == (None, None, {})


def test_other_programs_can_read_it(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    x = FIELD.coordinates().astype(np.float32)
    scope = {"x": x}
    exec(TEN_LINES, scope)
    assert len([line for line in TEN_LINES.splitlines() if line]) <= 10
    expected = jax.vmap(draw(BLUEPRINT))(jnp.asarray(x))
    np.testing.assert_allclose(scope["x"], expected, rtol=0, atol=1e-5)  # float32 phases of up to 100


def test_tensors_are_named_by_their_place(path):
    shapes = {name: tensor.shape for name, tensor in load_file(path).items()}
    assert shapes == {
        **{"layers.0.weight": (8, 2), "layers.0.bias": (8,)},
        **{"layers.1.weight": (8, 8), "layers.1.bias": (8,)},
        **{"layers.2.weight": (3, 8), "layers.2.bias": (3,)},
    }


def test_double_precision_needs_to_be_enabled(tmp_path):
    with jax.enable_x64(True):
        network = draw(BLUEPRINT)
        save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD, blueprint=BLUEPRINT))
        assert_same(load_network(tmp_path / "a.uniphase").network, network)
    with pytest.raises(ValueError, match="is float64, for which jax_enable_x64 must be set"):
        load_network(tmp_path / "a.uniphase")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_diverged_network_is_not_saved(path, value):
    before = path.read_bytes()
    broken = eqx.tree_at(lambda n: n.layers[1].bias, draw(BLUEPRINT), jnp.full(8, value))
    with pytest.raises(ValueError, match=r"NaN or infinite numbers in layers.1.bias; save it before it diverges"):
        save_network(path, NetworkFile.of(broken, FIELD, blueprint=BLUEPRINT))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "blueprint",
    [
        uniform_phase(MOMENTS, width=9, depth=1),
        uniform_phase(MOMENTS, width=8, depth=2),
        get_scheme("silu").blueprint(MOMENTS, width=8, depth=1),
        get_scheme("sm20").blueprint(MOMENTS, width=8, depth=1, official_output=True),
    ],
)
def test_a_network_of_another_blueprint_is_not_saved(blueprint, tmp_path):
    with pytest.raises(ValueError, match=r"a.uniphase: the network does not match the blueprint; pass the right one"):
        save_network(tmp_path / "a.uniphase", NetworkFile.of(draw(BLUEPRINT), FIELD, blueprint=blueprint))


@pytest.mark.parametrize("training", [{"loss": np.nan}, {"optimizer": object()}])
def test_a_header_that_json_cannot_hold(training, tmp_path):
    with pytest.raises(ValueError, match=r"a.uniphase: the header does not fit JSON .*; use strings, finite numbers"):
        save_network(tmp_path / "a.uniphase", saved(training=training))
    assert list(tmp_path.iterdir()) == []


def _replace(path, content):
    path.unlink()
    path.mkdir() if content is None else path.write_bytes(content)


_DAMAGE = [
    (lambda path: _replace(path, None), "a directory, not a uniphase network; pass the path of a file"),
    (lambda path: _replace(path, b""), "an empty file, not a uniphase network; get a whole copy"),
    (lambda path: _replace(path, b"weights, as a text\n" * 99), "cannot be read as a uniphase network .*; get a whole"),
    (lambda path: _replace(path, pickle.dumps([1.0] * 99)), "cannot be read as a uniphase network"),
    (lambda path: _replace(path, path.read_bytes()[:-1]), "cannot be read as a uniphase network .*not fully covered"),
    (lambda path: _replace(path, path.read_bytes()[:100]), "cannot be read as a uniphase network"),
    (lambda path: save_file({"a": np.zeros(3)}, path), r".*\(its metadata have no uniphase\); get a whole copy"),
    (lambda path: save_file({}, path, {"uniphase-state": "{}"}), r".*\(its metadata have no uniphase\)"),
    (lambda path: save_file({}, path, {"uniphase": "not JSON"}), ".*Expecting value"),
    (lambda path: save_file({}, path, {"uniphase": "{}"}), r".*\(its header has no format\)"),
    (lambda path: save_file({}, path, {"uniphase": "[1]"}), "cannot be read as a uniphase network"),
    (lambda path: rewrite(path, format=3), "its format is 3, but this version reads up to 2; upgrade uniphase$"),
    (lambda path: rewrite(path, domain=...), r".*\(its header has no domain\)"),
    (lambda path: rewrite(path, domain={"shape": None}), "cannot be read as a uniphase network .*extents"),
    (lambda path: rewrite(path, blueprint={"scheme": "a"}), r".*\(a blueprint has the keys scheme; it must have"),
    (
        lambda path: rewrite(path, {"layers.0.weight": np.zeros((8, 3))}),
        r".*\(its tensor layers.0.weight has the shape \(8, 3\), but the blueprint says \(8, 2\)\)",
    ),
    (
        lambda path: rewrite(path, {"layers.3.weight": np.zeros((8, 3))}),
        r".*\(its tensor layers.3.weight has the shape \(8, 3\), but the blueprint says None\)",
    ),
    (
        lambda path: rewrite(path, blueprint=uniform_phase(MOMENTS, width=8, depth=2).to_dict()),
        r".*\(its tensor layers.2.weight has the shape \(3, 8\), but the blueprint says \(8, 8\)\)",
    ),
    (
        lambda path: rewrite(path, {"layers.1.bias": np.full(8, np.nan, np.float32)}),
        r".*\(its tensor layers.1.bias does not hold finite numbers\)",
    ),
    (
        lambda path: rewrite(path, {"layers.1.bias": np.zeros(8, np.int32)}),
        r".*\(its tensor layers.1.bias does not hold finite numbers\)",
    ),
]


@pytest.mark.parametrize(("damage", "message"), _DAMAGE)
def test_a_bad_file_is_told_in_one_line(path, damage, message):
    damage(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        load_network(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path):
    for function in (load_network, read_header):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(tmp_path / 'a'))}: no such file$"):
            function(tmp_path / "a")


@pytest.mark.parametrize(("owner", "name", "failure"), FULL_DISK)
def test_a_full_disk_leaves_the_old_file(owner, name, failure, path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(owner, name, failure)
    with pytest.raises(OSError, match="No space left on device"):
        save_network(path, saved())
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
