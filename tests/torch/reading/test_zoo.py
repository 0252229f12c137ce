"""Every structure of the zoo: what is read, whether the function has the law, and that a refusal's way out works."""

import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import OUTPUT_SCALE, get_scheme, uniform_phase

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from torch import nn  # noqa: E402

from helpers import zoo, zoo_training  # noqa: E402
from helpers.excess import moment_excesses  # noqa: E402
from helpers.torch_models import Sine, Skipping, sequential  # noqa: E402
from uniphase.torch.diagnostics import diagnose  # noqa: E402
from uniphase.torch.initialization import draw_layers_, initialize_, plan_chain, uniform_phase_  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.reading import StatedLayers, read_layers  # noqa: E402

MOMENTS = prescribe_moments(
    mean=[1.0, -2.0, 0.5], covariance=[[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.1]], length_scale=[0.2, 0.5]
)
PICTURE = prescribe_moments(mean=[0.5, 0.3, 0.7], covariance=[0.08, 0.04, 0.02], length_scale=[0.2, 0.5])
X = torch.rand(20, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def seeded(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def started(depth: int) -> CoordinateMLP:
    """What `initialize_` is to make of a model: the blueprint's network, with a small output."""
    blueprint = uniform_phase(MOMENTS, width=zoo.WIDTH, depth=depth, output_scale=OUTPUT_SCALE)
    return CoordinateMLP(blueprint, dtype=torch.float64, generator=seeded())


def channels(model, x=X):
    result = model(x)
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("entry", zoo.EVERY.values(), ids=zoo.EVERY)
def test_it_is_read(entry):
    model = entry.make().double()
    chain = read_layers(model)
    found = [(layer.name, layer.activation, layer.omega, layer.gain) for layer in chain.layers]
    assert found == [
        (name, kind, pytest.approx(omega), pytest.approx(gain)) for name, kind, omega, gain in entry.layers
    ]
    torch.testing.assert_close(chain(X), channels(model), rtol=0, atol=1e-9)  # float64 phases of some hundred
    assert (chain.in_size, chain.out_size) == (2, 3)


@pytest.mark.parametrize("entry", zoo.READ.values(), ids=zoo.READ)
def test_the_function_is_that_of_the_blueprint(entry):
    model = initialize_(entry.make().double(), MOMENTS, generator=seeded())
    expected = started(len(entry.layers) - 2)(X)
    sign = -1.0 if entry is zoo.READ["1 - y"] else 1.0  # the weights are those of the mirrored output
    mean = torch.tensor(MOMENTS.mean)
    torch.testing.assert_close(channels(model), mean + sign * (expected - mean), rtol=0, atol=1e-9)  # float64


def samples_of_moments(model, moments, count: int) -> np.ndarray:
    """What `moment_excesses` takes, of a model that is drawn again and again. It is read only once."""
    chain = read_layers(model)
    plans = plan_chain(chain, moments, get_scheme("uniform-phase"), {})
    precision, generator, rows = np.linalg.inv(moments.covariance), seeded(1), []
    point = X[:3].clone().requires_grad_(True)  # the same position for each channel, whose slopes are then one gradient
    point.data[:] = X[:1]
    for _ in range(count):
        draw_layers_(chain, plans, generator)
        values = channels(model, point)
        jacobian = torch.autograd.grad(values.trace(), point)[0].numpy()
        centered = values[0].detach().numpy() - moments.mean
        rows.append([*centered, *np.outer(centered, centered).ravel(), *(jacobian.T @ precision @ jacobian).ravel()])
    return np.array(rows)


@pytest.mark.parametrize("entry", zoo.IN_LAW.values(), ids=zoo.IN_LAW)
def test_the_function_has_the_law_of_the_blueprint(entry):
    samples = samples_of_moments(entry.make().double(), MOMENTS, 800)
    assert max(moment_excesses(samples, MOMENTS)) < 1


def test_the_law_of_a_plain_chain_would_not_do_for_a_residual_network(monkeypatch):
    """The same comparison, with the gain of the sum left out."""
    monkeypatch.setattr("uniphase.torch.reading.chain.ReadLayer.gain", property(lambda layer: 1.0))
    samples = samples_of_moments(Skipping().double(), MOMENTS, 800)
    _, covariance, structure = moment_excesses(samples, MOMENTS)
    assert covariance > 1
    assert structure > 1


@pytest.mark.parametrize("entry", zoo.SQUASHED.values(), ids=zoo.SQUASHED)
def test_moments_come_out_of_a_squash(entry):
    samples = samples_of_moments(entry.make().double(), PICTURE, 1500)
    found, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    expected = np.concatenate([np.zeros(3), PICTURE.covariance.ravel(), PICTURE.structure_tensor.ravel()])
    # The sum over 16 neurons is not quite Gaussian, which changes what comes out by up to four percent.
    tolerance = 5 * error + 0.05 * np.abs(expected)
    assert (np.abs(found - expected) < tolerance).all()
    assert (np.abs(found - 1.5 * expected) > tolerance)[[3, 7, 11, 12, 15]].all()  # variances and Ω: told apart


@pytest.mark.slow
@pytest.mark.parametrize("entry", zoo.EVERY.values(), ids=zoo.EVERY)
def test_training_is_not_worse_for_it(entry):
    """The table of this in docs/models.md is made by benchmarks/zoo.py."""
    before, after = (
        np.mean([zoo_training.train(entry, seed, initialized=initialized) for seed in range(3)], axis=0)
        for initialized in (False, True)
    )
    assert (after > before - 0.3).all(), (before, after)  # the fitted half and the other, in dB


@pytest.mark.parametrize("name", ["x @ W.T + b", "ω first", "y/2 + 1/2", "convolutions"])
def test_schemes_with_an_omega_take_what_multiplies_the_weights(name):
    model = initialize_(zoo.READ[name].make().double(), scheme="sm20", generator=seeded())
    first, second = (layer.omega * layer.gain for layer in read_layers(model).layers[:2])
    blueprint = get_scheme("sm20").blueprint((2, 3), width=zoo.WIDTH, depth=1, omega=first, hidden_omega=second)
    expected = CoordinateMLP(blueprint, dtype=torch.float64, generator=seeded())(X)
    found = channels(model) if name != "y/2 + 1/2" else 2 * channels(model) - 1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)  # float64 phases of some hundred


def test_the_old_weight_norm():
    with pytest.warns(FutureWarning, match="weight_norm"):
        model = zoo.weight_normed(nn.utils.weight_norm).double()
    model(X)  # from now on it has a weight that cannot be copied
    initialize_(model, MOMENTS, generator=seeded())
    expected = started(1)(X)
    torch.testing.assert_close(model(X), expected, rtol=0, atol=1e-9)  # float64


def test_convolutions_of_images():
    model = initialize_(zoo.Convolving(inside=False).double(), MOMENTS, generator=seeded())
    expected = started(1)(X)
    picture = X.T.reshape(1, 2, 4, 5)
    torch.testing.assert_close(model(picture).reshape(3, 20).T, expected, rtol=0, atol=1e-9)  # float64


def test_fourier_features_of_other_forms():
    class Separate(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoding, self.net = nn.Linear(2, 8, bias=False), sequential(nn.Tanh())
            self.net[0] = nn.Linear(16, 16)

        def forward(self, x):
            z = 2 * np.pi * self.encoding(x)
            return self.net(torch.cat((z.sin(), z.cos()), -1))

    assert [layer.activation for layer in read_layers(Separate()).layers] == ["sincos", "tanh", "linear"]


# Refusals. Each test follows the way out that the message names.


def refusal(model) -> str:
    with pytest.raises(ValueError, match=r"; ") as caught:
        read_layers(model)
    return str(caught.value)


ONE_BY_ONE = 'or initialize its layers one by one, e.g. uniform_phase_(model.first, "input", moments, omega=30.0)'


@pytest.mark.parametrize(
    ("make", "layers", "said"),
    [
        (zoo.Multiplicative, ["a", "b", "hidden", "last"], "the model Multiplicative multiplies two activations"),
        (zoo.Concatenating, ["first", "second", "last"], "the model Concatenating joins the activations of different"),
    ],
)
def test_what_is_no_chain_is_initialized_layer_by_layer(make, layers, said):
    model = make()
    message = refusal(model)
    assert message.startswith(said)
    assert message.endswith(ONE_BY_ONE)
    for name in layers:
        layer = getattr(model, name)
        role = "input" if layer.in_features == 2 else "output" if name == "last" else "hidden"
        uniform_phase_(layer, role, MOMENTS, omega=30.0 if name == "first" else 1.0)
    assert model(X.float()).isfinite().all()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: nn.LayerNorm(3), r"module 'after.1' (LayerNorm) computes 'layer_norm', which is not read"),
        (lambda: nn.Softmax(dim=-1), r"module 'after.1' (Softmax) computes 'softmax', which is not read"),
        (lambda: zoo.Lambda(lambda y: y.clamp(0, 1)), r"module 'after.1' (Lambda) computes 'clamp', which is not read"),
        (lambda: zoo.Lambda(lambda y: torch.einsum("ni->in", y)), r"module 'after.1' (Lambda) computes 'einsum'"),
    ],
)
def test_the_part_that_is_a_chain_is_read(made, said):
    model = zoo.Around(after=nn.Sequential(nn.Identity(), made()))
    message = refusal(model)
    assert message.startswith(said)
    assert "e.g. model.net" in message
    assert len(read_layers(model.net).layers) == 3


