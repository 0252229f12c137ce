import pytest

from uniphase.initialization.schemes import sm20

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers import zoo  # noqa: E402
from helpers.torch_models import FourierFeatures, InOneForward, OfficialSiren, Sine, sequential  # noqa: E402
from helpers.torch_training import FIELD, MOMENTS, train  # noqa: E402
from uniphase.torch.mup import param_groups  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.optimizers import UnitMuon  # noqa: E402


def test_groups_go_by_role():
    model = sequential(Sine(), Sine(), width=256)
    fixed, scaled = param_groups(model, 1e-3, base_width=64)
    assert (fixed["lr"], scaled["lr"]) == (1e-3, 1e-3 * 64 / 256)
    first, hidden, last = model[0], model[2], model[4]
    assert {id(p) for p in scaled["params"]} == {id(hidden.weight), id(last.weight)}
    assert {id(p) for p in fixed["params"]} == {id(p) for p in (first.weight, first.bias, hidden.bias, last.bias)}
    torch.optim.Adam(param_groups(model, 1e-3, base_width=64))


def test_rates_go_by_the_width_before_each_matrix():
    """A middle layer of twice the width."""
    model = zoo.widths(16, 32, 16)
    groups = param_groups(model, 1e-3, base_width=8)
    assert [(group["lr"], len(group["params"])) for group in groups] == [(1e-3, 5), (5e-4, 2), (2.5e-4, 1)]
    linears = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    assert {id(p) for p in groups[1]["params"]} == {id(linears[1].weight), id(linears[3].weight)}
    assert groups[2]["params"][0] is linears[2].weight


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
