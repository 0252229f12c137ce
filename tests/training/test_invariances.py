"""What must not depend on the units, the origin or the orientation of the coordinates, nor on the order of the points.

The default ridge goes along with all units. It is a millionth of every matrix's diagonal, which turns with no rotation
and no mixing of channels; where these are tested a given ε takes its place, far below everything else.
"""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation

from uniphase.initialization.moments import Moments, estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.fields import Grid, Points
from uniphase.training.fit import fit

estimate = functools.partial(estimate_moments, epsilon=1e-12)
seeds = st.integers(0, 2**16)
scales = st.floats(-3, 3).map(lambda q: 10**q)
shifts = st.floats(-100, 100)
# NumPy alone is fast; a network is compiled, so it gets fewer examples.
cheap = settings(max_examples=50, deadline=None, derandomize=True)
STEPS = 12  # twice as many magnify rounding beyond 1e-6
costly = settings(max_examples=8, deadline=None, derandomize=True)


def smooth(rng: np.random.Generator, x: np.ndarray, channels: int = 2) -> np.ndarray:
    waves = rng.normal(size=(8, x.shape[-1])) * 3
    return np.cos(x @ waves.T + rng.uniform(0, 6, 8)) @ rng.normal(size=(8, channels))


def random_grid(seed: int, shape: tuple[int, ...] = (12, 15), align="centers") -> Grid:
    grid = Grid(np.zeros((*shape, 1)), align=align)
    return Grid(smooth(np.random.default_rng(seed), grid.coordinates()).reshape(*shape, 2), align=align)


def random_points(seed: int, in_size: int = 2) -> Points:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (150, in_size))
    return Points(x, smooth(rng, x))


def assert_same(found: Moments, expected: Moments, rtol: float) -> None:
    for key in ("mean", "covariance", "structure_tensor"):
        ours, wanted = getattr(found, key), getattr(expected, key)
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


@cheap
@given(seeds, shifts, shifts, st.sampled_from(["centers", "corners"]))
def test_shifting_the_domain_changes_nothing(seed, down, right, align):
    grid = random_grid(seed, align=align)
    shifted = Grid(grid.values, extents=((down - 1, down + 1), (right - 1, right + 1)), align=align)
    assert_same(estimate(shifted), estimate(grid), rtol=1e-12)  # only high - low is rounded
    points = random_points(seed)
    moved = Points(points.positions + np.array([down, right]), points.values)
    assert_same(estimate(moved), estimate(points), rtol=1e-9)  # positions of about 100 lose two digits


@cheap
@given(seeds, scales, scales)
def test_scaling_the_domain_scales_the_structure_tensor(seed, tall, wide):
    scale = np.array([tall, wide])
    grid = random_grid(seed)
    scaled = Grid(grid.values, extents=((-tall, tall), (-wide, wide)))
    pairs = [(grid, scaled)]
    points = random_points(seed)
    pairs.append((points, Points(points.positions * scale, points.values)))
    for field, other in pairs:
        before, after = estimate_moments(field).structure_tensor, estimate_moments(other).structure_tensor
        np.testing.assert_allclose(after * np.outer(scale, scale), before, rtol=0, atol=1e-10 * np.abs(before).max())


@cheap
@given(seeds, st.lists(st.floats(-12, 12), min_size=2, max_size=2), shifts)
def test_the_units_of_the_channels_change_nothing(seed, exponents, offset):
    units = 10.0 ** np.array(exponents)
    for field in (random_grid(seed), random_points(seed)):
        mapped = units * (field.values + offset)
        after = estimate_moments(Grid(mapped) if isinstance(field, Grid) else Points(field.positions, mapped))
        before = estimate_moments(field)
        expected = Moments(units * (before.mean + offset), before.covariance, before.structure_tensor)
        found = Moments(after.mean, after.covariance / np.outer(units, units), after.structure_tensor)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-12 * units.max())
        # values of up to 100 lose four of sixteen digits of a variance of about 1, and the inverse of Σ some more
        for key in ("covariance", "structure_tensor"):
            ours, wanted = getattr(found, key), getattr(expected, key)
            np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


@cheap
@given(seeds, st.integers(0, 3))
def test_turning_a_grid_turns_the_structure_tensor(seed, quarters):
    grid = random_grid(seed)
    turned = Grid(np.rot90(grid.values, quarters))
    turn = np.linalg.matrix_power(np.array([[0.0, -1.0], [1.0, 0.0]]), quarters)
    before, after = estimate(grid), estimate(turned)
    omega = turn @ before.structure_tensor @ turn.T
    assert_same(after, Moments(before.mean, before.covariance, omega), rtol=1e-10)


