import jax
import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, uniform_phase
from uniphase.jax import files as jax_side
from uniphase.jax.network import CoordinateMLP as JaxMLP
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import Saved, read_header

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from uniphase.torch.files import load_network, save_network  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)), extents=((0.0, 0.6), (-1.0, 1.0)), align="corners")
MOMENTS = estimate_moments(FIELD)
BLUEPRINT = uniform_phase(MOMENTS, width=8, depth=1)


def arrays(network) -> dict[str, np.ndarray]:
    if isinstance(network, CoordinateMLP):
        return {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    layers = [{"weight": layer.weight, "bias": layer.bias} for layer in network.layers]
    return {
        f"layers.{i}.{n}": np.asarray(a) for i, layer in enumerate(layers) for n, a in layer.items() if a is not None
    }


def assert_same(network, other):
    ours, theirs = arrays(network), arrays(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], strict=True)


@pytest.mark.parametrize("name", SCHEMES)
def test_files_go_from_either_side_to_the_other(name, tmp_path):
    blueprint, path = get_scheme(name).blueprint(MOMENTS, width=8, depth=1), tmp_path / "a.uniphase"
    network = JaxMLP(blueprint, key=jax.random.key(0))
    jax_side.save_network(path, Saved.of(network, blueprint, FIELD, moments=MOMENTS, training={"steps": 3}))
    saved = load_network(path)
    assert (saved.blueprint, saved.training, saved.domain.shape) == (blueprint, {"steps": 3}, (6, 8))
    assert_same(saved.network, network)
    save_network(tmp_path / "b.uniphase", saved)
    back = jax_side.load_network(tmp_path / "b.uniphase")
    assert_same(back.network, network)


def test_what_it_says_of_itself(tmp_path):
    save_network(tmp_path / "a.uniphase", Saved.of(CoordinateMLP(BLUEPRINT), BLUEPRINT, FIELD))
    assert set(read_header(tmp_path / "a.uniphase")["versions"]) == {"uniphase", "torch", "numpy", "python"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_precision_is_kept(dtype, tmp_path):
    network = CoordinateMLP(BLUEPRINT, dtype=dtype)
    save_network(tmp_path / "a.uniphase", Saved.of(network, BLUEPRINT, FIELD))
    back = load_network(tmp_path / "a.uniphase").network
    assert_same(back, network)
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in back.parameters())


def test_what_is_frozen_stays_so(tmp_path):
    blueprint = get_scheme("tanh-pe").blueprint(MOMENTS, width=8, depth=1)
    save_network(tmp_path / "a.uniphase", Saved.of(CoordinateMLP(blueprint), blueprint, FIELD))
    back = load_network(tmp_path / "a.uniphase", device="cpu").network
    assert [name for name, _ in back.named_buffers()] == ["layers.0.weight"]
    assert back(torch.rand(3, 2)).shape == (3, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoordinateMLP(uniform_phase(MOMENTS, width=9, depth=1)), "the network does not follow the blueprint"),
        (lambda: CoordinateMLP(get_scheme("silu").blueprint(MOMENTS, width=8, depth=1)), "the network does not follow"),
        (lambda: CoordinateMLP(BLUEPRINT).bfloat16(), "layers.0.weight is bfloat16, .*; save network.float()"),
    ],
)
def test_what_is_not_saved(make, message, tmp_path):
    with pytest.raises(ValueError, match=f"a.uniphase: {message}"):
        save_network(tmp_path / "a.uniphase", Saved.of(make(), BLUEPRINT, FIELD))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "a.uniphase").write_bytes(b"weights, as a text\n" * 99)
    with pytest.raises(ValueError, match=r"a.uniphase: cannot be read as a uniphase network .*; get a whole copy"):
        load_network(tmp_path / "a.uniphase")
