import copy
import inspect
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from uniphase.fitting.plan import Diverged
from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.recipe import Recipe, default_recipe
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers.interrupts import Interrupt  # noqa: E402
from helpers.markup import Seen  # noqa: E402
from helpers.notebooks import fake_notebook  # noqa: E402
from helpers.torch_models import OfficialSiren, Sine, SineLayer, Skipping, sequential  # noqa: E402
from helpers.zoo import Concatenating  # noqa: E402
from uniphase.torch.files import load_network  # noqa: E402
from uniphase.torch.fit import fit  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.render import evaluate_network, render  # noqa: E402

FIELD = load("camera", size=24)
MOMENTS = estimate_moments(FIELD)
BLUEPRINT = uniform_phase(MOMENTS, width=16, depth=2)
COLORS = Grid(np.random.default_rng(0).normal(size=(8, 9, 3)))


def seeded(seed: int = 0):
    return torch.Generator().manual_seed(seed)


def network(seed: int = 0, **options) -> CoordinateMLP:
    return CoordinateMLP(BLUEPRINT, generator=seeded(seed), **options)


def same(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


# What is fitted.


def test_a_model_is_trained_in_place():
    model, before = network(), evaluate_network(network(), FIELD).snr_db
    result = fit(model, FIELD, steps=40, samples="points")
    assert result.network is model
    assert result.metrics == evaluate_network(model, FIELD)
    assert result.metrics.snr_db > before + 10
    assert (result.stop, result.steps, result.seed, result.sampling) == ("steps", 40, 0, "points")
    assert result.recipe.learning_rate == default_recipe(FIELD, model).learning_rate
    assert result.losses.shape == (40,)
    assert result.losses[-1] == pytest.approx(result.metrics.mse, rel=0.2)  # of a full batch, before the last step
    assert not any(parameter.requires_grad is False for parameter in model.parameters())


@pytest.mark.parametrize(
    "make",
    [
        OfficialSiren,
        Skipping,
        Concatenating,
        lambda: torch.nn.Sequential(SineLayer(2, 16, 5.0), torch.nn.Linear(16, 3)),
    ],
)
def test_any_module_is_trained(make):
    """Muon where the layers can be read, otherwise Adam."""
    torch.manual_seed(0)
    result = fit(make(), COLORS, steps=150)
    assert result.losses[-1] < 0.9 * result.losses[0]
    assert result.recipe.optimizer == ("adam" if make is Concatenating else "muon")


class OneNumber(torch.nn.Module):
    """It returns (n,), and draws random numbers while it is trained."""

    def __init__(self):
        super().__init__()
        self.net, self.drop = network(), torch.nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.net(x))[:, 0]


def test_a_model_keeps_its_mode():
    model = OneNumber().train()
    result = fit(model, FIELD, steps=5)
    assert model.training
    assert model.drop.training
    assert result.metrics == evaluate_network(model, FIELD, average=True)  # without dropout, so the same again


def test_a_signal_alone_gets_a_network():
    result = fit("camera", size=16, steps=60, progress=False, seed=1)
    again = fit(load("camera", size=16), steps=60, progress=False, seed=1)
    assert (result.sampling, result.blueprint.width) == ("averages", 32)  # there are more parameters than samples
    assert same(result.network, again.network)
    assert result.metrics.snr_db > 12
    assert (
        fit("camera", size=16, steps=1, width=8, depth=1, scheme="sm20", omega=10.0, progress=False).blueprint.width
        == 8
    )


def test_progress_is_a_line(capsys):
    fit("camera", size=16, steps=10)
    assert "step 10/10  SNR" in capsys.readouterr().err


def test_in_a_notebook_it_is_shown_live(monkeypatch, capsys):
    shown = fake_notebook(monkeypatch)
    fit(network(), FIELD, steps=20)
    fit("camera", size=16, steps=20, width=8, depth=1)
    assert [text.partition(" in ")[0] for text, _ in shown].count("20 steps") == 2
    count = len(shown)
    result = fit(network(), FIELD, steps=20, callback=None)
    assert len(shown) == count
    assert capsys.readouterr().err == ""
    for each in (result, replace(result, prediction=None)):
        assert [picture.shape for picture in Seen(each._repr_html_()).images] == [(24, 24)]


