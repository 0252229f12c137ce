import math

import numpy as np
import pytest
from scipy import stats

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import OUTPUT_SCALE, SCHEMES, get_scheme, sm20, uniform_phase

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

import uniphase.torch as upt  # noqa: E402
from helpers.torch_models import FourierFeatures, InOneForward, OfficialSiren, Sine, sequential  # noqa: E402
from uniphase.torch.initialization import initialize_, sm20_, uniform_phase_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402

MOMENTS = prescribe_moments(mean=[1.0, -2.0, 0.5], covariance=[2.0, 0.5, 0.1], length_scale=[0.1, 0.3])
SINES = ["uniform-phase", "siren", "sm20", "cvp26-0", "cvp26-1"]
X = torch.rand(20, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def seeded(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def siren_pytorch_net(**options):
    siren_pytorch = pytest.importorskip("siren_pytorch", reason="siren-pytorch is not installed")
    return siren_pytorch.SirenNet(2, 16, 3, num_layers=3, w0_initial=30.0, **options)


def output(model):
    result = model(X)
    return result[0] if isinstance(result, tuple) else result


def assert_same_function(model, blueprint):
    """The network that the blueprint describes, drawn from the same random numbers."""
    expected = CoordinateMLP(blueprint, dtype=torch.float64, generator=seeded())(X)
    torch.testing.assert_close(output(model), expected, rtol=0, atol=1e-11)  # float64 phases of some hundred


SINE_MODELS = {
    "siren-pytorch": lambda: siren_pytorch_net(w0=2.0),
    "official": OfficialSiren,
    "sequential": lambda: sequential(Sine(7.0), Sine(3.0), Sine()),
    "one forward": InOneForward,
}


@pytest.mark.parametrize("make", SINE_MODELS.values(), ids=SINE_MODELS)
def test_the_function_has_the_law_of_the_blueprint_whatever_omega(make):
    model = make().double()
    assert initialize_(model, MOMENTS, generator=seeded()) is model
    assert_same_function(model, uniform_phase(MOMENTS, width=16, depth=2, output_scale=OUTPUT_SCALE))
    initialize_(model, MOMENTS, generator=seeded(), output_scale=1.0)
    assert_same_function(model, uniform_phase(MOMENTS, width=16, depth=2))


@pytest.mark.parametrize("name", [name for name in SINES if name != "uniform-phase"])
def test_schemes_with_an_omega_take_the_models(name):
    model = initialize_(OfficialSiren(omega_0=20.0).double(), scheme=name, generator=seeded())
    blueprint = get_scheme(name).blueprint((2, 3), width=16, depth=2, omega=20.0, hidden_omega=20.0)
    assert_same_function(model, blueprint)
    bound = float(blueprint.layers[1].weight.variance() * 3) ** 0.5
    assert model.net[1].linear.weight.abs().max() <= bound  # the numbers are those of the blueprint as well
    assert model.net[3].bias.any() == (name == "siren")  # the other blueprints have none


def test_options_are_the_schemes():
    model = initialize_(OfficialSiren().double(), scheme="sm20", omega=82.0, official_output=True, generator=seeded())
    assert_same_function(model, sm20((2, 3), width=16, depth=2, omega=82.0, hidden_omega=30.0, official_output=True))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("relu", lambda: sequential(nn.ReLU(inplace=True), nn.ReLU(), nn.ReLU())),
        ("silu", lambda: sequential(nn.SiLU(), nn.SiLU(), nn.SiLU(), bias=False)),
        ("gelu", lambda: sequential(*[nn.GELU(approximate="tanh") for _ in range(3)])),
    ],
)
def test_other_activations(name, make):
    model = initialize_(make().double(), scheme=name, generator=seeded())
    assert_same_function(model, get_scheme(name).blueprint((2, 3), width=16, depth=2))


def test_fourier_features():
    model = initialize_(FourierFeatures().double(), scheme="tanh-pe", std=3.0, generator=seeded())
    assert_same_function(model, get_scheme("tanh-pe").blueprint((2, 3), width=16, depth=1, std=3.0))


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_on_its_own_network(name):
    scheme = get_scheme(name)
    blueprint = scheme.blueprint(MOMENTS, width=16, depth=2, **scheme.fit)
    model = CoordinateMLP(blueprint, dtype=torch.float64, generator=seeded(1))
    assert_same_function(initialize_(model, MOMENTS, name, generator=seeded()), blueprint)


