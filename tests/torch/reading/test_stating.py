import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

from helpers.torch_models import OfficialSiren, Sine, SineLayer, Skipping, sequential  # noqa: E402
from uniphase.torch.reading import StatedLayers, read_layers  # noqa: E402


def stated(model, *layers):
    return read_layers(StatedLayers(model, layers))


def test_a_list_that_is_the_model():
    model = OfficialSiren()
    *sines, last = model.net
    chain = stated(model, *((layer.linear, "sine", 30.0) for layer in sines), (last, "linear", 1.0))
    assert [(layer.name, layer.omega, layer.role) for layer in chain.layers] == [
        ("0", 30.0, "input"),
        ("1", 30.0, "hidden"),
        ("2", 30.0, "hidden"),
        ("3", 1.0, "output"),
    ]
    assert chain.layers[0].weight is sines[0].linear.weight
    x = torch.rand(4, 2)
    torch.testing.assert_close(chain(x), model(x)[0])


@pytest.mark.parametrize(
    ("omegas", "first"),
    [
        ((3.0, 5.0, 1.0), r"gives other inputs to its layers than layer 0 of the list \(2 → 16, sine, omega 3\)"),
        ((30.0, 4.0, 1.0), r"gives other inputs to its layers than layer 1 of the list \(16 → 16, sine, omega 4\)"),
        ((30.0, 5.0, 2.0), r"returns something else than layer 2 of the list \(16 → 3, linear, omega 2\)"),
    ],
)
def test_the_first_layer_that_deviates_is_named(omegas, first):
    model = sequential(Sine(30.0), Sine(5.0))
    layers = [(model[0], "sine", omegas[0]), (model[2], "sine", omegas[1]), (model[4], "linear", omegas[2])]
    with pytest.raises(ValueError, match=rf"the list of layers is not the model: the model {first}; correct the list"):
        stated(model, *layers)
    stated(model, (model[0], "sine", 30.0), (model[2], "sine", 5.0), (model[4], "linear", 1.0))  # corrected


def test_a_residual_model_is_no_list():
    model = Skipping()
    layers = [(model.first.linear, "sine", 30.0), (model.block.linear, "sine", 30.0), (model.last, "linear", 1.0)]
    with pytest.raises(ValueError, match=r"gives other inputs to its layers than layer 1 of the list"):
        stated(model, *layers)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], r"layers is an empty list; pass \(linear, activation, omega\) for each layer"),
        ([(nn.Linear(2, 3), "step", 1.0)], r"layer 0 of the list is \(Linear, 'step', 1.0\); .* one of sine, sincos"),
        ([(nn.Linear(2, 3), "sine", 0.0)], r"'sine', 0.0\); .* a factor that is not zero"),
        ([(SineLayer(2, 3, 1.0), "sine", 1.0)], r"layer 0 of the list is \(SineLayer, 'sine', 1.0\); pass a module"),
        ([(nn.Linear(5, 3), "linear", 1.0)], r"layer 0 of the list takes 5 inputs, but no matrix of the model does"),
    ],
)
def test_stated_layers_are_checked(layers, message):
    with pytest.raises(ValueError, match=message):
        stated(sequential(Sine()), *layers)
