import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import get_scheme
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid
from uniphase.training.mup import Rates, mup_rates, scale_by_roles
from uniphase.training.protocol import fit_together

FIELD = load("camera", size=48, align="corners")  # 2,304 samples
MOMENTS = estimate_moments(FIELD)
MUP = mup_rates(1e-3, width=8, base_width=16)


@pytest.fixture(autouse=True)
def two_blocks(monkeypatch):
    """Neither of them full, at width 8."""
    monkeypatch.setattr("uniphase.training.sampling._BLOCK_CPU", 8 * 2000)


def draw(scheme="uniform-phase", seed=0, dtype=None, **options):
    blueprint = get_scheme(scheme).blueprint(MOMENTS, width=8, depth=1, **options)
    return CoordinateMLP(blueprint, dtype=dtype, key=jax.random.key(seed))


def naive_fit(network, rates, steps, epsilon=1e-8):
    """The definition: all samples at once, Optax step by step."""
    dtype = network.layers[0].weight.dtype
    positions, values = jnp.asarray(FIELD.coordinates(), dtype), jnp.asarray(FIELD.flat_values(), dtype)
    optimizer = optax.chain(optax.scale_by_adam(eps=epsilon), scale_by_roles(network, rates))

    @eqx.filter_jit
    def step(network, state):
        loss, gradients = jax.value_and_grad(
            lambda network: jnp.mean(jnp.square(jax.vmap(network)(positions) - values))
        )(network)
        updates, state = optimizer.update(gradients, state)
        return loss, eqx.apply_updates(network, updates), state

    state, losses = optimizer.init(eqx.filter(network, eqx.is_array)), []
    for _ in range(steps):
        loss, network, state = step(network, state)
        losses.append(float(loss))
    return network, losses


def leaves(network):
    return jax.tree.leaves(eqx.filter(network, eqx.is_array))