def test_positions_that_choose_what_is_computed():
    model = zoo.Branching()
    message = refusal(model)
    assert message.startswith("the model Branching computes other layers, or with other factors, at other positions")
    assert "e.g. model.net" in message
    assert len(read_layers(model.net).layers) == 2


def test_frequencies_of_single_neurons():
    model = zoo.Modulated()
    message = refusal(model)
    assert message.startswith("the model Modulated has another ω for each neuron, which is not read; make ω one number")
    model.frequency = nn.Parameter(torch.tensor(30.0))
    assert read_layers(model).layers[0].omega == 30


def test_linear_layers_in_a_row():
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 16), Sine(30.0), nn.Linear(16, 3))
    message = refusal(model)
    assert message.startswith("module '1' (Linear) follows another linear layer without an activation between them")
    assert "merge them into one layer of the weight W₂W₁ and the bias W₂b₁ + b₂" in message
    merged = nn.Sequential(nn.Linear(2, 16), model[2], model[3])
    with torch.no_grad():
        merged[0].weight.copy_(model[1].weight @ model[0].weight)
        merged[0].bias.copy_(model[1].weight @ model[0].bias + model[1].bias)
    torch.testing.assert_close(merged(X.float()), model(X.float()), rtol=0, atol=1e-4)  # float32 phases of some ten
    assert len(read_layers(merged).layers) == 2