def test_drawn_laws():
    """Kolmogorov–Smirnov against the laws themselves, with a chance of 1e-6 each to fail by chance."""
    model = initialize_(OfficialSiren((2, 128, 3), omega_0=30.0), MOMENTS, generator=seeded())
    hidden = model.net[1].linear
    phases = 30 * hidden.bias.detach().numpy()
    weights = 30 * hidden.weight.detach().numpy().ravel()
    assert stats.kstest(phases, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-6
    assert stats.kstest(weights, stats.norm(scale=math.sqrt(2 / 128)).cdf).pvalue > 1e-6
    assert stats.kstest(weights / 30, stats.norm(scale=math.sqrt(2 / 128)).cdf).pvalue < 1e-6  # without ω: told apart
    np.testing.assert_allclose(model.net[3].bias.detach(), MOMENTS.mean, rtol=1e-6)


def test_randomness_is_the_generators():
    model = sequential(Sine())
    state = torch.get_rng_state()
    model = initialize_(model, MOMENTS, generator=seeded())
    assert torch.equal(torch.get_rng_state(), state)
    initialize_(model, MOMENTS)  # PyTorch's own
    assert not torch.equal(torch.get_rng_state(), state)


def test_gradients_do_not_pass_through_it():
    model = initialize_(sequential(Sine()), MOMENTS)
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in model.parameters())


@pytest.mark.parametrize(
    ("make", "moments", "scheme", "message"),
    [
        (OfficialSiren, None, "relu", "layer 'net.0.linear' has 2 → 16, sine, but relu has 2 → 16, relu there; pass"),
        (OfficialSiren, None, "uniform-phase", r"target is \(2, 3\), but uniform-phase matches the moments"),
        (
            OfficialSiren,
            prescribe_moments(length_scale=[1.0]),
            "uniform-phase",
            "moments are of 1 coordinates and 1 channels, but the model has 2 and 3; pass the moments of the signal",
        ),
        (OfficialSiren, MOMENTS, "relu6", "there is no scheme 'relu6'; the known ones are uniform-phase, siren"),
        (
            lambda: sequential(Sine(), bias=False),
            MOMENTS,
            "uniform-phase",
            r"'0' has no bias, .* from U\(±3.142\); make",
        ),
        (lambda: nn.Linear(2, 3), MOMENTS, "uniform-phase", "'weight' has 2 → 3, linear, but .* has 2 → 2, sine"),
        (lambda: sequential(nn.LayerNorm(16)), MOMENTS, "uniform-phase", r"module '1' \(LayerNorm\) computes"),
    ],
)
def test_what_does_not_fit_is_told(make, moments, scheme, message):
    model = make()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        initialize_(model, moments, scheme)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_one_layer_is_no_network():
    moments = prescribe_moments(covariance=[1.0, 1.0], length_scale=[1.0, 1.0])
    with pytest.raises(ValueError, match="the model has 1 layers, but uniform-phase has at least 2; pass a model with"):
        initialize_(nn.Sequential(nn.Linear(2, 2), Sine()), moments)


def test_widths_that_differ_and_weights_that_are_shared():
    linear = nn.Linear(16, 16)
    shared = nn.Sequential(nn.Linear(2, 16), Sine(), linear, Sine(), linear, Sine(), nn.Linear(16, 3))
    with pytest.raises(ValueError, match=r"layers '2' and '2' share their numbers, .* one by one \(uniform_phase_"):
        initialize_(shared, MOMENTS)
    for layer, role in ((shared[0], "input"), (linear, "hidden"), (shared[6], "output")):  # as the message says
        uniform_phase_(layer, role, MOMENTS)
    uneven = nn.Sequential(nn.Linear(2, 8), Sine(), nn.Linear(8, 16), Sine(), nn.Linear(16, 3))
    initialize_(uneven, MOMENTS)
    with pytest.raises(ValueError, match=r"'0' has 2 → 8, sine, but sm20 has 2 → 16, sine .* one by one"):
        initialize_(uneven, scheme="sm20")


def test_a_stated_model():
    model = sequential(Sine(30.0), Sine(4.0)).double()
    stated = upt.StatedLayers(model, [(model[0], "sine", 30.0), (model[2], "sine", 4.0), (model[4], "linear", 1.0)])
    assert initialize_(stated, MOMENTS, generator=seeded()) is stated
    assert_same_function(model, uniform_phase(MOMENTS, width=16, depth=1, output_scale=OUTPUT_SCALE))