def assert_same_bits(a, b):
    np.testing.assert_array_equal(a.losses, b.losses)
    for x, y in zip(leaves(a.network), leaves(b.network), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("scheme", "rates"), [("uniform-phase", Rates.uniform(1e-3)), ("sm20", MUP), ("tanh-pe", MUP)], ids=str
)
def test_it_is_adam(scheme, rates, x64):
    network = draw(scheme, dtype=jnp.float64)
    (trace,) = fit_together([network], FIELD, rates=[rates], steps=12)
    with jax.numpy_dtype_promotion("standard"):
        expected, losses = naive_fit(network, rates, 12)
    # blocks add up in another order: some units of 1e-16, grown by a dozen steps
    np.testing.assert_allclose(trace.losses, losses, rtol=1e-11)
    for ours, theirs in zip(leaves(trace.network), leaves(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def assert_equal_but_for_rounding(a, b):
    # the compiler orders the operations by the number of networks: some units of 1e-16, grown by a few steps
    np.testing.assert_allclose(a.losses, b.losses, rtol=1e-11)
    for x, y in zip(leaves(a.network), leaves(b.network), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def test_networks_do_not_feel_each_other(x64):
    """Other weights, other ω, other rates: the same as alone, even beside one that diverges, which is recorded."""
    networks = [draw("sm20", s, jnp.float64, omega=omega) for s, omega in ((0, 10.0), (1, 80.0), (1, 20.0))]
    rates = [Rates.uniform(1e-3), MUP, Rates.uniform(1e200)]
    together = fit_together(networks, FIELD, rates=rates, steps=6)
    for network, rate, trace in zip(networks[:2], rates, together, strict=False):
        assert_equal_but_for_rounding(trace, fit_together([network], FIELD, rates=[rate], steps=6)[0])
        assert trace.network.layers[0].omega == network.layers[0].omega
    assert np.isfinite(together[2].losses[0])
    assert not np.isfinite(together[2].losses[1:]).any()


def test_at_once_as_on_a_gpu_is_the_same(x64, monkeypatch):
    """In smaller blocks, so that it is another program."""
    networks = [draw("sm20", s, jnp.float64, omega=omega) for s, omega in ((0, 10.0), (1, 80.0))]
    rates = [Rates.uniform(1e-3), MUP]
    in_turns = fit_together(networks, FIELD, rates=rates, steps=6)
    monkeypatch.setattr("uniphase.training.step.takes_turns", lambda: False)
    for a, b in zip(fit_together(networks, FIELD, rates=rates, steps=6), in_turns, strict=True):
        assert_equal_but_for_rounding(a, b)


def test_without_epsilon_a_parameter_that_nothing_moves_stays(x64):
    """A dead neuron has the gradient 0, and Adam 0/0; all others are as in the definition."""
    network = draw("relu", dtype=jnp.float64)
    network = eqx.tree_at(lambda n: n.layers[0].bias, network, jnp.zeros(8).at[0].set(-100.0))
    (trace,) = fit_together([network], FIELD, rates=[Rates.uniform(1e-3)], steps=5, epsilon=0.0)
    assert np.isfinite(trace.losses).all()
    assert np.asarray(trace.network.layers[0].bias)[0] == -100
    with jax.numpy_dtype_promotion("standard"):
        expected, _ = naive_fit(network, Rates.uniform(1e-3), 1, epsilon=0.0)
    assert np.isnan(np.asarray(expected.layers[0].bias)[0])
    (first,) = fit_together([network], FIELD, rates=[Rates.uniform(1e-3)], steps=1, epsilon=0.0)
    for ours, theirs in zip(leaves(first.network), leaves(expected), strict=True):
        known = np.isfinite(theirs)
        np.testing.assert_allclose(ours[known], theirs[known], rtol=1e-9)  # as above


class Stop(Exception):
    pass


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    networks, rates, path = [draw(seed=0), draw(seed=1)], [MUP, Rates.uniform(1e-3)], tmp_path / "run.state"

    def interrupt(step):
        if step >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_together(networks, FIELD, rates=rates, steps=300, checkpoint=path, callback=interrupt)
    seen = []
    arguments = {"rates": rates, "steps": 300, "checkpoint": path, "resume": True}
    resumed = fit_together(networks, FIELD, callback=seen.append, **arguments)
    assert seen[0] > 3
    for a, b in zip(resumed, fit_together(networks, FIELD, rates=rates, steps=300), strict=True):
        assert_same_bits(a, b)
    with pytest.raises(ValueError, match=r"run\.state: a checkpoint of another run"):
        fit_together(networks[::-1], FIELD, **arguments)


def test_a_checkpoint_belongs_to_an_activation(tmp_path):
    """SiLU and GELU draw the same numbers."""
    path = tmp_path / "run.state"

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_together([draw("silu")], FIELD, rates=[MUP], steps=9, checkpoint=path, callback=interrupt)
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        fit_together([draw("gelu")], FIELD, rates=[MUP], steps=9, checkpoint=path, resume=True)


def test_a_checkpoint_is_written_while_it_runs(tmp_path):
    path = tmp_path / "run.state"

    def kill(step):
        if path.exists():
            raise Stop

    with pytest.raises(Stop):
        fit_together([draw()], FIELD, rates=[MUP], steps=2000, checkpoint=path, checkpoint_seconds=0.0, callback=kill)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rates": []}, "there are 1 networks and 0 rates"),
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"field": Grid(np.zeros((9, 1)))}, "networks map 2 coordinates to 1 channels, but the field has 1 and 1"),
        ({"networks": [draw(), draw("sm20")], "rates": [MUP, MUP]}, r"networks\[1\] differs from networks\[0\]"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    defaults = {"networks": [draw()], "field": FIELD, "rates": [MUP], "steps": 1}
    with pytest.raises(ValueError, match=message):
        fit_together(**(defaults | arguments))
