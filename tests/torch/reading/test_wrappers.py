import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import OUTPUT_SCALE, uniform_phase

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import distributed, nn  # noqa: E402

from helpers.torch_models import Sine, sequential  # noqa: E402
from uniphase.torch.initialization import initialize_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.reading import read_layers  # noqa: E402

MOMENTS = prescribe_moments(mean=[1.0, -2.0, 0.5], covariance=[2.0, 0.5, 0.1], length_scale=[0.1, 0.3])
X = torch.rand(5, 2, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def one_process(tmp_path):
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.fixture
def two_processes():
    """The first of two, without the other: nothing is sent."""
    store = pytest.importorskip(
        "torch.testing._internal.distributed.fake_pg", reason="PyTorch has no fake process group"
    ).FakeStore()
    distributed.init_process_group("fake", rank=0, world_size=2, store=store)
    yield
    distributed.destroy_process_group()


def fully_sharded(model, **options):
    wrapper = pytest.importorskip(
        "torch.distributed.fsdp", reason="PyTorch comes without FSDP"
    ).FullyShardedDataParallel
    return wrapper(model, device_id=torch.device("cpu"), **options)


def assert_initialized(model):
    initialize_(model, MOMENTS, generator=torch.Generator().manual_seed(0))
    blueprint = uniform_phase(MOMENTS, width=16, depth=1, output_scale=OUTPUT_SCALE)
    expected = CoordinateMLP(blueprint, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(X), expected(X), rtol=0, atol=1e-4)  # float32 phases of some ten


def test_distributed_data_parallel(one_process):
    model = nn.parallel.DistributedDataParallel(sequential(Sine(30.0), Sine(5.0)))
    assert [layer.name for layer in read_layers(model).layers] == ["0", "2", "4"]
    assert_initialized(model)


@pytest.mark.filterwarnings("ignore:FSDP is switching to use `NO_SHARD`:UserWarning")
@pytest.mark.parametrize("use_orig_params", [True, False])
def test_fully_sharded_with_one_process(one_process, use_orig_params):
    assert_initialized(fully_sharded(sequential(Sine(30.0), Sine(5.0)), use_orig_params=use_orig_params))


def test_shards_are_refused(two_processes):
    plain = sequential(Sine(30.0), Sine(5.0))
    model = fully_sharded(sequential(Sine(30.0), Sine(5.0)), use_orig_params=True)
    with pytest.raises(ValueError, match=r"is sharded over processes, .* before it is sharded"):
        read_layers(model)
    assert_initialized(plain)  # and only then
    fully_sharded(plain)


def test_shards_of_the_newer_form_are_refused(one_process):
    fully_shard = pytest.importorskip("torch.distributed.fsdp", reason="PyTorch comes without FSDP").fully_shard
    mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
    model = sequential(Sine(30.0), Sine(5.0))
    fully_shard(model, mesh=mesh)
    with pytest.raises(ValueError, match=r"'0.weight' is sharded over processes, .* before it is sharded"):
        read_layers(model)


def test_compiled_models():
    part = nn.Sequential(torch.compile(sequential(Sine(30.0), Sine(5.0)), backend="eager"))
    assert [layer.name for layer in read_layers(part).layers] == [f"0._orig_mod.{i}" for i in (0, 2, 4)]
    model = torch.compile(sequential(Sine(30.0), Sine(5.0)), backend="eager")
    assert [layer.name for layer in read_layers(model).layers] == ["0", "2", "4"]
    assert_initialized(model)