def test_a_sine_at_the_end_has_no_law():
    net = sequential(Sine(30.0))
    model = nn.Sequential(net, Sine())
    with pytest.raises(ValueError, match=r"'0.2' has 16 → 3, sine, but uniform-phase has 16 → 3, linear .* one by one"):
        initialize_(model, MOMENTS)
    uniform_phase_(net[0], "input", MOMENTS, omega=30.0)  # as the message says
    uniform_phase_(net[2], "hidden")


# One layer.


def layer_function(name: str):
    return getattr(upt, f"{get_scheme(name).blueprint.__name__}_")


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("role", ["input", "hidden", "output"])
def test_layer_by_layer_gives_what_the_whole_gives(name, role):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=16, depth=2)
    plan = next(plan for plan in blueprint.layers if plan.role == role)
    layer = nn.Linear(plan.columns, plan.rows, bias=plan.bias is not None, dtype=torch.float64)
    inner = blueprint.layers[1] if role == "output" else plan  # the output layer is told of the ω before it
    omega = inner.omega if name in SINES else 1.0
    assert layer_function(name)(layer, role, MOMENTS, omega=omega, generator=seeded()) is layer
    whole = CoordinateMLP(type(blueprint)(name, (plan,)), dtype=torch.float64, generator=seeded()).layers[0]
    scale = 1.0 if role == "output" else plan.omega / omega
    torch.testing.assert_close(layer.weight, scale * whole.weight)
    if plan.bias is not None:
        torch.testing.assert_close(layer.bias, scale * whole.bias)


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.weight_norm, nn.utils.weight_norm])
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_a_layer_under_a_weight_norm(norm):
    """Its directions and lengths are set such that its matrix is what a plain layer would get."""
    plain, normed = nn.Linear(16, 16), norm(nn.Linear(16, 16))
    for layer in (plain, normed):
        uniform_phase_(layer, omega=30.0, generator=seeded())
    x = torch.randn(5, 16, generator=seeded(1))
    torch.testing.assert_close(normed(x), plain(x))


def test_omega_of_one_layer():
    plain, fast = (uniform_phase_(nn.Linear(8, 8), omega=omega, generator=seeded()) for omega in (1.0, 30.0))
    torch.testing.assert_close(plain.weight, 30 * fast.weight)
    torch.testing.assert_close(plain.bias, 30 * fast.bias)
    hidden, last = sm20_(nn.Linear(600, 600), omega=30.0), sm20_(nn.Linear(600, 1), "output", omega=30.0)
    # The largest of so many uniform numbers is within 1e-3 (5 % for the 600 of the last layer) of the bound.
    assert hidden.weight.detach().abs().max().item() == pytest.approx(math.sqrt(6 / 600) / 30, rel=1e-3)
    assert last.weight.detach().abs().max().item() == pytest.approx(math.sqrt(3 / 600) / 30, rel=0.05)


@pytest.mark.parametrize(
    ("layer", "arguments", "message"),
    [
        (
            nn.Linear(2, 16),
            (),
            r"weight has the shape \(16, 2\), but in uniform-phase a layer of the role 'hidden' has \(2, 2\); pass",
        ),
        (nn.Linear(2, 16), ("input",), "target is .*, but uniform-phase matches the moments of a signal"),
        (nn.Linear(16, 16, bias=False), (), r"the layer has no bias, but uniform-phase draws it from U\(±3.142\)"),
    ],
)
def test_a_layer_that_does_not_fit(layer, arguments, message):
    with pytest.raises(ValueError, match=message):
        uniform_phase_(layer, *arguments)


def test_a_hidden_layer_may_change_the_width_if_that_is_said():
    layer = uniform_phase_(nn.Linear(200, 300), "hidden", generator=seeded())
    # The mean square of 60,000 normal numbers has a relative standard error of √(2/60,000) = 0.6 %.
    assert layer.weight.detach().square().mean().item() == pytest.approx(2 / 200, rel=0.03)


def test_all_schemes_are_there_in_both_ways():
    names = {f"{scheme.blueprint.__name__}_" for scheme in SCHEMES.values()}
    assert names | {"initialize_"} == {name for name in upt.__all__ if name.endswith("_")}
