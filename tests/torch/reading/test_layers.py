import inspect
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

from helpers.torch_models import (  # noqa: E402
    FourierFeatures,
    InOneForward,
    OfficialSiren,
    Sine,
    SineLayer,
    sequential,
)
from uniphase.initialization.moments import prescribe_moments  # noqa: E402
from uniphase.initialization.schemes import SCHEMES, get_scheme  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.reading import read_layers  # noqa: E402


def found(model):
    return [(layer.name, layer.activation, layer.omega) for layer in read_layers(model).layers]


def test_siren_pytorch():
    siren_pytorch = pytest.importorskip("siren_pytorch", reason="siren-pytorch is not installed")
    model = siren_pytorch.SirenNet(2, 16, 3, num_layers=3, w0=2.0, w0_initial=30.0, dropout=0.5)
    assert found(model) == [
        ("layers.0", "sine", 30.0),
        ("layers.1", "sine", 2.0),
        ("layers.2", "sine", 2.0),
        ("last_layer", "linear", 1.0),
    ]
    squashed = read_layers(siren_pytorch.SirenNet(2, 16, 3, num_layers=1, final_activation=nn.Sigmoid()))
    assert squashed.squash.activation == "sigmoid"
    with pytest.raises(ValueError, match=r"the model SirenWrapper does not take positions .* pass a module around it"):
        read_layers(siren_pytorch.SirenWrapper(model, 4, 4))


def test_the_official_structure():
    sines = [(f"net.{i}.linear", "sine", 30.0) for i in range(3)]
    assert found(OfficialSiren()) == [*sines, ("net.3", "linear", 1.0)]


def test_a_sequence_of_modules():
    assert found(sequential(Sine(30.0), Sine(), Sine())) == [
        ("0", "sine", 30.0),
        ("2", "sine", 1.0),
        ("4", "sine", 1.0),
        ("6", "linear", 1.0),
    ]


def test_what_counts_is_what_is_computed():
    chain = read_layers(InOneForward())
    assert [(layer.name, layer.activation, layer.omega, layer.role) for layer in chain.layers] == [
        ("first", "sine", 20.0, "input"),
        ("hidden.0", "sine", 0.5, "hidden"),
        ("hidden.1", "sine", 0.5, "hidden"),
        ("last", "linear", 1.0, "output"),
    ]
    assert (chain.in_size, chain.width, chain.out_size) == (2, 16, 3)


def test_random_fourier_features():
    assert found(FourierFeatures()) == [
        ("B", "sincos", 2 * math.pi),
        ("net.0", "tanh", 1.0),
        ("net.2", "tanh", 1.0),
        ("net.4", "linear", 1.0),
    ]


def test_one_channel_without_its_axis():
    class Squeezed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = SineLayer(2, 16, 30.0), nn.Linear(16, 1)

        def forward(self, x):
            return self.last(self.first(x)).squeeze(-1)

    assert found(Squeezed()) == [("first.linear", "sine", 30.0), ("last", "linear", 1.0)]


def test_one_channel_of_a_vector():
    class Vector(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.w = SineLayer(2, 16, 30.0), nn.Parameter(torch.randn(16))

        def forward(self, x):
            return self.first(x) @ self.w

    chain = read_layers(Vector())
    assert [(layer.name, tuple(layer.weight.shape)) for layer in chain.layers] == [
        ("first.linear", (16, 2)),
        ("w", (1, 16)),
    ]


@pytest.mark.parametrize("channels", [[0, 1], [2, 1, 0], [0, 1, 2, 2]])
def test_channels_must_be_those_of_the_last_layer(channels):
    class Choosing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine(30.0))

        def forward(self, x):
            return self.net(x)[..., channels]

    with pytest.raises(ValueError, match=r"returns its channels in another order, or only some .* e.g. model.net"):
        read_layers(Choosing())


def test_other_activations():
    model = sequential(nn.ReLU(inplace=True), nn.SiLU(), nn.GELU(), nn.GELU(approximate="tanh"), nn.Tanh())
    assert [activation for _, activation, _ in found(model)] == ["relu", "silu", "gelu", "gelu", "tanh", "linear"]


@pytest.mark.parametrize("name", SCHEMES)
def test_networks_from_blueprints(name):
    blueprint = get_scheme(name).blueprint(prescribe_moments(length_scale=[0.1, 0.2]), width=8, depth=2)
    layers = read_layers(CoordinateMLP(blueprint)).layers
    plans = [(plan.role, plan.activation, plan.omega) for plan in blueprint.layers]
    assert [(layer.role, layer.activation, layer.omega) for layer in layers] == plans


