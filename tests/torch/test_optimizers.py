import copy
import dataclasses
import math
import pickle
import subprocess
import sys
from typing import Any, cast

import numpy as np
import pytest

from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import sm20, uniform_phase
from uniphase.recipe import Scales, default_rate
from uniphase.signals.fields import Grid

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers import zoo  # noqa: E402
from helpers.torch_models import FourierFeatures, InOneForward, OfficialSiren, Sine, sequential  # noqa: E402
from uniphase.torch.initialization import initialize_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.optimizers import UnitMuon, param_groups  # noqa: E402
from uniphase.torch.reading import StatedLayers, read_layers  # noqa: E402

FIELD = Grid(np.random.default_rng(0).normal(size=(12, 16, 3)), extents=((2.0, 5.0), (-1.0, 9.0)))
MOMENTS = estimate_moments(FIELD)
X, Y = torch.tensor(FIELD.coordinates()), torch.tensor(FIELD.flat_values())


def loss(model):
    prediction = model(X)
    prediction = prediction[0] if isinstance(prediction, tuple) else prediction
    return (prediction - Y).square().mean()


def train(model, optimizer, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


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


def uneven(*widths: int) -> CoordinateMLP:
    """A uniform-phase network whose hidden layers differ in width; each has the distribution of its inputs' number."""
    plans = [uniform_phase(MOMENTS, width=width, depth=1).layers for width in widths]
    hidden = [dataclasses.replace(plan[1], rows=rows) for plan, rows in zip(plans, widths[1:], strict=False)]
    blueprint = Blueprint("uneven", (plans[0][0], *hidden, plans[-1][2]))
    return CoordinateMLP(blueprint, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_layers_of_different_widths_train():
    losses = [train(model, UnitMuon(model, FIELD, MOMENTS), 60) for model in (uneven(16, 16, 16), uneven(16, 32, 16))]
    assert losses[1][-1] < losses[0][-1] < 0.5 * losses[0][0]  # the wider layer helps


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (64, 16), (16, 64)])
def test_every_output_of_a_hidden_layer_moves_as_much_whatever_its_shape(rows, columns):
    model = uneven(columns, rows)
    before = model.layers[1].weight.detach().clone()
    train(model, UnitMuon(model, FIELD, MOMENTS, lr=1.0), 1)
    moved = torch.linalg.matrix_norm(model.layers[1].weight.detach() - before) / math.sqrt(rows)
    assert 0.7 < moved < 1.2  # as Muon's singular values; without regard to the shape, 64 × 16 has half of it


def test_a_frozen_layer_keeps_its_weights_and_its_bias():
    plans = uniform_phase(MOMENTS, width=8, depth=2).layers
    for frozen in range(4):
        layers = tuple(dataclasses.replace(plan, trainable=i != frozen) for i, plan in enumerate(plans))
        model = CoordinateMLP(Blueprint("frozen", layers), dtype=torch.float64)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        train(model, UnitMuon(model, FIELD, MOMENTS), 3)
        still = {name for name, tensor in model.state_dict().items() if torch.equal(tensor, before[name])}
        assert still == {f"layers.{frozen}.weight", f"layers.{frozen}.bias"}


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


def test_the_bound_acts_in_whatever_way_a_matrix_is_stored():
    """As above, with weights that reach their bound in the first step."""
    losses, scales = {}, Scales(growth=0.5)
    for name in ("x @ W + b", "stacked", "weight norm", "ω first"):
        model = initialize_(zoo.READ[name].make().double(), MOMENTS, generator=torch.Generator().manual_seed(0))
        norms = [layer.weight.norm().item() for layer in read_layers(model).layers[1:-1]]
        train(model, UnitMuon(model, FIELD, MOMENTS, lr=0.02, scales=scales), 20)
        losses[name] = [layer.weight.norm().item() for layer in read_layers(model).layers[1:-1]]
        # They start at the bound. A step beyond it is lr/√2 of the norm at most, and ends on the way back.
        assert losses[name] == pytest.approx(norms, rel=0.02)
        assert max(abs(a / b - 1) for a, b in zip(losses[name], norms, strict=True)) > 1e-6  # they moved
        free = initialize_(zoo.READ[name].make().double(), MOMENTS, generator=torch.Generator().manual_seed(0))
        train(free, UnitMuon(free, FIELD, MOMENTS, lr=0.02, scales=Scales(growth=math.inf)), 20)
        grown = [layer.weight.norm().item() for layer in read_layers(free).layers[1:-1]]
        assert all(b > 1.03 * a for a, b in zip(norms, grown, strict=True))


