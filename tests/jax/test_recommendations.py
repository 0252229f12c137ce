"""What the doctor recommends runs on the network that it was recommended for, and training is better for it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import uniphase
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import relu, sm20, uniform_phase
from uniphase.jax.diagnostics import diagnose
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.datasets import load
from uniphase.signals.fields import Field, Grid, Points

KEY = jax.random.key(0)
TIME = np.linspace(-100, 100, 20_000)
# As Bach's, its frequencies are far above those of a SIREN's first layer on this interval.
SOUND = Grid(0.2 * np.sin(137 * TIME)[:, None], extents=(-100.0, 100.0), align="corners")
PHOTO = load("camera", size=64)
# The four cases of docs/doctor.md.
CASES = {
    "uniform-phase, photo": (lambda: uniform_phase(estimate_moments(PHOTO), width=32, depth=2), PHOTO),
    "SIREN, photo": (lambda: sm20((2, 1), width=32, depth=4, omega=30.0), PHOTO),
    "SIREN, sound": (lambda: sm20((1, 1), width=32, depth=4, omega=30.0, hidden_omega=30.0), SOUND),
    "ReLU, photo": (lambda: relu((2, 1), width=32, depth=4), PHOTO),
}


def followed(model, field: Field):
    """The network after what is recommended for it."""
    fix = diagnose(model, field).fix
    scope = {"uniphase": uniphase, "model": model, "moments": estimate_moments(field), "key": jax.random.key(1)}
    exec(fix or "", scope)
    return scope["model"]


@pytest.mark.parametrize("case", CASES)
def test_a_recommendation_runs_and_leaves_nothing_to_recommend(case):
    blueprint, field = CASES[case]
    model = CoordinateMLP(blueprint(), key=KEY)
    assert (diagnose(model, field).fix is None) == (case == "uniform-phase, photo")
    assert diagnose(followed(model, field), field).healthy


def halves(field: Field) -> tuple[Points, Points]:
    order = np.random.default_rng(0).permutation(field.samples)
    positions, values = field.coordinates(), field.values.reshape(field.samples, -1)
    first, second = (Points(positions[part], values[part]) for part in np.array_split(order, 2))
    return first, second


def error_held_out(network, seen: Points, unseen: Points, steps: int = 300) -> float:
    """The mean squared error between the samples that it was trained on."""
    x, y = (jnp.asarray(array, jnp.float32) for array in (seen.positions, seen.values))
    optimizer = optax.adam(1e-3)

    @eqx.filter_jit
    def step(network, state):
        gradients = eqx.filter_grad(lambda network: jnp.square(network(x) - y).mean())(network)
        updates, state = optimizer.update(gradients, state)
        return eqx.apply_updates(network, updates), state

    state = optimizer.init(eqx.filter(network, eqx.is_array))
    with jax.numpy_dtype_promotion("standard"):
        for _ in range(steps):
            network, state = step(network, state)
    return float(np.square(np.asarray(network(jnp.asarray(unseen.positions, jnp.float32))) - unseen.values).mean())


# Under Adam at one rate, a SIREN with ω = 30 in its hidden layers takes steps that are 30 times larger.
SOUND_CASE = pytest.param("SIREN, sound", marks=pytest.mark.xfail(strict=True, reason="neither learns the tone"))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["SIREN, photo", SOUND_CASE, "ReLU, photo"])
def test_training_is_better_for_it(case):
    blueprint, field = CASES[case]
    seen, unseen = halves(field)
    for seed in range(3):
        model = CoordinateMLP(blueprint(), key=jax.random.key(seed))
        before, after = (error_held_out(network, seen, unseen) for network in (model, followed(model, seen)))
        assert after < before, (case, seed, before, after)


def test_a_trained_network_is_not_called_bad_for_being_trained():
    """One that fits its signal gets its error; far from it, it is judged as before."""
    field = Grid(np.sin(3 * np.linspace(-1, 1, 200))[:, None])
    w = np.array([[3.0], [1e3]])  # frequencies that no initialization for this signal has
    v, b = np.array([[1.0, 1e-3]]), np.array([0.0, 1.5])
    report = diagnose(lambda x: jnp.asarray(v) @ jnp.sin(jnp.asarray(w) @ x + jnp.asarray(b)), field)
    assert report.healthy
    assert report.fix is None
    assert [finding.item for finding in report.findings] == ["fit"]
    assert report.findings[0].words.startswith("explains 100 % of the signal's variance (SNR ") or (
        report.findings[0].words.startswith("explains 99.")
    )
    opposite = diagnose(lambda x: -jnp.asarray(v) @ jnp.sin(jnp.asarray(w) @ x + jnp.asarray(b)), field)
    assert "fit" not in [finding.item for finding in opposite.findings]
    assert not opposite.healthy
