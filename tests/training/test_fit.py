import inspect
import math
import subprocess
import sys
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.fits import FIELD, MOMENTS, assert_identical, interrupted, network
from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.distributions import Normal
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import evaluate_network, predict
from uniphase.recipe import Recipe
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points
from uniphase.training.fit import fit
from uniphase.training.optimizers import unit_muon
from uniphase.training.sampling import choose
from uniphase.training.terms import Values


@pytest.fixture(autouse=True)
def standard_promotion(strict_promotion):
    """Optax mixes integers and floats."""
    with jax.numpy_dtype_promotion("standard"):
        yield


RAMP = Grid(np.arange(8.0)[:, None])

# What it computes.


def naive_fit(model, field, recipe, steps, seed=0):
    """The definition: the same batches, all samples at once, Optax step by step."""
    optimizer = (
        unit_muon(model, field, estimate_moments(field)) if recipe.optimizer == "muon" else optax.scale_by_adam()
    )
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    positions, values = jnp.asarray(field.coordinates(), jnp.float32), jnp.asarray(field.flat_values(), jnp.float32)

    @eqx.filter_jit
    def naive_step(model, state, indices):
        def loss(model):
            return jnp.mean(jnp.square(jax.vmap(model)(positions[indices]) - values[indices]))

        value, gradients = jax.value_and_grad(loss)(model)
        return value, *optimizer.update(gradients, state, model)

    losses = []
    for step in range(steps):
        key = jax.random.split(jax.random.key(seed), 1)[0]
        indices = choose(key, field.samples, min(recipe.batch, field.samples), step)
        value, updates, state = naive_step(model, state, indices)
        falling = recipe.final_fraction + (1 - recipe.final_fraction) * (1 + np.cos(np.pi * step / recipe.steps)) / 2
        if recipe.fall == "exponential":
            falling = math.exp(math.log(recipe.final_fraction) * step / recipe.steps)
        rate = recipe.learning_rate * falling
        model = eqx.apply_updates(model, jax.tree.map(lambda u, rate=rate: -rate * u, updates))
        losses.append(float(value))
    return model, np.array(losses)


@pytest.mark.parametrize(("optimizer", "fall"), [("muon", "cosine"), ("muon", "exponential"), ("adam", "cosine")])
@pytest.mark.parametrize("batch", [100, 10**9])
def test_fit_equals_its_definition(optimizer, fall, batch, monkeypatch):
    """Blocks, the compiled loop and positions from indices against the plain loop, over a few steps."""
    monkeypatch.setattr("uniphase.training.sampling._BLOCK_CPU", 64 * network().width)
    recipe = Recipe(optimizer, 0.01, 0.1, 12, batch, fall)
    expected, losses = naive_fit(network(), FIELD, recipe, 12)
    result = fit(network(), FIELD, recipe=recipe)
    # float32 losses and weights, summed in another order; Adam's first steps magnify it where gradients are near zero
    np.testing.assert_allclose(result.losses, losses, rtol=1e-3)
    for a, b in zip(jax.tree.leaves(result.network), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-2 * float(jnp.abs(b).max()))


def test_it_fits():
    with jax.numpy_dtype_promotion("strict"):
        result = fit(network(width=32), FIELD, steps=300)
    assert result.metrics.snr_db > 25
    assert (result.stop, result.steps, len(result.losses)) == ("steps", 300, 300)
    assert np.isfinite(result.losses).all()
    assert result.metrics.snr_db == pytest.approx(evaluate_network(result.network, FIELD).snr_db)


def test_deterministic_for_a_seed():
    first, again, other = (fit(network(), FIELD, steps=25, seed=seed, recipe=Recipe("muon", 0.05, 0.01, 25, 100))
                           for seed in (0, 0, 1))  # fmt: skip
    assert_identical(first.network, again.network)
    np.testing.assert_array_equal(first.losses, again.losses)
    assert not eqx.tree_equal(first.network, other.network)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_learns(name):
    model = network(scheme=name)
    result = fit(model, FIELD, steps=60)
    assert result.metrics.mse < 0.5 * evaluate_network(model, FIELD).mse


