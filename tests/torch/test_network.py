import copy
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, sm20, tanh_pe, uniform_phase

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from uniphase.torch.network import CoordinateMLP  # noqa: E402

MOMENTS = prescribe_moments(mean=[1.0, -2.0], covariance=[[2.0, 0.5], [0.5, 1.0]], length_scale=[0.1, 0.3])


def seeded(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def blueprint(name: str = "uniform-phase", width: int = 16):
    return get_scheme(name).blueprint(MOMENTS, width=width, depth=2)


def test_correlated_laws():
    """Rows and columns have their covariances, within five standard errors of a sample covariance."""
    network = CoordinateMLP(uniform_phase(MOMENTS, width=4096, depth=0), dtype=torch.float64, generator=seeded())
    for samples, covariance in (
        (network.layers[0].weight, MOMENTS.structure_tensor / 2),
        (network.layers[1].weight.T, 2 * MOMENTS.covariance / 4096),
    ):
        found = (samples.T @ samples / 4096).detach().numpy()
        variances = np.diag(covariance)
        error = np.sqrt((np.outer(variances, variances) + covariance**2) / 4096)
        assert (np.abs(found - covariance) < 5 * error).all()


def test_the_state_dict_has_the_names_of_a_file():
    network = CoordinateMLP(blueprint())
    names = [f"layers.{i}.{array}" for i in range(4) for array in ("weight", "bias")]
    assert list(network.state_dict()) == names == [name for name, _ in network.named_parameters()]
    other = CoordinateMLP(blueprint())
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(torch.ones(3, 2)), network(torch.ones(3, 2)))


@pytest.mark.parametrize("name", SCHEMES)
def test_parameters_are_those_of_the_blueprint(name):
    assert sum(p.numel() for p in CoordinateMLP(blueprint(name)).parameters()) == blueprint(name).parameters


def test_the_encoding_is_a_buffer():
    network = CoordinateMLP(tanh_pe((2, 1), width=8, depth=1))
    assert list(network.state_dict())[:2] == ["layers.0.weight", "layers.1.weight"]
    assert [name for name, _ in network.named_buffers()] == ["layers.0.weight"]
    network.requires_grad_(True)
    assert not network.layers[0].weight.requires_grad


def test_any_number_of_batch_axes():
    network, x = CoordinateMLP(blueprint(), dtype=torch.float64), torch.rand(5, 3, 2, dtype=torch.float64)
    y = network(x)
    assert y.shape == (5, 3, 2)
    torch.testing.assert_close(network(x[1, 2]), y[1, 2])


@pytest.mark.parametrize("shape", [(4, 3), (2, 3), (3,)])
def test_positions_of_another_size_are_refused(shape):
    """A row for each position: two rows of three are not three positions."""
    network, found = CoordinateMLP(blueprint()), f"have the shape {re.escape(str(shape))}"
    with pytest.raises(ValueError, match=rf"positions {found}, but the network takes 2 .*; pass \(\*batch, 2\)"):
        network(torch.zeros(shape))
    with pytest.raises(ValueError, match=rf"inputs {found}, but the layer takes 16; pass \(\*batch, 16\)"):
        network.layers[1](torch.zeros(shape))


def test_sizes_are_those_of_the_blueprint():
    network = CoordinateMLP(blueprint())
    assert (network.in_size, network.width, network.out_size) == (2, 16, 2)


