import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import get_scheme, sm20, uniform_phase
from uniphase.jax.files import save_network as save_jax
from uniphase.jax.network import CoordinateMLP as JaxMLP
from uniphase.recipe import default_rate
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import Saved
from uniphase.training.optimizers import unit_muon

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers.torch_models import FourierFeatures, InOneForward, OfficialSiren, Sine, sequential  # noqa: E402
from uniphase.torch.files import load_network  # noqa: E402
from uniphase.torch.initialization import initialize_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.optimizers import UnitMuon, param_groups  # noqa: E402

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


@pytest.mark.parametrize("name", ["uniform-phase", "sm20", "tanh-pe"])  # plain; with ω; with a frozen layer
def test_steps_are_those_of_the_jax_side(name, tmp_path, x64):
    """The same network, five steps: parameters agree to rounding."""
    blueprint = get_scheme(name).blueprint(MOMENTS, width=8, depth=2)
    network = JaxMLP(blueprint, key=jax.random.key(0))
    save_jax(tmp_path / "a.uniphase", Saved.of(network, blueprint, FIELD))
    twin = load_network(tmp_path / "a.uniphase").network
    train(twin, UnitMuon(twin, FIELD, MOMENTS, lr=0.05), 5)

    optimizer, x, y = unit_muon(network, FIELD, MOMENTS), jnp.asarray(X.numpy()), jnp.asarray(Y.numpy())

    @eqx.filter_jit
    def step(network, state):
        gradients = jax.grad(lambda n: jnp.mean(jnp.square(jax.vmap(n)(x) - y)))(network)
        updates, state = optimizer.update(gradients, state, network)
        return eqx.apply_updates(network, jax.tree.map(lambda u: -0.05 * u, updates)), state

    start, state = network, optimizer.init(network)
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes integers and floats
        for _ in range(5):
            network, state = step(network, state)
    for before, layer, other in zip(start.layers, network.layers, twin.layers, strict=True):
        for array in ("weight", "bias"):
            if getattr(layer, array) is not None:
                moved = np.abs(getattr(layer, array) - getattr(before, array)).max()
                difference = np.abs(getattr(layer, array) - getattr(other, array).detach().numpy()).max()
                # Rounding grows where Newton and Schulz lift small singular values, by 3.4 in each of five iterations.
                assert difference <= 1e-8 * moved


def test_omega_inside_the_model_changes_nothing():
    """The same function in two parametrizations takes the same steps."""
    plain, fast = sequential(Sine(), Sine()).double(), sequential(Sine(30.0), Sine(7.0)).double()
    for model in (plain, fast):
        initialize_(model, MOMENTS, generator=torch.Generator().manual_seed(0))
        train(model, UnitMuon(model, FIELD, MOMENTS), 5)
    torch.testing.assert_close(plain(X), fast(X), rtol=0, atol=1e-5)  # Adam's ε weighs 30 times more


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
        (InOneForward, {}, r"the model trains omega besides weights and biases, .*requires_grad_\(False\)"),
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
    ],
)
def test_what_does_not_fit_is_told(make, options, message):
    moments = options.pop("moments", MOMENTS)
    with pytest.raises(ValueError, match=message):
        UnitMuon(make(), FIELD, moments, **options)


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
    network = CoordinateMLP(sm20((2, 1), width=8, depth=1))
    assert sum(len(group["params"]) for group in param_groups(network, 1e-3, base_width=8)) == 5


def test_bad_rates():
    with pytest.raises(ValueError, match=r"lr is -1.0 and base_width is 64; both must be positive"):
        param_groups(OfficialSiren(), -1.0, 64)