def test_points_and_integers_and_double_precision():
    x = np.random.default_rng(0).uniform(0, 5, (300, 1))
    points = Points(x, np.sin(3 * x))
    model = CoordinateMLP(uniform_phase(estimate_moments(points), width=16, depth=1), key=jax.random.key(0))
    assert fit(model, points, steps=150).metrics.snr_db > 20
    bytes_ = Grid((255 * FIELD.values).astype(np.uint8))
    model = CoordinateMLP(uniform_phase(estimate_moments(bytes_), width=16, depth=1), key=jax.random.key(0))
    assert fit(model, bytes_, steps=150).metrics.snr_db > 10
    with jax.enable_x64(True):
        assert fit(network(), FIELD, steps=10).network.layers[0].weight.dtype == jnp.float64


def test_a_test_field_is_measured():
    fine = load("camera", size=48)
    result = fit(network(), FIELD, steps=20, test=fine)
    assert result.test_metrics is not None
    assert result.test_metrics.mse == pytest.approx(evaluate_network(result.network, fine).mse)
    np.testing.assert_array_equal(result.test_prediction, predict(result.network, fine))


# Any optimizer, any module, any term.


def test_any_optimizer_of_optax():
    """`fit` with Optax's Adam is the loop that anybody would write with it."""
    recipe = Recipe("adam", 1e-3, 1.0, 15, 10**9)
    ours = fit(network(), FIELD, optimizer=optax.adam(1e-3), steps=15)
    expected = fit(network(), FIELD, recipe=recipe)
    assert ours.recipe.optimizer == "given"
    np.testing.assert_allclose(ours.losses, expected.losses, rtol=1e-5)  # the rate is multiplied in elsewhere
    schedule = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, 100)))
    assert fit(network(), FIELD, optimizer=schedule, steps=100).metrics.snr_db > 5


def test_weight_decay_does_not_touch_what_is_frozen():
    model = network(scheme="tanh-pe")
    for whole in (model, Squashed(model)):
        found = fit(whole, FIELD, optimizer=optax.adamw(1e-2, weight_decay=0.1), steps=5).network
        trained = found if whole is model else found.network
        np.testing.assert_array_equal(trained.layers[0].weight, model.layers[0].weight)
        assert not np.array_equal(trained.layers[1].weight, model.layers[1].weight)


class Squashed(eqx.Module):
    """A module with a network inside."""

    network: CoordinateMLP

    def __call__(self, x):
        return jax.nn.sigmoid(self.network(x))


class Borrowed(eqx.Module):
    """A module with the layers of a network."""

    layers: tuple

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return 2 * x


class Doubled(CoordinateMLP):
    """A network that computes something else than its class."""

    def __call__(self, x):
        return 2 * super().__call__(x)


def test_modules_made_from_networks_compute_what_they_say():
    """The fast path is for networks themselves."""
    model = network()
    doubled = Doubled(uniform_phase(MOMENTS, width=16, depth=2), key=jax.random.key(0))
    for module in (Squashed(model), Borrowed(model.layers), doubled):
        expected = jnp.square(jax.vmap(module)(jnp.asarray(FIELD.coordinates(), jnp.float32)) - FIELD.flat_values())
        found = fit(module, FIELD, optimizer=optax.sgd(0.0), steps=1)
        assert found.losses[0] == pytest.approx(float(expected.mean()), rel=1e-4)  # float32 phases


def test_a_line_search_sees_the_loss_of_its_batch():
    """L-BFGS asks for the value at other parameters."""
    result = fit(network(), FIELD, optimizer=optax.lbfgs(), steps=15)
    assert result.losses[-1] < 0.1 * result.losses[0]


@pytest.mark.parametrize("offset", [-5.0, 0.0])
def test_a_loss_may_be_negative_or_start_at_zero(offset):
    """An energy has no least value that is known; only what is far above the first loss has diverged."""
    model, centre = network(), jnp.zeros(2)
    start = model(centre)[0]

    def energy(network, key):
        return network(centre)[0] - start + offset + 0.1 * jax.random.normal(key)

    result = fit(model, energy, optimizer=optax.sgd(1e-3), steps=30)
    assert result.losses[-10:].mean() < result.losses[:10].mean()


