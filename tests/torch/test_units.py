"""The same function takes the same steps, however it is written."""

import copy
import math
from typing import Any, cast

import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.fields import Grid

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers import zoo  # noqa: E402
from helpers.torch_models import Sine, sequential  # noqa: E402
from helpers.torch_training import FIELD, MOMENTS, X, train, uneven  # noqa: E402
from uniphase.torch.initialization import initialize_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.optimizers import UnitMuon  # noqa: E402
from uniphase.torch.reading import read_layers  # noqa: E402


def test_omega_inside_the_model_changes_nothing():
    """The same function in two parametrizations takes the same steps."""
    plain, fast = sequential(Sine(), Sine()).double(), sequential(Sine(30.0), Sine(7.0)).double()
    for model in (plain, fast):
        initialize_(model, MOMENTS, generator=torch.Generator().manual_seed(0), output_scale=1.0)
        train(model, UnitMuon(model, FIELD, MOMENTS), 5)
    torch.testing.assert_close(plain(X), fast(X), rtol=0, atol=1e-5)  # Adam's ε weighs 30 times more


def test_every_layer_has_its_own_omega():
    """With ω folded into weights and biases, the trained function is the same."""
    omegas = (30.0, 7.0, 0.5, 3.0)
    model, generator = sequential(*map(Sine, omegas)).double(), torch.Generator().manual_seed(0)
    initialize_(model, MOMENTS, generator=generator, output_scale=1.0)
    folded = sequential(*[Sine() for _ in omegas]).double()
    with torch.no_grad():
        for i, omega in enumerate((*omegas, 1.0)):
            for name in ("weight", "bias"):
                getattr(folded[2 * i], name).copy_(omega * getattr(model[2 * i], name))
    start = model(X)
    for each in (model, folded):
        train(each, UnitMuon(each, FIELD, MOMENTS), 5)
    assert (model(X) - start).abs().max() > 0.1  # they moved
    torch.testing.assert_close(model(X), folded(X), rtol=0, atol=1e-5)  # Adam's ε weighs 30 times more


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (64, 16), (16, 64)])
def test_every_output_of_a_hidden_layer_moves_as_much_whatever_its_shape(rows, columns):
    model = uneven(columns, rows)
    before = model.layers[1].weight.detach().clone()
    train(model, UnitMuon(model, FIELD, MOMENTS, lr=1.0), 1)
    moved = torch.linalg.matrix_norm(model.layers[1].weight.detach() - before) / math.sqrt(rows)
    assert 0.7 < moved < 1.2  # as Muon's singular values; without regard to the shape, 64 × 16 has half of it


def test_a_domain_stands_for_a_field_where_there_are_no_data():
    """The box of many samples has their mean and their covariance."""
    many = Grid(np.zeros((400, 300, 3)), extents=FIELD.extents)
    steps = []
    for domain in (many, FIELD.extents, list(FIELD.extents)):
        model = uneven(8, 8)
        train(model, UnitMuon(model, domain, MOMENTS), 2)
        steps.append(model(X))
    torch.testing.assert_close(steps[0], steps[1], rtol=0, atol=1e-3)  # cells: 1e-5 less variance
    assert torch.equal(steps[1], steps[2])


def test_positions_stand_for_a_field_as_well():
    """With the moments of the field, the steps are those of the field itself."""
    outputs = []
    for domain in (FIELD, X, X.reshape(12, 16, 2).float()):
        model = uneven(8, 8)
        train(model, UnitMuon(model, domain, MOMENTS), 3)
        outputs.append(model(X))
    torch.testing.assert_close(outputs[0], outputs[1], rtol=0, atol=1e-9)  # sums in another order, through Muon
    torch.testing.assert_close(outputs[0], outputs[2], rtol=0, atol=1e-4)  # of positions in float32


def test_the_moments_of_a_field_are_estimated():
    models = [uneven(8, 8), uneven(8, 8)]
    for model, moments in zip(models, (None, MOMENTS), strict=True):
        train(model, UnitMuon(model, FIELD, moments), 2)
    assert torch.equal(models[0](X), models[1](X))


class Scaled(torch.nn.Module):
    """A factor behind the output."""

    def __init__(self, net, factor: float):
        super().__init__()
        self.net, self.factor = net, factor

    def forward(self, x):
        return self.factor * self.net(x)