def test_seeds_and_global_randomness():
    draws = [CoordinateMLP(blueprint(), generator=seeded(i)).layers[1].weight for i in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    state = torch.get_rng_state()
    CoordinateMLP(blueprint(), generator=seeded())
    assert torch.equal(torch.get_rng_state(), state)


def test_precision_and_device():
    network = CoordinateMLP(blueprint("tanh-pe"), dtype=torch.float64, generator=seeded())
    assert {t.dtype for t in network.state_dict().values()} == {torch.float64}
    assert {t.dtype for t in network.to(torch.float32).state_dict().values()} == {torch.float32}
    shapes = CoordinateMLP(blueprint(), device="meta", generator=seeded())  # drawn where the generator is
    assert shapes(torch.empty(3, 2, device="meta")).shape == (3, 2)
    assert {t.device.type for t in CoordinateMLP(blueprint("tanh-pe")).to("meta").state_dict().values()} == {"meta"}


def test_copies_are_independent():
    network = CoordinateMLP(blueprint(), generator=seeded())
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(twin(torch.ones(3, 2)), network(torch.ones(3, 2)))
        with torch.no_grad():
            twin.layers[1].weight.zero_()
        assert network.layers[1].weight.any()


def test_parameters_are_drawn_again_in_place():
    network = CoordinateMLP(blueprint("tanh-pe"), generator=seeded(1))
    tensors = list(network.state_dict(keep_vars=True).values())
    network.reset_parameters(seeded())
    fresh = CoordinateMLP(blueprint("tanh-pe"), generator=seeded())
    assert all(a is b for a, b in zip(network.state_dict(keep_vars=True).values(), tensors, strict=True))
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), fresh.state_dict().values(), strict=True)
    )
    empty = CoordinateMLP(blueprint("tanh-pe"), device="meta").to_empty(device="cpu")
    for module in empty.modules():  # as wrappers do that give memory to models on the device meta
        if isinstance(module, type(empty.layers[0])):
            module.reset_parameters()
    assert all(tensor.isfinite().all() for tensor in empty.state_dict().values())
    assert empty.layers[-1].weight.any()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # PyTorch's own jacfwd uses it
def test_functional_transformations():
    network, x = CoordinateMLP(blueprint(), dtype=torch.float64, generator=seeded()), torch.tensor([0.2, -0.4]).double()
    parameters = dict(network.named_parameters())
    torch.testing.assert_close(torch.func.functional_call(network, parameters, (x,)), network(x))
    jacobian = torch.func.jacrev(network)(x)
    torch.testing.assert_close(torch.func.jacfwd(network)(x), jacobian)
    torch.testing.assert_close(torch.vmap(network)(x.expand(3, 2)), network(x).expand(3, 2))
    ensemble = [CoordinateMLP(blueprint(), dtype=torch.float64, generator=seeded(i)) for i in range(3)]
    stacked, _ = torch.func.stack_module_state(ensemble)
    outputs = torch.vmap(lambda p: torch.func.functional_call(network, p, (x,)))(stacked)
    torch.testing.assert_close(outputs, torch.stack([member(x) for member in ensemble]))


@pytest.mark.parametrize("name", ["uniform-phase", "tanh-pe", "silu"])
def test_gradients_of_gradients(name):
    network = CoordinateMLP(blueprint(name), dtype=torch.float64, generator=seeded())
    x = torch.tensor([[0.2, -0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(network, (x,))
    (slope,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    slope.square().sum().backward()
    assert all(parameter.grad is not None for parameter in [*network.parameters()][:-1])  # the last bias has no slope


def test_it_compiles_without_a_break():
    """Forward and backward, in a process of its own, where no checks of types are woven into the functions."""
    program = (
        "import torch, uniphase, uniphase.torch\n"
        "torch.set_num_threads(1)\n"
        "network = uniphase.torch.CoordinateMLP(uniphase.tanh_pe((2, 1), width=16, depth=1))\n"
        "compiled, x = torch.compile(network, fullgraph=True, backend='aot_eager'), torch.rand(8, 2)\n"
        "compiled(x).sum().backward()\n"
        "print(torch.allclose(compiled(x), network(x)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_it_is_exported_for_any_number_of_positions():
    network = CoordinateMLP(blueprint("tanh-pe"), generator=seeded())
    shapes = ({0: torch.export.Dim("n")},)
    program = torch.export.export(network, (torch.rand(5, 2),), dynamic_shapes=shapes).module()
    assert torch.equal(program(torch.ones(9, 2)), network(torch.ones(9, 2)))


def test_it_prints_its_layers():
    text = str(CoordinateMLP(sm20((2, 1), width=8, depth=1)))
    assert "(0): Layer(2 → 8, sine, omega=82.0832, bias=True)" in text
    assert "(2): Layer(8 → 1, linear, omega=1, bias=False)" in text
