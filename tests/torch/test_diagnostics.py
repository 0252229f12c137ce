import copy

import numpy as np
import pytest

import uniphase
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import uniphase.torch as upt  # noqa: E402
from helpers.torch_models import Sine  # noqa: E402
from uniphase.torch.diagnostics import diagnose  # noqa: E402

PHOTO = load("camera", size=24)
MOMENTS = estimate_moments(PHOTO)
FIX = "uniphase.torch.initialize_(model, moments)"


def siren(omega=30.0):
    """As one writes it, with PyTorch's own weights."""
    torch.manual_seed(0)
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(2, 32), Sine(omega), linear(32, 32), Sine(omega), linear(32, 1))


def severities(report):
    return {finding.item: finding.severity for finding in report.findings}


def test_what_it_recommends_fixes_the_model():
    model = siren(omega=1.0)
    report = diagnose(model, PHOTO)
    assert severities(report)["input layer"] == "bad"
    assert "too low" in str(report)
    assert report.fix == FIX
    exec(FIX, {"uniphase": uniphase, "model": model, "moments": MOMENTS})
    fixed = diagnose(model, PHOTO)
    assert fixed.healthy
    assert fixed.fix is None
    assert fixed.looks_like == "uniform-phase, matched to this signal"


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.Tanh])
def test_for_a_model_without_sines_it_recommends_one_with_them(activation):
    torch.manual_seed(0)
    linear = torch.nn.Linear
    model = torch.nn.Sequential(linear(2, 32), activation(), linear(32, 32), activation(), linear(32, 1))
    fix = diagnose(model, PHOTO).fix
    blueprint = "uniphase.uniform_phase(moments, width=32, depth=1, output_scale=0.05)"
    assert fix == f"model = uniphase.torch.CoordinateMLP({blueprint})"
    scope = {"uniphase": uniphase, "model": model, "moments": MOMENTS}
    exec(fix, scope)
    assert diagnose(scope["model"], PHOTO).healthy


def test_nothing_of_the_model_is_touched():
    model = siren()
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    diagnose(model, PHOTO)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_layers_can_be_stated():
    model = siren()
    layers = [(model[0], "sine", 30.0), (model[2], "sine", 30.0), (model[4], "linear", 1.0)]
    assert str(diagnose(upt.StatedLayers(model, layers), PHOTO)).count("32 sine") == 2


class Mapped(torch.nn.Module):
    """The same function as that of a plain model, with its units changed before and after it."""

    def __init__(self, plain):
        super().__init__()
        first, _, hidden, _, last = (copy.deepcopy(module) for module in plain)
        self.layers = torch.nn.ModuleList([first, hidden, last])
        with torch.no_grad():
            first.weight.div_(2)
            first.bias.add_(first.weight.sum(dim=1))  # W(2x - 1) + b
            hidden.weight.div_(-0.5)
            last.weight.div_(0.5)
            last.bias.sub_(0.25).div_(0.5)

    def forward(self, x):
        h = torch.sin(30 * self.layers[0](2 * x - 1))
        h = torch.sin(30 * (self.layers[1](-0.5 * h)))
        return 0.5 * self.layers[2](h) + 0.25


def test_maps_around_a_model_are_part_of_it():
    plain = siren()
    found, expected = diagnose(Mapped(plain), PHOTO), diagnose(plain, PHOTO)
    np.testing.assert_allclose(found.network.covariance, expected.network.covariance, rtol=1e-3)  # float32
    np.testing.assert_allclose(found.network.mean, expected.network.mean, rtol=1e-3)
    for mine, theirs in zip(found.layers, expected.layers, strict=True):
        assert mine.squared_singular == pytest.approx(theirs.squared_singular, rel=1e-3)


def test_a_squashed_model_is_examined_behind_its_squash():
    model = torch.nn.Sequential(*siren(), torch.nn.Sigmoid())
    upt.initialize_(model, MOMENTS, generator=torch.Generator().manual_seed(0))
    report = diagnose(model, PHOTO)
    assert report.layers[-1].activation == "sigmoid"
    assert 0 < report.network.mean < 1
    halved = torch.nn.Sequential(*model, Halving())
    np.testing.assert_allclose(diagnose(halved, half(PHOTO)).network.mean, report.network.mean, rtol=1e-4)  # float32


class Halving(torch.nn.Module):
    def forward(self, y):
        return y / 2


def half(field):
    return Grid(field.values / 2, extents=field.extents, align=field.align)


def test_a_field_of_another_size_is_refused():
    with pytest.raises(ValueError, match="the network has 1 channels, but the field has 3"):
        diagnose(siren(), load("astronaut", size=32))


@pytest.mark.parametrize("seed", range(5))
def test_uniform_phase_networks_are_clean(seed):
    generator = torch.Generator().manual_seed(seed)
    network = upt.CoordinateMLP(uniform_phase(MOMENTS, width=32, depth=2), generator=generator)
    report = diagnose(network, PHOTO)
    assert report.healthy, str(report)
