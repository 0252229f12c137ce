import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, uniform_phase
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import NetworkFile, read_header

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from uniphase.torch.files import load_network, save_network  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)), extents=((0.0, 0.6), (-1.0, 1.0)), align="corners")
MOMENTS = estimate_moments(FIELD)
BLUEPRINT = uniform_phase(MOMENTS, width=8, depth=1)


def assert_same(network, other):
    ours, theirs = network.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        np.testing.assert_array_equal(tensor.numpy(), theirs[name].numpy(), strict=True)


def test_what_it_says_of_itself(tmp_path):
    save_network(tmp_path / "a.uniphase", NetworkFile.of(CoordinateMLP(BLUEPRINT), FIELD, blueprint=BLUEPRINT))
    assert set(read_header(tmp_path / "a.uniphase")["versions"]) == {"uniphase", "torch", "numpy", "python"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_precision_is_kept(dtype, tmp_path):
    network = CoordinateMLP(BLUEPRINT, dtype=dtype)
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD, blueprint=BLUEPRINT))
    back = load_network(tmp_path / "a.uniphase").network
    assert_same(back, network)
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in back.parameters())


def test_no_blueprint_is_needed(tmp_path):
    network = CoordinateMLP(BLUEPRINT)
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD))
    file = load_network(tmp_path / "a.uniphase")
    assert_same(file.network, network)
    assert str(file.blueprint.layers[0].weight) == "given"
    x = torch.rand(5, 2)
    assert torch.equal(file.network(x), network(x))
    with pytest.raises(ValueError, match="these weights were given, so there is no distribution"):
        file.network.reset_parameters()


def test_what_was_read_can_be_drawn_again(tmp_path):
    save_network(tmp_path / "a.uniphase", NetworkFile.of(CoordinateMLP(BLUEPRINT), FIELD, blueprint=BLUEPRINT))
    read = load_network(tmp_path / "a.uniphase").network
    read.reset_parameters(torch.Generator().manual_seed(0))
    assert_same(read, CoordinateMLP(BLUEPRINT, generator=torch.Generator().manual_seed(0)))


def test_what_is_frozen_stays_so(tmp_path):
    blueprint = get_scheme("tanh-pe").blueprint(MOMENTS, width=8, depth=1)
    save_network(tmp_path / "a.uniphase", NetworkFile.of(CoordinateMLP(blueprint), FIELD, blueprint=blueprint))
    back = load_network(tmp_path / "a.uniphase", device="cpu").network
    assert [name for name, _ in back.named_buffers()] == ["layers.0.weight"]
    assert back(torch.rand(3, 2)).shape == (3, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoordinateMLP(uniform_phase(MOMENTS, width=9, depth=1)), "the network does not match the blueprint"),
        (lambda: CoordinateMLP(get_scheme("silu").blueprint(MOMENTS, width=8, depth=1)), "the network does not match"),
        (lambda: CoordinateMLP(BLUEPRINT).bfloat16(), "layers.0.weight is bfloat16, .*; save network.float()"),
    ],
)
def test_what_is_not_saved(make, message, tmp_path):
    with pytest.raises(ValueError, match=f"a.uniphase: {message}"):
        save_network(tmp_path / "a.uniphase", NetworkFile.of(make(), FIELD, blueprint=BLUEPRINT))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "a.uniphase").write_bytes(b"weights, as a text\n" * 99)
    with pytest.raises(ValueError, match=r"a.uniphase: cannot be read as a uniphase network .*; get a whole copy"):
        load_network(tmp_path / "a.uniphase")


@pytest.mark.parametrize("name", SCHEMES)
def test_a_network_is_saved_without_its_blueprint(name, tmp_path):
    network = CoordinateMLP(get_scheme(name).blueprint(MOMENTS, width=8, depth=1))
    save_network(tmp_path / "a.uniphase", NetworkFile.of(network, FIELD))
    back = load_network(tmp_path / "a.uniphase").network
    assert [layer.trainable for layer in back.layers] == [layer.trainable for layer in network.layers]
    assert dict(back.named_parameters()).keys() == dict(network.named_parameters()).keys()
    for name, tensor in network.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor)