def test_samples_are_averages_where_the_network_could_overshoot():
    coarse = load("camera", size=12)
    model = CoordinateMLP(uniform_phase(estimate_moments(coarse), width=32, depth=2), generator=seeded())
    result = fit(model, coarse, steps=150)
    assert result.sampling == "averages"
    assert result.metrics == evaluate_network(model, coarse, average=True)
    # Two positions in a cell tell its mean: the means are learned, and the values in the middle are others.
    assert result.metrics.snr_db > evaluate_network(model, coarse).snr_db + 3


def test_missing_samples_are_left_out():
    values = FIELD.values.copy()
    values[5:9, 3:20] = np.nan
    holed = Grid(values, extents=FIELD.extents)
    result = fit(network(), holed, steps=40, samples="points")
    assert np.isfinite(result.losses).all()
    assert np.isfinite(result.prediction).all()
    assert result.metrics.snr_db > 10


def test_scattered_points_and_bytes():
    positions = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    points = Points(positions, np.sin(3 * positions[:, :1]))
    assert fit(network(), points, steps=40).metrics.snr_db > 10
    pixels = Grid(np.round(255 * FIELD.values).astype(np.uint8), value_range=(0.0, 255.0))
    model = CoordinateMLP(uniform_phase(estimate_moments(pixels), width=16, depth=2), generator=seeded())
    assert fit(model, pixels, steps=40).metrics.snr_db > 10


def test_noise_is_not_learned():
    noisy = Grid(FIELD.values + 0.1 * np.random.default_rng(0).normal(size=FIELD.values.shape), extents=FIELD.extents)
    result = fit(network(), noisy, noise=0.1, samples="points", steps=1000)
    assert result.stop == "noise"
    assert result.steps < 1000
    assert result.metrics.mse == pytest.approx(0.01, rel=0.1)  # it ends at the variance of the noise


def test_double_precision_and_a_test_field():
    result = fit(network(dtype=torch.float64), FIELD, steps=5, test=load("camera", size=48))
    assert result.prediction.dtype == np.float64
    assert result.test_prediction.shape == (48, 48, 1)
    assert result.test_metrics.snr_db < result.metrics.snr_db + 5


def test_a_large_batch_goes_in_parts_of_the_same_sum(monkeypatch):
    models = [network(dtype=torch.float64) for _ in range(2)]
    losses = [fit(models[0], FIELD, steps=5, samples="averages").losses]
    monkeypatch.setattr("uniphase.torch.steps.BATCH", 100)
    losses.append(fit(models[1], FIELD, steps=5, samples="averages").losses)
    np.testing.assert_allclose(*losses, rtol=1e-9)  # sums in another order, through Muon
    torch.testing.assert_close(models[0](torch.ones(2).double()), models[1](torch.ones(2).double()), rtol=0, atol=1e-9)


# How it is fitted.


def test_an_optimizer_of_pytorch():
    model = network()
    adam = torch.optim.Adam(model.parameters(), lr=torch.tensor(5e-3))
    first = fit(model, FIELD, optimizer=adam, steps=20)
    assert first.recipe == Recipe("given", 1.0, 1.0, 20, FIELD.samples)
    assert first.losses[-1] < 0.8 * first.losses[0]
    assert float(adam.param_groups[0]["lr"]) == pytest.approx(5e-3, rel=1e-6)  # float32
    search = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
    assert fit(model, FIELD, optimizer=search, steps=5).losses[-1] < 0.5 * first.losses[-1]


def test_a_recipe_and_its_rate():
    """A full batch at a constant rate is a loop that anybody would write."""
    models = [network(dtype=torch.float64) for _ in range(2)]
    fit(models[0], FIELD, recipe=Recipe("adam", 2.0**-8, 1.0, 7, FIELD.samples), samples="points")
    x, y = torch.tensor(FIELD.coordinates()), torch.tensor(FIELD.flat_values()).double()
    adam = torch.optim.Adam(models[1].parameters(), lr=2.0**-8)
    for _ in range(7):
        adam.zero_grad()
        ((models[1](x) - y).square().mean() / np.var(FIELD.values)).backward()
        adam.step()
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)  # the units of the loss differ by Adam's ε


