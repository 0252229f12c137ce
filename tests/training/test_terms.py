from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.jax.derivatives import gradient
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import evaluate_network, predict
from uniphase.signals.datasets import load
from uniphase.signals.fields import Points
from uniphase.training.fit import fit
from uniphase.training.terms import FunctionTerm, Term, Values, as_terms

FIELD = load("camera", size=16)
MOMENTS = estimate_moments(FIELD)


@pytest.fixture(scope="module")
def network():
    return CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=1), key=jax.random.key(0))


def test_values_are_squared_errors_in_units_of_the_variance(network):
    """All samples at once, and on average over batches of a few."""
    term = Values(FIELD)
    exact = evaluate_network(network, FIELD).mse / float(np.var(FIELD.values))
    every = term.loss(network, term.draw(jax.random.key(0), FIELD.samples))
    assert every.shape == (FIELD.samples,)
    # the variance is the unbiased one, n/(n - 1) of NumPy's
    assert float(every.mean()) == pytest.approx(exact * (FIELD.samples - 1) / FIELD.samples, rel=1e-4)
    keys = jax.random.split(jax.random.key(1), 500)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: term.loss(network, term.draw(key, 10)).mean()))(keys))
    error = draws.std() / np.sqrt(500)
    assert abs(draws.mean() - float(every.mean())) < 5 * error  # once in two million


def test_the_best_constant_has_the_loss_one():
    term = Values(FIELD)
    mean = lambda x: jnp.asarray(MOMENTS.mean, x.dtype)  # noqa: E731
    every = term.loss(mean, term.draw(jax.random.key(0), FIELD.samples))
    assert float(every.mean()) == pytest.approx(1, rel=1 / FIELD.samples + 1e-4)  # n/(n - 1), and the ridge


def test_what_fit_takes():
    points = Points(np.zeros((3, 2)), np.arange(3.0))
    function = lambda network, key: jnp.zeros(())  # noqa: E731
    terms = as_terms([FIELD, Values(points), function])
    assert [type(term) for term in terms] == [Values, Values, FunctionTerm]
    assert isinstance(terms[0], Term)
    assert as_terms(FIELD)[0].field is FIELD


class Slopes(eqx.Module):
    positions: jax.Array
    slopes: jax.Array

    def draw(self, key, n):
        return jax.random.randint(key, (n,), 0, len(self.positions))

    def loss(self, network, batch):
        error = gradient(network, self.positions[batch]) - self.slopes[batch]
        return jnp.square(error).mean(axis=(1, 2)) / jnp.square(self.slopes).mean()

    def position_moments(self):
        return self.positions.mean(axis=0), jnp.cov(self.positions.T)


def test_a_term_of_a_users_own_make(network):
    """A network is recovered from its slopes alone, up to a constant."""
    truth = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=0), key=jax.random.key(5))
    positions = jnp.asarray(FIELD.coordinates(), jnp.float32)
    term = Slopes(positions, jax.jit(gradient)(truth, positions))
    result = fit(network, term, moments=MOMENTS, steps=300)
    assert result.metrics is None
    assert result.losses[-10:].mean() < 0.05 < 0.5 < result.losses[0]
    error = predict(result.network, FIELD) - predict(truth, FIELD)
    assert error.std() < 0.3 * predict(truth, FIELD).std()  # the slopes are known at 256 positions only
    with pytest.raises(ValueError, match="render needs a field, and none was among the terms"):
        result.render((4, 4))


def test_a_fit_ends_at_the_noise(network):
    """And not before: the error is that of the noise, with which nothing is learned of it yet."""
    truth = predict(network, FIELD)
    noise = 0.5 * truth.std()
    noisy = replace(FIELD, values=truth + np.random.default_rng(0).normal(0, noise, truth.shape).astype(np.float32))
    start = CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=1), key=jax.random.key(3))
    result = fit(start, Values(noisy, moments=MOMENTS, noise=float(noise)), steps=1000)
    assert result.stop == "noise"
    assert result.steps < 1000
    assert result.metrics.mse == pytest.approx(noise**2, rel=0.3)  # three standard errors of 256 samples, √(2/256)
    with pytest.raises(ValueError, match=r"noise is -1.0; pass a standard deviation"):
        Values(FIELD, noise=-1.0)


def test_missing_samples_are_not_fitted(network):
    """A fit to known values alone: those that are missing may have been anything."""
    values = np.array(FIELD.values)
    values[4:8, 4:12] = np.nan
    holes = replace(FIELD, values=values)
    indices, weights = Values(holes).draw(jax.random.key(0), 10**6)
    assert len(indices) == int((~holes.missing).sum())
    assert np.isfinite(Values(holes).loss(network, (indices, weights))).all()
    result = fit(network, holes, moments=MOMENTS, steps=60)
    assert np.isfinite(result.losses).all()
    assert result.metrics.snr_db > 5
    assert np.isfinite(result.prediction).all()


def test_a_term_may_be_told_the_step(network):
    """With the same key in every step."""

    class Counting(eqx.Module):
        def draw_in_turn(self, key, n, step):
            return jnp.full(n, step), jax.random.uniform(key, (n,))

        def draw(self, key, n):
            raise AssertionError("the other one is called")

        def loss(self, network, batch):
            steps, same = batch
            return steps.astype(same.dtype) + same

        def position_moments(self):
            return np.zeros(2), np.eye(2)

    losses = fit(network, Counting(), moments=MOMENTS, steps=5).losses
    np.testing.assert_allclose(losses - losses[0], np.arange(5), rtol=1e-5)