def test_any_equinox_module_can_be_fitted(tmp_path):
    model = eqx.nn.MLP(2, 1, 32, 2, activation=jnp.sin, key=jax.random.key(0))
    result = fit(model, FIELD, steps=100)
    assert result.recipe.optimizer == "adam"
    assert result.metrics.mse < 0.5 * evaluate_network(model, FIELD).mse
    assert isinstance(result.network, eqx.nn.MLP)
    whole = fit(model, FIELD, steps=40)
    path = interrupted(tmp_path, model, FIELD, steps=40)
    assert_identical(
        eqx.filter(fit(model, FIELD, steps=40, checkpoint=path, resume=True).network, eqx.is_array),
        eqx.filter(whole.network, eqx.is_array),
    )
    with pytest.raises(
        ValueError, match=r"which needs a CoordinateMLP; the network is a MLP\. Pass optimizer=, or a recipe with adam"
    ):
        fit(model, FIELD, recipe=Recipe("muon", 0.1, 0.1, 10, 100))


def test_a_plain_function_is_a_loss():
    model = network()
    positions = jnp.asarray(FIELD.coordinates(), jnp.float32)
    values = jnp.asarray(FIELD.flat_values(), jnp.float32)

    def loss(network, key):
        chosen = jax.random.choice(key, len(values), (100,))
        return jnp.mean(jnp.square(network(positions[chosen]) - values[chosen]))

    result = fit(model, loss, optimizer=optax.adam(1e-2), steps=100)
    assert result.metrics is None
    assert result.field is None
    assert result.losses[-10:].mean() < 0.5 * result.losses[:10].mean()
    with pytest.raises(ValueError, match=r"pass domain=.* and moments=.*, or an optimizer="):
        fit(model, loss, steps=10)
    again = fit(model, loss, domain=[(-1.0, 1.0), (-1.0, 1.0)], moments=MOMENTS, steps=100)
    assert again.losses[-10:].mean() < 0.5 * again.losses[:10].mean()


def test_layers_of_different_widths_and_omegas_train_with_the_default_optimizer():
    plans = list(get_scheme("siren").blueprint(MOMENTS, width=16, depth=2).layers)
    sizes, omegas = [(24, 2), (32, 24), (8, 32), (1, 8)], [20.0, 3.0, 7.0, 1.0]
    plans = [
        replace(plan, rows=rows, columns=columns, omega=omega, weight=Normal(math.sqrt(2 / columns) / omega))
        for plan, (rows, columns), omega in zip(plans, sizes, omegas, strict=True)
    ]
    model = CoordinateMLP(Blueprint("uneven", tuple(plans)), key=jax.random.key(0))
    assert fit(model, FIELD, steps=300).metrics.snr_db > 10


# A signal alone.


def test_a_signal_alone_is_enough(capsys):
    values = np.asarray(FIELD.values)
    of_array = fit(values, steps=20, width=16, depth=1)
    assert "step 20/20" in capsys.readouterr().err
    of_field = fit(FIELD, steps=20, width=16, depth=1, progress=False)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(of_array.losses, of_field.losses)
    by_name = fit("camera", size=24, steps=20, width=16, depth=1, progress=False)
    np.testing.assert_array_equal(by_name.losses, of_field.losses)
    with pytest.raises(ValueError, match=r"fit got a network but no terms; call fit\(network, field\)"):
        fit(network())


def test_the_line_of_progress_ends_where_a_fit_ends(capsys):
    fit(FIELD, steps=20, width=16, depth=1, target_db=-100.0)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.rpartition("\r")[2].startswith("step 10/20")
    assert err.endswith("\n")


def test_a_frequency_for_the_schemes_that_have_one():
    options = {"steps": 10, "width": 16, "depth": 1, "progress": False}
    assert fit(FIELD, scheme="siren", omega=60.0, **options).blueprint.layers[0].omega == 60.0
    with pytest.raises(ValueError, match="omega is 60, but relu has none; leave it out, or choose from siren"):
        fit(FIELD, scheme="relu", omega=60.0, **options)


