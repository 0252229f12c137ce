import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme
from uniphase.jax.network import CoordinateMLP, trainable_arrays
from uniphase.signals.datasets import load
from uniphase.training.fit import RecipeRule, fit
from uniphase.training.sampling import Samples
from uniphase.training.step import Problem, loss_alone, loss_and_gradients, split_network
from uniphase.training.terms import FunctionTerm, SampledValues

FIELD = load("camera", size=24)
MOMENTS = estimate_moments(FIELD)
ADAM = RecipeRule("adam", None)


@pytest.mark.parametrize(("dtype", "tolerance"), [
    ("float64", 1e-11),  # sums of 576 samples in another order
    ("float32", 2e-5),  # the same, and phases of up to 100 that are off by 1e-5
])  # fmt: skip
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_step_has_the_gradients_of_its_definition(scheme, dtype, tolerance, x64, monkeypatch):
    """The fast step, in columns and blocks, against the readable one."""
    blueprint = get_scheme(scheme).blueprint(MOMENTS, width=16, depth=2)
    model = CoordinateMLP(blueprint, dtype=jnp.dtype(dtype), key=jax.random.key(0))
    samples = Samples.of(FIELD, jnp.dtype(dtype))
    positions, values = samples.at(jnp.arange(FIELD.samples, dtype=jnp.int32))

    @jax.jit
    @jax.value_and_grad
    def readable(model):
        return jnp.mean(jnp.square(jax.vmap(model)(positions) - values))

    monkeypatch.setattr("uniphase.training.sampling._BLOCK_CPU", 100 * model.width)  # 576 samples in 6 blocks
    parameters, frozen, static = split_network(model)
    term = SampledValues(samples, jnp.asarray(1, dtype))
    problem = Problem((term,), frozen, static, None, ADAM, FIELD.samples)
    found = eqx.filter_jit(loss_and_gradients)(problem, parameters, frozen, jax.random.key(0))
    loss, gradients = readable(model)
    expected = loss, eqx.filter(gradients, trainable_arrays(model))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * float(jnp.abs(b).max()))


def problem_of(model, *terms):
    parameters, frozen, static = split_network(model)
    return Problem(terms, frozen, static, None, ADAM, 64), parameters


def draw():
    return CoordinateMLP(get_scheme("uniform-phase").blueprint(MOMENTS, width=8, depth=1), key=jax.random.key(0))


def test_losses_of_several_terms_are_added():
    term = SampledValues(Samples.of(FIELD, jnp.dtype("float32")), jnp.asarray(1.0))
    function = FunctionTerm(lambda network, key: 3 * jnp.square(network.layers[-1].bias).sum())
    both, parameters = problem_of(draw(), term, function)
    compiled = eqx.filter_jit(loss_and_gradients)
    total, gradients = compiled(both, parameters, both.frozen, jax.random.key(0))
    keys = jax.random.split(jax.random.key(0), 2)
    half, _ = problem_of(draw(), term)
    first = compiled(Problem((term,), None, half.static, None, ADAM, 32), parameters, half.frozen, keys[0])
    bias = draw().layers[-1].bias
    assert float(total) == pytest.approx(float(first[0]) + 3 * float(jnp.square(bias).sum()), rel=1e-6)
    np.testing.assert_allclose(gradients.layers[-1].bias, first[1].layers[-1].bias + 6 * bias, rtol=1e-5)


def test_a_loss_alone_is_that_of_the_gradients(monkeypatch):
    """And so is its derivative, for line searches that take one, backward or forward."""
    monkeypatch.setattr("uniphase.training.sampling._BLOCK_CPU", 100)  # of 32 samples in 3 blocks, with some repeated
    term = SampledValues(Samples.of(FIELD, jnp.dtype("float32")), jnp.asarray(1.0))
    function = FunctionTerm(lambda network, key: jax.random.uniform(key) * jnp.square(network(jnp.ones(2))).sum())
    problem, parameters = problem_of(draw(), term, function)
    key = jax.random.key(3)

    def alone(parameters):
        return loss_alone(problem, parameters, problem.frozen, key)

    loss, gradients = eqx.filter_jit(loss_and_gradients)(problem, parameters, problem.frozen, key)
    found, backward = jax.jit(jax.value_and_grad(alone))(parameters)
    assert float(found) == pytest.approx(float(loss), rel=1e-6)  # float32
    for a, b in zip(jax.tree.leaves(backward), jax.tree.leaves(gradients), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * float(jnp.abs(b).max()))  # float32
    _, forward = jax.jit(lambda tangents: jax.jvp(alone, (parameters,), (tangents,)))(gradients)
    assert float(forward) == pytest.approx(float(optax.tree.norm(gradients, squared=True)), rel=1e-5)  # float32


class Guarded(eqx.Module):
    """A term that counts how often its loss is differentiated."""

    times: list = eqx.field(static=True, default_factory=list)

    def draw(self, key, n):
        return jax.random.uniform(key, (n, 2))

    def loss(self, network, batch):
        @jax.custom_jvp
        def guarded(outputs):
            return jnp.square(outputs)

        @guarded.defjvp
        def differentiate(primals, tangents):
            self.times.append(1)
            return guarded(*primals), 2 * primals[0] * tangents[0]

        return guarded(network(batch))[:, 0]

    def position_moments(self):
        return np.zeros(2), np.eye(2)


def test_a_line_search_gets_values_that_are_not_differentiated():
    term, counts = Guarded(), []

    def update(updates, state, params=None, *, value, value_fn, **_):
        before = len(term.times)
        again = value_fn(params)
        counts.append((before, len(term.times)))
        return updates, again - value

    search = optax.GradientTransformationExtraArgs(lambda params: jnp.zeros(()), update)
    fit(draw(), term, optimizer=search, steps=1)
    assert counts
    assert all(before > 0 and before == after for before, after in counts)


class Mean(eqx.Module):
    """A term that returns the mean over its batch."""

    def draw(self, key, n):
        return jnp.zeros((n, 2))

    def loss(self, network, batch):
        return jnp.square(network(batch)).mean()

    def position_moments(self):
        return np.zeros(2), np.eye(2)


def test_a_loss_of_the_wrong_shape_is_refused():
    problem, parameters = problem_of(draw(), Mean())
    with pytest.raises(ValueError, match=r"the loss of Mean has the shape \(\) for 64 observations; return one number"):
        loss_and_gradients(problem, parameters, problem.frozen, jax.random.key(0))
    problem, parameters = problem_of(draw(), FunctionTerm(lambda network, key: network(jnp.zeros((3, 2)))))
    with pytest.raises(ValueError, match=r"has the shape \(3, 1\); return one number"):
        loss_and_gradients(problem, parameters, problem.frozen, jax.random.key(0))