@pytest.mark.parametrize("frozen", ["lengths", "directions"])
def test_a_weight_norm_may_be_frozen_in_part(frozen):
    model: Any = zoo.READ["weight norm"].make().double()
    for layer in (model[0], model[2], model[4]):
        parts = layer.parametrizations.weight
        (parts.original0 if frozen == "lengths" else parts.original1).requires_grad_(False)
    lengths = [layer.parametrizations.weight.original0.clone() for layer in (model[0], model[2], model[4])]
    if frozen == "directions":
        with pytest.warns(UserWarning, match=r"the model trains 0.parametrizations.weight.original0, .* no unit"):
            UnitMuon(model, FIELD, MOMENTS)
        return
    losses = train(model, UnitMuon(model, FIELD, MOMENTS), 20)
    assert losses[-1] < losses[0]
    for layer, length in zip((model[0], model[2], model[4]), lengths, strict=True):
        assert torch.equal(layer.parametrizations.weight.original0, length)
        torch.testing.assert_close(layer.weight.norm(dim=1, keepdim=True), length)


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


def test_stacked_layers_resume_from_files(tmp_path):
    """States of several layers in one parameter, and of a weight norm, are those of a file as well."""
    for name in ("stacked", "weight norm", "x @ W + b"):
        model = initialize_(zoo.READ[name].make().double(), MOMENTS, generator=torch.Generator().manual_seed(0))
        optimizer = UnitMuon(model, FIELD, MOMENTS)
        train(model, optimizer, 2)
        torch.save([model.state_dict(), optimizer.state_dict()], tmp_path / "state")
        twin = zoo.READ[name].make().double()
        of_model, of_optimizer = torch.load(tmp_path / "state", weights_only=True)
        twin.load_state_dict(of_model)
        other = UnitMuon(twin, FIELD, MOMENTS)
        other.load_state_dict(of_optimizer)
        assert train(twin, other, 3) == train(model, optimizer, 3)


def test_a_stated_model():
    model = sequential(Sine(30.0), Sine(4.0)).double()
    stated = StatedLayers(model, [(model[0], "sine", 30.0), (model[2], "sine", 4.0), (model[4], "linear", 1.0)])
    twin = copy.deepcopy(model)
    assert train(model, UnitMuon(stated, FIELD, MOMENTS), 3) == train(twin, UnitMuon(twin, FIELD, MOMENTS), 3)


def test_it_learns():
    model = initialize_(OfficialSiren((2, 32, 3)), MOMENTS, generator=torch.Generator().manual_seed(0)).double()
    losses = train(model, UnitMuon(model, FIELD, MOMENTS), 60)
    assert losses[-1] < 0.2 * losses[0]


def test_default_rate_schedulers_and_resuming():
    models = [CoordinateMLP(uniform_phase(MOMENTS, width=8, depth=1), dtype=torch.float64) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizer = UnitMuon(models[0], FIELD, MOMENTS)
    assert {group["lr"] for group in optimizer.param_groups} == {default_rate(models[0])} == {0.125}
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    train(models[0], optimizer, 2)
    scheduler.step()
    for group in optimizer.param_groups:
        assert group["lr"] == pytest.approx(0.125 * (1 + 0.5**0.5) / 2, rel=1e-12)  # float64 rounding

    other = UnitMuon(models[1], FIELD, MOMENTS)
    train(models[1], other, 2)
    resumed = UnitMuon(models[1], FIELD, MOMENTS)
    resumed.load_state_dict(optimizer.state_dict())
    assert train(models[0], optimizer, 2) == train(models[1], resumed, 2)


# What people do with optimizers.


def trained(steps: int = 2) -> tuple[CoordinateMLP, UnitMuon]:
    model = uneven(8, 8)
    optimizer = UnitMuon(model, FIELD, MOMENTS)
    train(model, optimizer, steps)
    return model, optimizer


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["deepcopy", "pickle"]
)
def test_copies_go_on_alike_and_apart(duplicate):
    model, optimizer = trained()
    twin, other = duplicate((model, optimizer))
    rest = train(model, optimizer, 3)
    assert train(twin, other, 3) == rest
    assert rest[-1] < rest[0]  # the first copy was not trained by the second