def test_tensors_are_the_models_own():
    model = OfficialSiren()
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    for layer, module in zip(read_layers(model).layers, linears, strict=True):
        assert layer.weight is module.weight
        assert layer.bias is module.bias


def test_reading_leaves_no_trace():
    model = sequential(Sine(30.0), nn.Sequential(nn.Dropout(0.9), Sine())).double()
    model[2].eval()
    modes, state, numbers = [m.training for m in model.modules()], torch.get_rng_state(), model.state_dict()
    numbers = {name: tensor.clone() for name, tensor in numbers.items()}
    read_layers(model)
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, numbers[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_nothing_that_forward_does_to_a_model_stays():
    class Busy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine(30.0))
            self.register_buffer("calls", torch.zeros(()))
            self.seen, self.last = [], None

        def forward(self, x):
            self.calls += 1
            self.seen.append(x)
            self.last, self.extra = x, x
            self.net[0].bias.data += 1.0
            return self.net(x + 0 * torch.rand(1).item())

    model = Busy()
    buffer, bias, names = model.calls, model.net[0].bias.detach().clone(), set(vars(model))
    read_layers(model)
    assert model.calls is buffer
    assert (model.calls, model.seen, model.last) == (0, [], None)
    assert set(vars(model)) == names
    assert torch.equal(model.net[0].bias, bias)


def test_lazy_layers_stay_lazy():
    model = nn.Sequential(nn.LazyLinear(16), Sine(30.0), nn.LazyLinear(3))
    with pytest.raises(ValueError, match=r"module '0' .LazyLinear. is lazy: .* e.g. model.torch.zeros.1, 2.."):
        read_layers(model)
    assert all(nn.parameter.is_lazy(parameter) for parameter in model.parameters())
    model(torch.zeros(1, 2))  # as the message says
    assert len(read_layers(model).layers) == 2


def test_models_without_numbers():
    model = OfficialSiren().to("meta")
    assert found(model) == found(OfficialSiren())
    assert all(parameter.is_meta for parameter in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_models_precision(dtype):
    assert found(OfficialSiren().to(dtype)) == found(OfficialSiren())


def test_a_model_that_has_diverged_is_read():
    model = sequential(Sine())
    with torch.no_grad():
        model[0].weight.view(-1)[0] = torch.nan
    assert len(read_layers(model).layers) == 2


def test_another_output_than_that_of_the_layers_is_noticed():
    """What is written through a view, or by a random number, is seen only in the numbers."""

    class ThroughAView(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine(30.0), Sine(30.0))

        def forward(self, x):
            h = torch.sin(30 * self.net[0](x))
            h.view(-1).mul_(2)
            return self.net[4](torch.sin(30 * self.net[2](h)))

    message = r"the model ThroughAView computes 'sin' of something other than what was read"
    with pytest.raises(ValueError, match=f"{message}, which is not read; pass the part of it that maps positions"):
        read_layers(ThroughAView())


def test_what_is_read_of_a_squash_and_of_maps():
    class Mapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine(30.0))

        def forward(self, x):
            return 2 * torch.tanh(0.1 * self.net(2 * x - 1) + 3) - 1

    chain = read_layers(Mapped())
    assert (chain.before.scale.tolist(), chain.before.shift.tolist()) == ([2.0, 2.0], [-1.0, -1.0])
    assert (chain.after.scale.tolist(), chain.after.shift.tolist()) == ([0.1] * 3, [3.0] * 3)
    assert chain.squash.activation == "tanh"
    assert (chain.squash.after.scale.tolist(), chain.squash.after.shift.tolist()) == ([2.0] * 3, [-1.0] * 3)
    mean, covariance = chain.inner_positions(np.array([0.5, 1.0]), np.diag([1.0, 2.0]))
    np.testing.assert_array_equal(mean, [0.0, 1.0])
    np.testing.assert_array_equal(covariance, np.diag([4.0, 8.0]))


def test_something_that_is_no_model():
    unchecked = inspect.unwrap(read_layers)  # without the check of types that tests have
    with pytest.raises(ValueError, match=r"model is a list; pass a torch.nn.Module, or StatedLayers\(model, "):
        unchecked([(nn.Linear(2, 3), "linear", 1.0)])