@cheap
@given(seeds, st.integers(2, 3), seeds)
def test_rotating_points_rotates_the_structure_tensor(seed, in_size, rotation_seed):
    rotation = Rotation.random(random_state=rotation_seed).as_matrix()
    if in_size == 2:
        angle = 2 * math.pi * rotation_seed / 2**16
        rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = random_points(seed, in_size)
    before, after = estimate(points), estimate(Points(points.positions @ rotation.T, points.values))
    omega = rotation @ before.structure_tensor @ rotation.T
    assert_same(after, Moments(before.mean, before.covariance, omega), rtol=1e-8)


@cheap
@given(seeds, seeds, scales)
def test_an_affine_map_of_the_outputs_carries_through(seed, map_seed, scale):
    rng = np.random.default_rng(map_seed)
    matrix, offset = scale * (rng.normal(size=(2, 2)) + 2 * np.eye(2)), rng.normal(size=2)
    if np.linalg.cond(matrix) > 50:  # beyond, the test would measure the inversion of Σ
        return
    for field in (random_grid(seed), random_points(seed)):
        mapped = field.values @ matrix.T + offset
        after = estimate_moments(
            Grid(mapped) if isinstance(field, Grid) else Points(field.positions, mapped), epsilon=1e-12 * scale**2
        )
        before = estimate(field)
        expected = Moments(
            matrix @ before.mean + offset, matrix @ before.covariance @ matrix.T, before.structure_tensor
        )
        assert_same(after, expected, rtol=1e-6)


@cheap
@given(seeds, seeds)
def test_the_order_of_points_is_irrelevant_to_the_last_bit(seed, order_seed):
    points = random_points(seed)
    order = np.random.default_rng(order_seed).permutation(points.samples)
    shuffled = Points(points.positions[order], points.values[order])
    for key in ("mean", "covariance", "structure_tensor"):
        np.testing.assert_array_equal(getattr(estimate(points), key), getattr(estimate(shuffled), key))


def fitted(field: Grid | Points, seed: int, turn: np.ndarray | None = None, epsilon: float | None = None) -> np.ndarray:
    """The values of a network that was trained on the field, from the same random bits for the same seed."""
    moments = estimate_moments(field, epsilon=epsilon)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        network = CoordinateMLP(uniform_phase(moments, width=8, depth=1), key=jax.random.key(seed))
        if turn is not None:
            turned = random_points(seed)
            network = CoordinateMLP(uniform_phase(estimate(turned), width=8, depth=1), key=jax.random.key(seed))
            network = eqx.tree_at(lambda n: n.layers[0].weight, network, network.layers[0].weight @ turn.T)
        result = fit(network, field, steps=STEPS, moments=moments, seed=seed).network
        return np.asarray(jax.vmap(result)(jnp.asarray(field.coordinates())))


@costly
@given(seeds, scales, scales)
def test_scaling_the_domain_leaves_the_fitted_function_the_same(seed, tall, wide):
    grid = random_grid(seed)
    scaled = Grid(grid.values, extents=((-tall, tall), (-wide, wide)))
    np.testing.assert_allclose(fitted(scaled, seed), fitted(grid, seed), rtol=0, atol=1e-6)  # rounding, magnified


@costly
@given(seeds, scales)
def test_scaling_and_shifting_the_outputs_maps_the_fitted_function(seed, scale):
    grid = random_grid(seed)
    mapped = Grid(scale * grid.values + 3.0)
    difference = (fitted(mapped, seed) - 3) / scale - fitted(grid, seed)
    np.testing.assert_allclose(difference, 0, rtol=0, atol=1e-6)  # rounding, magnified


@costly
@given(seeds, st.floats(0, 2 * math.pi))
def test_rotating_the_domain_leaves_the_fitted_function_the_same(seed, angle):
    """The rows of W turn with the domain: as likely a draw there as W was here. From then on every step is the same."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    points = random_points(seed)
    turned = Points(points.positions @ turn.T, points.values)
    there, here = fitted(turned, seed, turn, epsilon=1e-12), fitted(points, seed, epsilon=1e-12)
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-6)
    here, there = (np.asarray(uniform_phase(estimate(p), width=8, depth=1).layers[0].weight.covariance)
                   for p in (points, turned))  # fmt: skip
    np.testing.assert_allclose(there, turn @ here @ turn.T, rtol=0, atol=1e-8 * np.trace(here))


@costly
@given(seeds, shifts, shifts)
def test_shifting_the_domain_leaves_the_fitted_function_the_same(seed, down, right):
    """The phases shift with the domain: b - Wx is as uniform around the circle as b was."""
    points = random_points(seed)
    shift = np.array([down, right])
    moved = Points(points.positions + shift, points.values)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        moments = estimate(points)
        here = CoordinateMLP(uniform_phase(moments, width=8, depth=1), key=jax.random.key(seed))
        bias = here.layers[0].bias - here.layers[0].weight @ jnp.asarray(shift)
        there = eqx.tree_at(lambda n: n.layers[0].bias, here, bias)
        values = [
            np.asarray(
                jax.vmap(fit(network, field, steps=STEPS, moments=moments).network)(jnp.asarray(field.positions))
            )
            for network, field in ((here, points), (there, moved))
        ]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-6)
