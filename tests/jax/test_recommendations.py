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


def sound(n: int = 8192, top: float = 1200.0) -> Grid:
    """Noise whose spectrum falls as that of music, far above the frequencies of a SIREN's first layer."""
    extent, rng = (-1.77, 1.77), np.random.default_rng(0)
    frequencies = 2 * np.pi * np.fft.rfftfreq(n, (extent[1] - extent[0]) / n)
    amplitudes = np.where(frequencies < top, np.maximum(frequencies, 1.0) ** -0.7, 0)
    values = np.fft.irfft(amplitudes * np.exp(2j * np.pi * rng.random(len(frequencies))), n)
    return Grid(0.05 * (values / values.std())[:, None], extents=extent)


SOUND = sound()
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


def error_held_out(network, seen: Points, unseen: Points, rate: float, steps: int = 300) -> float:
    """The mean squared error between the samples that it was trained on."""
    x, y = (jnp.asarray(array, jnp.float32) for array in (seen.positions, seen.values))
    optimizer = optax.adam(rate)

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


# The rates of Adam before and after. Where ω = 30 is gone, the same steps need 30 times the rate, as the doctor says.
RATES = {"SIREN, photo": (1e-3, 1e-3), "SIREN, sound": (1e-4, 3e-3), "ReLU, photo": (1e-3, 1e-3)}


@pytest.mark.slow
@pytest.mark.parametrize("case", RATES)
def test_training_is_better_for_it(case):
    blueprint, field = CASES[case]
    seen, unseen = halves(field)
    for seed in range(3):
        model = CoordinateMLP(blueprint(), key=jax.random.key(seed))
        networks = zip((model, followed(model, seen)), RATES[case], strict=True)
        before, after = (error_held_out(network, seen, unseen, rate) for network, rate in networks)
        assert after < before, (case, seed, before, after)


def test_a_network_without_omega_needs_another_rate():
    reports = [diagnose(CoordinateMLP(blueprint(), key=KEY), field) for blueprint, field in CASES.values()]
    assert [report.fix is not None and "30 times the rate" in report.fix for report in reports] == [0, 0, 1, 0]


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