def test_a_factor_behind_the_output_changes_nothing():
    inner = [initialize_(sequential(Sine(30.0), Sine(7.0)).double(), MOMENTS) for _ in range(2)]
    inner[1].load_state_dict(inner[0].state_dict())
    with torch.no_grad():
        for tensor in (inner[1][4].weight, inner[1][4].bias):
            tensor.div_(0.2)
    models = [inner[0], Scaled(inner[1], 0.2)]
    start = models[0](X)
    torch.testing.assert_close(start, models[1](X))
    for model in models:
        train(model, UnitMuon(model, FIELD, MOMENTS), 3)
    assert (models[0](X) - start).abs().max() > 0.1  # they moved
    torch.testing.assert_close(models[0](X), models[1](X), rtol=0, atol=1e-5)  # Adam's ε weighs 5 times more


@pytest.mark.parametrize("name", zoo.READ)
def test_it_does_not_matter_how_a_model_is_written(name):
    """Transposed, stacked, convolved, with a weight norm, with maps around it: the steps are those of the blueprint."""
    entry = zoo.READ[name]
    model = entry.make().double()
    if name == "ω a parameter":
        model.omega.requires_grad_(False)
    initialize_(model, MOMENTS, generator=torch.Generator().manual_seed(0), output_scale=1.0)
    blueprint = uniform_phase(MOMENTS, width=zoo.WIDTH, depth=len(entry.layers) - 2)
    twin = CoordinateMLP(blueprint, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if name == "1 - y":
        twin.layers[-1].weight.data.neg_()
    expected = train(twin, UnitMuon(twin, FIELD, MOMENTS), 5)
    found = train(model, UnitMuon(model, FIELD, MOMENTS), 5)
    assert expected[-1] < 0.9 * expected[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)  # Adam's ε weighs up to 30 times more


@pytest.mark.parametrize("entry", zoo.SQUASHED.values(), ids=zoo.SQUASHED)
def test_the_units_of_a_squashed_output_are_those_before_it(entry):
    """From the same gradients, the steps are those of the inner layers by the moments that these should have."""
    picture = prescribe_moments(mean=[0.5, 0.3, 0.7], covariance=[0.08, 0.04, 0.02], length_scale=[0.2, 0.5])
    model = initialize_(entry.make().double(), picture)
    chain = read_layers(model)
    plain = sequential(*[Sine(layer.omega) for layer in chain.layers[:-1]], width=zoo.WIDTH).double()
    with torch.no_grad():
        for layer, linear in zip(chain.layers, plain[::2], strict=True):
            linear.weight.copy_(layer.weight)
            linear.bias.copy_(layer.bias)
    rng = torch.Generator().manual_seed(0)
    for layer, linear in zip(chain.layers, plain[::2], strict=True):
        for mine, theirs in ((layer.weight, linear.weight), (layer.bias, linear.bias)):
            mine.grad = theirs.grad = torch.randn(mine.shape, generator=rng, dtype=torch.float64)
    UnitMuon(model, FIELD.extents, picture, lr=0.1).step()
    UnitMuon(plain, FIELD.extents, chain.inner_moments(picture), lr=0.1).step()
    for layer, linear in zip(chain.layers, plain[::2], strict=True):
        torch.testing.assert_close(layer.weight, linear.weight, rtol=0, atol=1e-12)  # the same
        torch.testing.assert_close(layer.bias, linear.bias, rtol=0, atol=1e-12)
    assert not torch.allclose(torch.tensor(picture.covariance), torch.tensor(chain.inner_moments(picture).covariance))


@pytest.mark.parametrize("entry", zoo.IN_LAW.values(), ids=zoo.IN_LAW)
def test_sums_cosines_and_maps_train(entry):
    model = initialize_(entry.make().double(), MOMENTS, generator=torch.Generator().manual_seed(0))
    losses = train(model, UnitMuon(model, FIELD, MOMENTS), 40)
    assert losses[-1] < 0.7 * losses[0]  # of noise, in networks of a few hundred numbers


@pytest.mark.parametrize("name", ["2x - 1", "normalized positions"])
def test_a_map_of_the_positions_changes_nothing(name):
    """With the map folded into weights and biases, the steps are the same."""
    generator = torch.Generator().manual_seed(0)
    model = initialize_(zoo.IN_LAW[name].make().double(), MOMENTS, generator=generator, output_scale=1.0)
    before, folded = read_layers(model).before, cast(Any, copy.deepcopy(model.net))
    with torch.no_grad():
        folded[0].bias.add_(folded[0].weight @ before.shift)
        folded[0].weight.mul_(before.scale)
    expected = train(folded, UnitMuon(folded, FIELD, MOMENTS), 5)
    assert expected[-1] < 0.9 * expected[0]
    assert train(model, UnitMuon(model, FIELD, MOMENTS), 5) == pytest.approx(expected, rel=1e-9)  # rounding, by Muon
