import numpy as np
import pytest
from scipy.fft import dctn

from uniphase.signals.complexity import cosine_energies
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid


def test_shares_are_those_of_the_cosines():
    """One block of 16 × 16, against its definition."""
    values = np.random.default_rng(0).normal(size=(16, 16, 1))
    energies = np.square(dctn((values - values.mean())[..., 0], norm="ortho"))
    expected = np.sort(energies.ravel())[::-1] / energies.sum()
    np.testing.assert_allclose(cosine_energies(Grid(values)), expected, rtol=1e-9, atol=1e-20)  # float64 rounding


@pytest.mark.parametrize("shape", [(1000,), (40, 50), (12, 13, 14), (3, 4, 5, 6), (2,), (1000, 2)])
def test_they_add_up_to_one(shape):
    field = Grid(np.random.default_rng(0).normal(size=(*shape, 2)))
    energies = cosine_energies(field)
    assert energies.sum() == pytest.approx(1.0)
    assert (np.diff(energies) <= 0).all()


def test_gray_pictures_in_color_are_as_simple_as_in_gray():
    gray = load("camera", size=64)
    color = Grid(np.repeat(gray.values, 3, axis=2))
    one, three = cosine_energies(gray), cosine_energies(color)
    np.testing.assert_allclose(three[: len(one)], one, rtol=1e-6, atol=1e-12)  # rotations in float64 of float32 pixels
    assert three[len(one) :].sum() < 1e-12


@pytest.mark.parametrize("factor", [1e-12, 1e12, 1e200])
def test_units_do_not_matter(factor):
    values = np.random.default_rng(0).normal(size=(32, 32, 1))
    np.testing.assert_allclose(cosine_energies(Grid(factor * values)), cosine_energies(Grid(values)), rtol=1e-6)


def test_missing_samples_count_as_the_mean():
    values = np.random.default_rng(0).normal(size=(16, 16, 1))
    values[3, 4] = np.nan
    filled = values.copy()
    filled[3, 4] = np.nanmean(values)
    np.testing.assert_allclose(cosine_energies(Grid(values)), cosine_energies(Grid(filled)), rtol=1e-9, atol=1e-20)


def test_a_constant_has_none():
    assert len(cosine_energies(Grid(np.full((8, 8, 1), 3.0)))) == 0


def test_large_fields_are_looked_at_in_part():
    values = np.broadcast_to(np.random.default_rng(0).normal(size=(1, 2048, 1)), (4096, 2048, 1))
    assert len(cosine_energies(Grid(values))) == 4096 * 256