def test_weights_that_are_computed():
    message = refusal(zoo.NormedByHand())
    assert message.startswith(
        "the model NormedByHand has weights that are computed from v, which is not read; keep them"
    )
    assert "with torch.nn.utils.parametrizations.weight_norm" in message
    assert read_layers(zoo.weight_normed(nn.utils.parametrizations.weight_norm)).layers[0].name == "0"


def test_other_parametrizations():
    model = zoo.weight_normed(nn.utils.parametrizations.spectral_norm)
    message = refusal(model)
    assert message.startswith("module '0' (ParametrizedLinear) has weights that are computed from 0.parametrizations.")
    assert 'torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")' in message
    for layer in (model[0], model[2], model[4]):
        nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert len(read_layers(model).layers) == 3


def test_dictionaries():
    model = zoo.InDictionaries()
    message = refusal(model)
    assert message.startswith("the model InDictionaries does not take positions (n, in_size) (")
    assert message.endswith('self.model({"coords": x})["model_out"]')
    assert [layer.name for layer in read_layers(zoo.Unpacked(model)).layers] == [f"model.net.{i}" for i in (0, 2, 4)]

    class Returning(zoo.Branching):
        def forward(self, x):  # pyright: ignore[reportIncompatibleMethodOverride]
            return {"model_in": x, "model_out": self.net(x)}

    said = "the model Returning returns a dict with the keys model_in, model_out, not a tensor; pass a module around it"
    assert refusal(Returning()).startswith(said)


@pytest.mark.parametrize(
    ("back", "said"),
    [
        (torch.tensor, "the model ByNumPy returns what no operation of PyTorch computed from the positions; state its"),
        (
            torch.from_numpy,
            "the model ByNumPy computes in compiled code or outside of PyTorch, which is not read; state",
        ),
    ],
)
def test_what_numpy_computed_can_be_stated(back, said):
    class ByNumPy(zoo.Branching):
        def forward(self, x):
            return back(self.net(x).detach().numpy().copy())

    model = ByNumPy()
    assert refusal(model).startswith(said)
    layers = [(model.net[0], "sine", 30.0), (model.net[2], "linear", 1.0)]
    assert len(read_layers(StatedLayers(model, layers)).layers) == 2


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
def test_scripted_models_can_be_stated():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(2, 16), nn.Linear(16, 3)

        def forward(self, x):
            return self.last(torch.sin(30.0 * self.first(x)))

    model = torch.jit.script(Plain().double())
    message = refusal(model)
    assert message.startswith("the model RecursiveScriptModule computes in compiled code or outside")
    stated = StatedLayers(model, [(model.first, "sine", 30.0), (model.last, "linear", 1.0)])
    assert initialize_(stated, MOMENTS, generator=seeded()) is stated
    expected = started(0)(X)
    torch.testing.assert_close(model(X), expected, rtol=0, atol=1e-9)  # float64


def test_sums_have_no_law_in_other_schemes():
    model = Skipping().double()
    with pytest.raises(
        ValueError, match=r"layer 'last' takes a sum of layers, for which sm20 has no law; pass scheme='u"
    ):
        initialize_(model, MOMENTS, "sm20")
    initialize_(model, MOMENTS, scheme="uniform-phase")


def test_sums_are_not_examined():
    from uniphase.signals.fields import Grid

    model = Skipping()
    field = Grid(np.random.default_rng(0).normal(size=(8, 8, 3)))
    with pytest.raises(
        ValueError, match=r"'last' takes a sum of 2 layers, .*initialize_\(model, moments\) takes the mod"
    ):
        diagnose(model, field)
    initialize_(model, MOMENTS)


def test_a_signal_that_a_squash_cannot_give():
    model = zoo.SQUASHED["sigmoid"].make()
    with pytest.raises(
        ValueError, match=r"mean of the signal is \[1.0, -2.0, 0.5\], .* sigmoid, .* between \[0.0, 0.0, 0.0"
    ):
        initialize_(model, MOMENTS)
    values = np.random.default_rng(0).normal(1.0, 2.0, size=(16, 16, 3))
    values = (values - values.min()) / (values.max() - values.min())  # as the message says
    initialize_(
        model, prescribe_moments(mean=values.mean((0, 1)), covariance=values.var((0, 1)), length_scale=[1.0, 1.0])
    )
