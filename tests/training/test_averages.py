from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import predict
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points
from uniphase.training.averages import Averages
from uniphase.training.fit import fit
from uniphase.training.regions import Cells, Rays
from uniphase.training.terms import Term, Values

FIELD = load("camera", size=12)
MOMENTS = estimate_moments(FIELD)
DRAWS = 4000


@pytest.fixture(scope="module")
def network():
    return CoordinateMLP(uniform_phase(MOMENTS, width=16, depth=1), key=jax.random.key(0))


@pytest.fixture(scope="module")
def rough():
    """A network that bends within the cells."""
    moments = replace(MOMENTS, structure_tensor=25 * MOMENTS.structure_tensor)
    return CoordinateMLP(uniform_phase(moments, width=16, depth=1), key=jax.random.key(0))


class Anywhere(eqx.Module):
    """The cells of a grid, as regions that have no opposite positions."""

    cells: Cells

    def draw(self, key, indices):
        return self.cells.draw(key, indices)


INDEPENDENT = Averages(FIELD.flat_values(), over=Anywhere(Cells(FIELD)), moments=MOMENTS)
OPPOSITE = Averages(FIELD)


def drawn_losses(term, network, squared=False) -> np.ndarray:
    """The mean loss of all observations, in many draws; or that of the first set of positions of each, squared."""
    sampled = term.prepare(jnp.dtype("float32"))

    def draw(key):
        indices, weights, one, other = sampled.draw_in_turn(key, FIELD.samples)
        return sampled.loss(network, (indices, weights, one, one if squared else other)).mean()

    found = jax.jit(lambda keys: jax.lax.map(draw, keys))(jax.random.split(jax.random.key(1), DRAWS))
    return np.asarray(found, np.float64) * term.variance / Averages(FIELD).variance


@pytest.fixture(scope="module")
def losses(rough):
    """Of independent positions and of opposite ones: products, and squares of the first set."""
    terms = {"independent": INDEPENDENT, "opposite": OPPOSITE}
    return {name: [drawn_losses(term, rough, squared) for squared in (False, True)] for name, term in terms.items()}


def squared_error_of_the_mean(network) -> float:
    """By many positions in each cell, in float64."""
    fine = Grid(np.zeros((12 * 24, 12 * 24, 1)))
    means = predict(network, fine).astype(np.float64).reshape(12, 24, 12, 24).mean(axis=(1, 3))
    return float(np.square(means - FIELD.values[..., 0]).mean() / Averages(FIELD).variance)


@pytest.mark.parametrize(("kind", "share"), [("independent", 0.0), ("opposite", 0.25)])
def test_the_expected_loss_is_the_squared_error_of_the_mean(rough, losses, kind, share):
    """In cells, a quarter of the variance of a pair is added to it."""
    product, square = losses[kind]
    exact = squared_error_of_the_mean(rough)
    standard_error = np.hypot(product.std(), share * square.std()) / np.sqrt(DRAWS)
    assert product.mean() == pytest.approx(exact + share * (square.mean() - exact), abs=5 * standard_error)


@pytest.mark.parametrize("kind", ["independent", "opposite"])
def test_one_estimate_squared_is_not(rough, losses, kind):
    """It adds the variance of the estimate, so another network would be fitted."""
    _, square = losses[kind]
    assert square.mean() > squared_error_of_the_mean(rough) + 10 * square.std() / np.sqrt(DRAWS)


def test_opposite_positions_scatter_less(network, losses):
    assert drawn_losses(OPPOSITE, network).std() < drawn_losses(INDEPENDENT, network).std() / 2
    (independent, _), (opposite, _) = losses.values()
    assert opposite.std() < independent.std()  # also where the network is far from linear in a cell


def test_opposite_positions_are_exact_for_what_is_linear():
    """The mean of a plane over a cell is its value in the centre, whatever the pair."""
    plane = lambda x: x @ jnp.array([[0.3], [-0.2]])  # noqa: E731
    term = Averages(Grid(plane(jnp.asarray(FIELD.coordinates())).reshape(12, 12, 1)))
    batch = term.draw(jax.random.key(0), FIELD.samples)
    np.testing.assert_allclose(term.loss(plane, batch), 0, atol=1e-10)  # rounding, squared
    positions = np.concatenate(batch[2:], axis=1)
    inside = np.abs(positions - FIELD.coordinates()[:, None]) <= np.asarray(FIELD.spacing) / 2 + 1e-6
    assert positions.shape == (FIELD.samples, 4, 2)
    assert inside.all()


def test_more_draws_scatter_less_around_the_same_mean(network):
    """Of rays, whose positions are spread evenly, and of cells, whose are not."""
    angles = np.linspace(0, np.pi, 40)
    ends = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for values, regions in ((np.ones(40), Rays(-ends, ends)), (FIELD.flat_values(), Anywhere(Cells(FIELD)))):
        means, spreads = [], []
        for draws in (4, 16):
            term = Averages(values, over=regions, draws=draws).prepare(jnp.dtype("float32"))
            loss = jax.jit(lambda key, term=term: term.loss(network, term.draw_in_turn(key, 40)).mean() * term.variance)
            found = np.asarray(jax.lax.map(loss, jax.random.split(jax.random.key(2), 500)), np.float64)
            means.append(found.mean())
            spreads.append(found.std())
        assert abs(means[0] - means[1]) < 5 * np.hypot(*spreads) / np.sqrt(500)
        assert spreads[1] < spreads[0]


