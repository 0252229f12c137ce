import copy
import dataclasses
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest

from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.recipe import Scales, default_rate

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers import zoo  # noqa: E402
from helpers.torch_models import InOneForward, OfficialSiren, Sine, sequential  # noqa: E402
from helpers.torch_training import FIELD, MOMENTS, loss, train, uneven  # noqa: E402
from uniphase.torch.initialization import initialize_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.optimizers import UnitMuon  # noqa: E402
from uniphase.torch.reading import StatedLayers, read_layers  # noqa: E402


def test_layers_of_different_widths_train():
    losses = [train(model, UnitMuon(model, FIELD, MOMENTS), 60) for model in (uneven(16, 16, 16), uneven(16, 32, 16))]
    assert losses[1][-1] < losses[0][-1] < 0.5 * losses[0][0]  # the wider layer helps


def test_a_frozen_layer_keeps_its_weights_and_its_bias():
    plans = uniform_phase(MOMENTS, width=8, depth=2).layers
    for frozen in range(4):
        layers = tuple(dataclasses.replace(plan, trainable=i != frozen) for i, plan in enumerate(plans))
        model = CoordinateMLP(Blueprint("frozen", layers), dtype=torch.float64)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        train(model, UnitMuon(model, FIELD, MOMENTS), 3)
        still = {name for name, tensor in model.state_dict().items() if torch.equal(tensor, before[name])}
        assert still == {f"layers.{frozen}.weight", f"layers.{frozen}.bias"}


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