def test_stops_and_the_callback(monkeypatch):
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    seen = []
    result = fit(network(), FIELD, steps=500, target_db=10.0, callback=seen.append)
    assert result.stop == seen[-1].stop == "target"
    assert [progress.step for progress in seen] == list(range(10, result.steps + 1, 10))
    assert seen[-1].snr_db >= 10
    timed = fit(network(), FIELD, steps=10**6, seconds=0.2)
    assert timed.stop == "seconds"
    assert timed.seconds >= 0.2


def test_the_seed_draws_the_batches():
    recipe = Recipe("muon", 0.02, 0.1, 10, 50)
    losses = [fit(network(), FIELD, recipe=recipe, seed=seed).losses for seed in (0, 0, 1)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert (losses[0] != losses[2]).all()


# Interruptions and divergence.


@pytest.mark.parametrize("optimizer", ["muon", "adam", "given"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(optimizer, tmp_path, monkeypatch):
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    path = tmp_path / "state"

    def run(**options):
        model = network()
        if optimizer == "given":
            options["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        recipe = Recipe("adam" if optimizer == "given" else optimizer, 0.02, 0.1, 95, 100)
        return fit(model, FIELD, recipe=recipe, samples="averages", **options)

    whole = run()
    for calls in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            run(checkpoint=path, resume=True, callback=Interrupt(calls))
    rest = run(checkpoint=path, resume=True, checkpoint_seconds=0.0)
    assert same(rest.network, whole.network)
    np.testing.assert_array_equal(rest.losses, whole.losses)
    again = run(checkpoint=path, resume=True)  # which had ended
    assert same(again.network, whole.network)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit(network(), FIELD, steps=20, checkpoint=path, callback=Interrupt(1))
    flipped = Grid(np.flip(FIELD.values, axis=0), extents=FIELD.extents)
    for model, field, options in [
        (network(), FIELD, {"seed": 1}),
        (network(seed=1), FIELD, {}),
        (network(), flipped, {"moments": MOMENTS}),
        (network(), FIELD, {"samples": "points"}),
        (network(), FIELD, {"recipe": Recipe("adam", 1e-3, 0.1, 20, 10)}),
        (sequential(Sine(), width=8).double(), COLORS, {}),
    ]:
        with pytest.raises(ValueError, match=r"a checkpoint of another run|resume with the settings of the saved run"):
            fit(model, field, steps=20, checkpoint=path, resume=True, **options)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="cannot be read as a training state"):
        fit(network(), FIELD, steps=20, checkpoint=path, resume=True)


def test_a_fit_that_explodes_goes_back_with_a_smaller_step():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(network(), FIELD, recipe=Recipe("adam", 3.0, 1.0, 40, 10**9), samples="points")
    assert any("exploded at step" in str(warning.message) for warning in caught)
    assert np.isfinite(result.losses).all()
    assert all(parameter.isfinite().all() for parameter in result.network.parameters())


def test_a_fit_that_keeps_diverging_leaves_the_model_as_it_was():
    model = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Diverged, match="the fit diverged 6 times"):
            fit(model, FIELD, recipe=Recipe("adam", 1e30, 1.0, 40, 10**9))
    assert same(model, network())


# Results.


def test_the_result_is_quantized(tmp_path):
    result = fit(network(), FIELD, steps=20, test=FIELD, blueprint=BLUEPRINT)
    small = result.quantized(8, test=FIELD)
    assert (small.bits, small.exact_metrics) == (8, result.metrics)
    assert small.metrics == small.test_metrics == evaluate_network(small.network, FIELD, average=True)
    assert same(result.network, small.network) is False
    small.save(tmp_path / "a.uniphase")
    assert same(load_network(tmp_path / "a.uniphase").network, small.network)
    with pytest.raises(ValueError, match="the network is a OfficialSiren, but only a CoordinateMLP is quantized"):
        fit(OfficialSiren(), COLORS, steps=1).quantized(8)


def test_the_result_renders_and_is_saved(tmp_path):
    result = fit(network(), FIELD, steps=5, blueprint=BLUEPRINT, samples="averages")
    assert result.render((48, 40)).shape == (48, 40, 1)
    thumbnail = render(result.network, (6, 6), extents=FIELD.extents, average=True, nodes=10)
    np.testing.assert_array_equal(result.render((6, 6)), thumbnail)
    result.save(tmp_path / "a.uniphase", training={"signal": "camera"})
    file = load_network(tmp_path / "a.uniphase")
    assert same(file.network, result.network)
    assert (file.training["steps"], file.training["signal"], file.domain.sampling) == (5, "camera", "averages")
    assert file.blueprint == BLUEPRINT
    other = fit(OfficialSiren(), COLORS, steps=1)
    with pytest.raises(ValueError, match="network is a OfficialSiren, whose layers cannot be saved"):
        other.save(tmp_path / "b.uniphase")
    assert not (tmp_path / "b.uniphase").exists()


# What does not fit.


class Dictionary(torch.nn.Linear):
    def forward(self, x):
        return {"model_out": super().forward(x)}


def frozen():
    return network().requires_grad_(False)


@pytest.mark.parametrize(
    ("model", "field", "options", "message"),
    [
        (network, None, {}, r"fit got a model but no field; call fit\(model, field\)"),
        (lambda: abs, FIELD, {}, "model is a builtin_function_or_method; pass a torch.nn.Module"),
        (network, FIELD.values, {}, "field is a ndarray; pass a Grid or Points"),
        (network, COLORS, {}, "the model has 1 channel, but the field has 3"),
        (lambda: torch.nn.Linear(3, 1), FIELD, {}, "the field has 2 coordinates, but the model does not accept"),
        (
            lambda: Dictionary(2, 1),
            FIELD,
            {},
            "the model returns a dict; wrap it in a module",
        ),
        (frozen, FIELD, {}, r"the model has no parameters to train; call model.requires_grad_\(\)"),
        (network, FIELD, {"seconds": 0.0}, "seconds is 0; it must be positive"),
        (network, FIELD, {"target_db": math.inf}, "target_db is inf; it must be finite"),
        (network, FIELD, {"noise": -1.0}, "noise is -1.0; pass a standard deviation"),
        (network, FIELD, {"samples": "cells"}, "samples is 'cells'; it must be 'points' or 'averages'"),
        (network, Points(np.eye(2), np.eye(2)[:, :1]), {"samples": "averages"}, "scattered points have no cells"),
        (network, FIELD, {"moments": prescribe_moments(length_scale=1.0)}, "moments are those of 1 coordinate and"),
        (network, FIELD, {"test": COLORS}, "the model has 1 channel, but the field has 3"),
        (network, FIELD, {"seed": -1}, "seed is -1; it must lie between 0"),
        (network, FIELD, {"optimizer": "adam"}, "optimizer is 'adam'; pass one of PyTorch"),
        (network, FIELD, {"optimizer": torch.optim.SGD([torch.ones(1)])}, "optimizer has no parameter of the model"),
        (
            Concatenating,
            COLORS,
            {"recipe": Recipe("muon", 0.1, 1.0, 5, 9)},
            "optimizer is 'muon', but .* recipe with",
        ),
    ],
)
def test_what_does_not_fit_is_told(model, field, options, message):
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(fit)(model(), field, **options)


def test_options_are_known():
    with pytest.raises(TypeError, match=r"fit has no option 'setps'; did you mean steps\?"):
        fit(network(), FIELD, setps=3)
    with pytest.raises(TypeError, match=r"width is an option of fit\(signal\) only"):
        fit(network(), FIELD, width=3)
    with pytest.raises(TypeError, match=r"blueprint is an option of fit\(model, field\) only"):
        fit("camera", blueprint=BLUEPRINT)
    assert {"steps", "scheme", "samples", "device"} <= set(inspect.signature(fit).parameters)


def test_a_copy_of_a_fitted_model_is_its_own():
    model = network()
    fit(model, FIELD, steps=2)
    twin = copy.deepcopy(model)
    fit(model, FIELD, steps=2)
    assert not same(model, twin)
