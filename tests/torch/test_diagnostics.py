import pytest

import uniphase
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.datasets import load

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import uniphase.torch as upt  # noqa: E402
from helpers.torch_models import Sine, Skipping  # noqa: E402
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


def test_nothing_of_the_model_is_touched():
    model = siren()
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    diagnose(model, PHOTO)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_layers_can_be_stated_where_they_cannot_be_read():
    model = Skipping()
    with pytest.raises(ValueError, match=r"'add'.*pass the part of it"):
        diagnose(model, load("astronaut", size=32))
    layers = [(model.first.linear, "sine", 30.0), (model.block.linear, "sine", 30.0), (model.last, "linear", 1.0)]
    report = diagnose(layers, load("astronaut", size=32))
    assert len(report.layers) == 3


def test_a_field_of_another_size_is_refused():
    with pytest.raises(ValueError, match="the network has 1 channels, but the field has 3"):
        diagnose(siren(), load("astronaut", size=32))


@pytest.mark.parametrize("seed", range(5))
def test_uniform_phase_networks_are_clean(seed):
    generator = torch.Generator().manual_seed(seed)
    network = upt.CoordinateMLP(uniform_phase(MOMENTS, width=32, depth=2), generator=generator)
    report = diagnose(network, PHOTO)
    assert report.healthy, str(report)