def test_a_model_may_change_its_precision():
    model, optimizer = trained()
    single = copy.deepcopy(model).float()
    of_single = UnitMuon(single, FIELD, MOMENTS)
    of_single.load_state_dict(optimizer.state_dict())
    single.double()
    assert train(single, of_single, 3) == pytest.approx(train(model, optimizer, 3), rel=1e-4)  # rounded to float32
    assert {tensor.dtype for state in of_single.state.values() for tensor in state.values()} == {torch.float64}


def test_half_precision_on_the_way_is_told():
    model, optimizer = trained()
    model.half()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with pytest.raises(ValueError, match=r"torch.float16, .* under torch.autocast"):
        optimizer.step()


def test_a_model_on_the_device_meta():
    """It is read without numbers, and trained once it has them."""
    model, optimizer = trained(0)
    with torch.device("meta"):
        twin = uneven(8, 8)
        other = UnitMuon(twin, FIELD, MOMENTS)
    future = torch.__future__
    future.set_swap_module_params_on_conversion(True)  # the parameters stay the same objects
    try:
        twin.to_empty(device="cpu")
    finally:
        future.set_swap_module_params_on_conversion(False)
    twin.load_state_dict(model.state_dict())
    assert train(twin, other, 3) == train(model, optimizer, 3)
    with pytest.raises(ValueError, match=r"with a tensor on the device meta, .* give the model values first"):
        UnitMuon(InOneForward().to("meta"), FIELD, MOMENTS)


def test_parameters_without_a_unit_are_named_and_can_be_added():
    model = InOneForward().double()
    with pytest.warns(UserWarning, match=r"the model trains omega besides weights .* add_param_group.*requires_grad_"):
        optimizer = UnitMuon(model, FIELD, MOMENTS)
    before = model.omega.item()
    train(model, optimizer, 1)
    assert model.omega.item() == before
    with pytest.raises(ValueError, match="the new group has no lr"):
        optimizer.add_param_group({"params": [model.omega]})
    optimizer.add_param_group({"params": [model.omega], "lr": 1e-3})
    train(model, optimizer, 1)
    assert abs(model.omega.item() - before) == pytest.approx(1e-3, rel=1e-4)  # Adam's first step is its rate
    model.omega.requires_grad_(False)
    UnitMuon(model, FIELD, MOMENTS)  # without a warning


def test_layers_that_share_their_weights_are_stepped_once():
    model = sequential(Sine(), Sine(), Sine()).double()
    model[4].weight = model[2].weight
    losses = train(model, UnitMuon(model, FIELD, MOMENTS), 20)
    assert losses[-1] < losses[0]