def test_a_grid_is_its_values_over_cells(network):
    """The two ways to say it have the same losses from the same key."""
    of_grid, of_array = Averages(FIELD), Averages(FIELD.flat_values(), over=Cells(FIELD), moments=MOMENTS)
    assert isinstance(of_grid, Term)
    batches = [term.draw(jax.random.key(0), 50) for term in (of_grid, of_array)]
    first, second = (term.loss(network, batch) for term, batch in zip((of_grid, of_array), batches, strict=True))
    np.testing.assert_allclose(first * of_grid.variance, second * of_array.variance, rtol=1e-4, atol=1e-6)
    assert (of_grid.samples, of_grid.in_size, of_grid.out_size) == (of_array.samples, of_array.in_size, 1)


@pytest.mark.parametrize("kind", [Values, Averages])
def test_a_term_may_be_used_first_inside_a_compiled_function(kind, network):
    term = kind(FIELD, moments=MOMENTS)
    compiled = jax.jit(lambda key: term.loss(network, term.draw(key, 9)))(jax.random.key(0))
    np.testing.assert_allclose(compiled, term.loss(network, term.draw(jax.random.key(0), 9)), rtol=1e-3, atol=1e-5)


def test_the_best_constant_has_the_loss_one():
    mean = lambda x: jnp.asarray(MOMENTS.mean, x.dtype)  # noqa: E731
    term = Averages(FIELD)
    every = term.loss(mean, term.draw(jax.random.key(0), FIELD.samples))
    assert float(every.mean()) == pytest.approx(1, rel=1 / FIELD.samples + 1e-4)  # n/(n - 1), and the ridge


def test_a_fit_by_averages_is_measured_by_averages(network):
    """A smooth field is recovered from its means over coarse cells, and resumed to the same bits."""
    result = fit(network, Averages(FIELD), steps=200)
    assert result.sampling == "averages"
    assert result.metrics.snr_db > 12
    np.testing.assert_array_equal(result.prediction, predict(result.network, FIELD, average=True))
    np.testing.assert_array_equal(result.render(), result.prediction)
    np.testing.assert_array_equal(result.render((24, 24)), predict(result.network, Grid(np.zeros((24, 24, 1)))))


def test_an_interrupted_fit_ends_with_the_same_bits(network, tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit(network, Averages(FIELD), steps=40, checkpoint=path, callback=stop)
    resumed = fit(network, Averages(FIELD), steps=40, checkpoint=path, resume=True)
    whole = fit(network, Averages(FIELD), steps=40)
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    for first, second in zip(*map(jax.tree.leaves, (resumed.network, whole.network)), strict=True):
        np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        fit(network, Values(FIELD), steps=40, checkpoint=path, resume=True)


class Discs(eqx.Module):
    centers: jax.Array
    radius: float

    def draw(self, key, indices):
        square, turn = jax.random.uniform(key, (2, len(indices)))
        direction = jnp.stack([jnp.cos(2 * jnp.pi * turn), jnp.sin(2 * jnp.pi * turn)], axis=1)
        return self.centers[indices] + self.radius * jnp.sqrt(square)[:, None] * direction


def test_regions_of_a_users_own_make(network):
    """A slope is recovered from means over discs; the mean of a plane over a disc is its value in the middle."""
    centers = np.random.default_rng(0).uniform(-1, 1, (200, 2)).astype(np.float32)
    values = centers @ np.array([0.3, -0.2], np.float32)
    values[::7] = np.nan  # neither fitted nor counted
    term = Averages(values, over=Discs(jnp.asarray(centers), 0.3))
    result = fit(network, term, moments=MOMENTS, steps=300)
    assert result.field is None
    assert result.metrics.snr_db > 15
    found = predict(result.network, Points(centers, np.zeros(200)))[:, 0]
    assert np.sqrt(np.mean((found - centers @ np.array([0.3, -0.2])) ** 2)) < 0.1


def test_means_along_rays(network):
    """Metrics over regions are those of the true means: here of a network that is known, so that all are met."""
    angles = np.linspace(0, np.pi, 40)
    ends = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    along = np.linspace(-1, 1, 2001)[:, None, None] * ends
    exact = predict(network, Points(along.reshape(-1, 2), np.zeros(2001 * 40))).reshape(2001, 40).mean(axis=0)
    _, metrics = Averages(exact, over=Rays(-ends, ends)).measure(network)
    # 64 draws of a field of variance about 1 leave an error of about 1/64 in a mean; what is left of its square here is
    # its scatter around zero, one of √(2/40) of that.
    assert metrics.mse < 5 * np.sqrt(2 / 40) / 64 * float(np.var(exact)) * 64
    assert metrics.ssim is None


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Averages(Points(np.zeros((3, 2)), np.zeros(3))), "scattered points have no cells"),
    (lambda: Averages(FIELD, over=Cells(FIELD)), "a grid has its own cells"),
    (lambda: Averages(np.zeros(3)), "over is None; pass the regions"),
    (lambda: Averages(np.zeros(3), over=Cells(FIELD)), "there are 3 values and 144 regions; pass one for each"),
    (lambda: Averages(np.full(3, np.nan), over=Discs(jnp.zeros((3, 2)), 1.0)), "NaN in every row"),
    (lambda: Averages(np.array(["a"]), over=Discs(jnp.zeros((1, 2)), 1.0)), "pass a grid, or real numbers"),
    (lambda: Averages(FIELD, noise=-1.0), "noise is -1.0; pass a standard deviation"),
    (lambda: Averages(FIELD, draws=3), "draws is 3; it must be a multiple of 4"),
])  # fmt: skip
def test_bad_averages(make, message):
    with pytest.raises(ValueError, match=message):
        make()
