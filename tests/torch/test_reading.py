import math

import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

from helpers.torch_models import (  # noqa: E402
    FourierFeatures,
    InOneForward,
    OfficialSiren,
    Sine,
    SineLayer,
    Skipping,
    sequential,
)
from uniphase.initialization.moments import prescribe_moments  # noqa: E402
from uniphase.initialization.schemes import SCHEMES, get_scheme  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.reading import read_layers  # noqa: E402

FIX = r"pass the part of it that maps positions .* or its layers as a list"


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
    with pytest.raises(ValueError, match=f"module 'last_layer.activation' .Sigmoid. computes 'sigmoid', .*{FIX}"):
        read_layers(siren_pytorch.SirenNet(2, 16, 3, num_layers=1, final_activation=nn.Sigmoid()))
    with pytest.raises(ValueError, match=f"the model SirenWrapper does not map positions .*{FIX}"):
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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: Skipping(), "the model Skipping computes 'add', which is not a linear layer or a known activation"),
        (lambda: sequential(nn.Sigmoid()), r"module '1' \(Sigmoid\) computes 'sigmoid', which is not"),
        (
            lambda: sequential(nn.Sequential(Sine(), nn.LayerNorm(16))),
            r"module '1.1' \(LayerNorm\) computes 'layer_norm'",
        ),
        (lambda: nn.Sequential(nn.Conv1d(2, 3, 1)), "the model Sequential does not map positions .* .it has no matrix"),
        (
            lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))),
            "module '0' .* computes 'linear' with weights that are not a parameter or buffer",
        ),
        (lambda: sequential(nn.Softmax(dim=-1)), r"module '1' \(Softmax\) computes 'softmax'"),
    ],
)
def test_what_cannot_be_read_is_named(model, message):
    with pytest.raises(ValueError, match=f"{message}.*{FIX}"):
        read_layers(model())


def test_a_model_that_cannot_be_traced():
    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine())

        def forward(self, x):
            return self.net(x) if x.sum() > 0 else self.net(-x)

    with pytest.raises(ValueError, match=f"the model Branching cannot be traced .*{FIX}"):
        read_layers(Branching())


def test_a_reading_that_computes_something_else_is_refused():
    class TwoFaced(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = sequential(Sine())

        def forward(self, x):
            return self.net(x) if torch.compiler.is_exporting() else self.net(2 * x)

    with pytest.raises(ValueError, match=f"TwoFaced was read as the layers net.0, net.2, but these give other.*{FIX}"):
        read_layers(TwoFaced())


def test_layers_can_be_stated():
    model = Skipping()
    chain = read_layers([(model.first.linear, "sine", 30.0), (model.last, "linear", 1.0)])
    assert [(layer.name, layer.omega, layer.role) for layer in chain.layers] == [
        ("0", 30.0, "input"),
        ("1", 1.0, "output"),
    ]
    assert chain.layers[0].weight is model.first.linear.weight
    x = torch.rand(4, 2)
    torch.testing.assert_close(chain(x), model.last(model.first(x)))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], r"model is an empty list; pass a module, or \(linear, activation, omega\) for each layer"),
        ([(nn.Linear(2, 3), "sigmoid", 1.0)], r"layer 0 of the list is \(Linear, 'sigmoid'\); .* one of sine, sincos"),
        (
            [(SineLayer(2, 3, 1.0), "sine", 1.0)],
            r"layer 0 of the list is \(SineLayer, 'sine'\); pass a module",
        ),
    ],
)
def test_stated_layers_are_checked(layers, message):
    with pytest.raises(ValueError, match=message):
        read_layers(layers)