def test_compiled_steps_are_the_same():
    """With a rate that changes, in two programs: the first step, which makes the state, and all others."""
    program = (
        "import torch, uniphase, uniphase.torch\n"
        "from torch._dynamo.utils import counters\n"
        "torch.set_num_threads(1)\n"
        "field = uniphase.load('camera', size=16)\n"
        "plan = uniphase.uniform_phase(uniphase.estimate_moments(field), width=8, depth=1)\n"
        "x = torch.tensor(field.coordinates()).float()\n"
        "def train(compiled):\n"
        "    network = uniphase.torch.CoordinateMLP(plan, generator=torch.Generator().manual_seed(0))\n"
        "    optimizer = uniphase.torch.UnitMuon(network, field)\n"
        "    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)\n"
        "    step = torch.compile(optimizer.step, backend='aot_eager') if compiled else optimizer.step\n"
        "    for _ in range(12):\n"
        "        network(x).square().mean().backward()\n"
        "        step()\n"
        "        scheduler.step()\n"
        "    return network(x)\n"
        "print(torch.allclose(train(False), train(True)), counters['stats']['unique_graphs'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True 2\n", done.stderr


def test_a_closure_and_parameters_without_gradients():
    model = CoordinateMLP(uniform_phase(MOMENTS, width=8, depth=1), dtype=torch.float64)
    model.layers[1].requires_grad_(False)
    before = model.layers[1].weight.clone()
    optimizer = UnitMuon(model, FIELD, MOMENTS)

    def closure():
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        return value

    first = optimizer.step(closure)
    assert loss(model) < first
    assert torch.equal(model.layers[1].weight, before)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (OfficialSiren, {"lr": 0.0}, "lr is 0.0; it must be positive"),
        (
            OfficialSiren,
            {"moments": prescribe_moments(length_scale=[1.0])},
            "moments has 1 coordinates and 1 channels",
        ),
        (
            lambda: OfficialSiren((2, 8, 1)),
            {},
            "field has 2 coordinates and 3 channels, but the model has 2 and 1",
        ),
        (
            OfficialSiren,
            {"domain": FIELD.extents, "moments": None},
            r"moments is None, and only a field .*prescribe_moments",
        ),
        (OfficialSiren, {"domain": torch.rand(9, 3)}, r"shape \(9, 3\), but the model takes 2 .* positions \(n, 2\)"),
        (OfficialSiren, {"domain": torch.ones(9, 2)}, "9 positions, .* do not spread along every coordinate"),
        (lambda: OfficialSiren().half(), {}, r"torch.float16, .*model.float\(\), .* under torch.autocast"),
        (OfficialSiren, {"domain": [(0.0, 1.0)]}, r"domain is \[\(0.0, 1.0\)\], but the model takes 2 coordinates"),
        (OfficialSiren, {"domain": [(0.0, 1.0), (1.0, 1.0)]}, r"domain is .* pass a field, or a finite \(low, high\)"),
    ],
)
def test_what_does_not_fit_is_told(make, options, message):
    arguments = {"domain": FIELD, "moments": MOMENTS} | options
    with pytest.raises(ValueError, match=message):
        UnitMuon(make(), **arguments)


# μP.


def test_groups_go_by_role():
    model = sequential(Sine(), Sine(), width=256)
    fixed, scaled = param_groups(model, 1e-3, base_width=64)
    assert (fixed["lr"], scaled["lr"]) == (1e-3, 1e-3 * 64 / 256)
    first, hidden, last = model[0], model[2], model[4]
    assert {id(p) for p in scaled["params"]} == {id(hidden.weight), id(last.weight)}
    assert {id(p) for p in fixed["params"]} == {id(p) for p in (first.weight, first.bias, hidden.bias, last.bias)}
    torch.optim.Adam(param_groups(model, 1e-3, base_width=64))


def test_at_the_base_width_all_rates_are_the_same():
    assert {group["lr"] for group in param_groups(OfficialSiren(), 0.5, base_width=16)} == {0.5}


def test_groups_hold_all_that_is_trained_once_and_nothing_else():
    model = InOneForward()  # trains its ω as well
    model.last.bias.requires_grad_(False)
    groups = param_groups(model, 1e-3, base_width=8)
    grouped = [id(p) for group in groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert any(p is model.omega for p in groups[0]["params"])
    encoded = param_groups(FourierFeatures(), 1e-3, base_width=8)
    assert [len(group["params"]) for group in encoded] == [3, 3]
    normed = param_groups(zoo.READ["weight norm"].make(), 1e-3, base_width=8)
    assert [len(group["params"]) for group in normed] == [7, 2]  # directions of hidden and output weights are scaled
    stacked = zoo.READ["stacked"].make()
    scaled = param_groups(stacked, 1e-3, base_width=8)[1]["params"]
    assert {id(p) for p in scaled} == {id(stacked.W), id(stacked.last.weight)}
    network = CoordinateMLP(sm20((2, 1), width=8, depth=1))
    assert sum(len(group["params"]) for group in param_groups(network, 1e-3, base_width=8)) == 5


def test_one_parameter_for_all_layers_has_no_one_rate():
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers = torch.nn.Parameter(torch.randn(2 * 8 + 8 * 3))

        def forward(self, x):
            h = torch.sin(x @ self.numbers[:16].reshape(2, 8))
            return h @ self.numbers[16:].reshape(8, 3)

    with pytest.raises(ValueError, match="numbers holds the weights of the first layer and of others"):
        param_groups(Flat(), 1e-3, 64)
    model = Flat().double()
    losses = train(model, UnitMuon(model, FIELD, MOMENTS), 20)  # which steps each part in its own units
    assert losses[-1] < losses[0]


def test_bad_rates():
    with pytest.raises(ValueError, match=r"lr is -1.0 and base_width is 64; both must be positive"):
        param_groups(OfficialSiren(), -1.0, 64)