@pytest.mark.parametrize(("arguments", "options", "message"), [
    ((FIELD,), {"step": 5}, "^fit has no option 'step'; did you mean steps"),
    ((FIELD,), {"blueprint": None}, r"^blueprint is an option of fit\(network, terms\) only; leave it out$"),
    ((None, FIELD), {"scheme": "siren"}, r"^scheme is an option of fit\(signal\) only; leave it out$"),
    ((None, FIELD), {"quux": 1}, "^fit has no option 'quux'; its options are recipe, optimizer, steps"),
])  # fmt: skip
def test_unknown_options_are_refused(arguments, options, message):
    with pytest.raises(TypeError, match=message):
        fit(*arguments, **options)


def test_help_shows_every_option():
    parameters = inspect.signature(fit).parameters
    assert {"scheme", "omega", "noise", "recipe", "optimizer", "steps", "callback", "resume"} < set(parameters)
    documented = inspect.getdoc(fit).partition("**Returns:**")[0]
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            assert f"`{name}`" in documented, name


def test_scalars_are_no_positions():
    model = eqx.nn.MLP("scalar", "scalar", 8, 1, key=jax.random.key(0))
    with pytest.raises(
        ValueError, match="the MLP has in_size='scalar', but a position is a vector; make it with in_size=1"
    ):
        fit(model, Points(np.linspace(0, 1, 20), np.linspace(0, 1, 20)), steps=5)


@pytest.mark.parametrize(("arguments", "message"), [
    (lambda: (network(), Grid(np.zeros((8, 8, 3)))), "the network has 1 channel, but the field has 3; draw it from"),
    (lambda: (network(), Grid(np.zeros((8, 1)))), "the field has 1 coordinate, but the network does not"),
    (lambda: (network(), Values(FIELD, estimate_moments(RAMP))), "moments are those of 1 coordinate and 1 channel"),
    (lambda: (network(), []), "terms is empty; pass a field"),
    (lambda: (network(), 3), "terms has a int; pass a field"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:the signal is constant")
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(*arguments(), steps=5)


def test_what_is_wrong_with_a_test_is_known_before_the_fit():
    with pytest.raises(ValueError, match="the network has 1 channel, but the field has 3"):
        fit(network(), FIELD, steps=10**9, test=Grid(np.random.default_rng(0).normal(size=(8, 8, 3))))
    with pytest.raises(ValueError, match=r"optimizer is 'adam'; pass one of Optax, e.g. optax.adam\(1e-3\)"):
        fit(network(), FIELD, optimizer="adam")  # which the types do not allow either


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_are_checked(seed):
    with pytest.raises(ValueError, match=f"seed is {seed}; it must lie between 0 and"):
        fit(network(), FIELD, steps=5, seed=seed)


@pytest.mark.parametrize("seed", [1.5, "1"])
def test_seeds_are_integers(seed):
    with pytest.raises(ValueError, match=f"seed is {seed!r}; it must be an integer"):
        fit(network(), FIELD, steps=5, seed=seed)


LARGE = """
import resource, sys
import jax, numpy as np
import uniphase as up

shape = {"image": (8192, 8192, 3), "sound": (44_100 * 3600, 1)}[sys.argv[1]]
values = np.empty(shape, np.float32)
rows = values.reshape(-1, shape[-1])
for start in range(0, len(rows), 1 << 22):
    part = rows[start : start + (1 << 22)]
    part[:] = 0.5 * np.sin(0.01 * np.arange(start, start + len(part)))[:, None]
field = up.Grid(values, medium="sound" if sys.argv[1] == "sound" else "rgb")
moments = up.estimate_moments(field)
network = up.CoordinateMLP(up.uniform_phase(moments, width=32, depth=1), key=jax.random.key(0))
up.fit(network, field, steps=20, moments=moments)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - values.nbytes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["image", "sound"])
def test_large_signals_fit_in_two_gigabytes_beyond_themselves(signal):
    """8192 × 8192 RGB pixels, or an hour of sound: moments, training and metrics, with all that Python itself takes."""
    done = subprocess.run([sys.executable, "-c", LARGE, signal], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2e9


def test_a_fit_can_be_looked_at_while_it_runs_and_left_unmeasured():
    seen = []
    result = fit(network(), FIELD, steps=10, measure=False, callback=seen.append)
    assert (result.metrics, result.prediction) == (None, None)
    (progress,) = seen
    assert progress.seconds == result.seconds
    assert 0 < progress.rate < result.recipe.learning_rate  # it has fallen
    assert_identical(progress.network, result.network)
