import math

import numpy as np
import pytest

from helpers.waves import waves
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.noise import estimate_noise
from uniphase.signals.fields import Grid, Points


@pytest.mark.parametrize(("shape", "channels"), [((20_000,), 1), ((160, 160), 1), ((120, 160), 3), ((30, 30, 30), 1)])
def test_noise_is_taken_out_of_the_moments(shape, channels):
    """The structure tensor of a noisy random field is within 10 % of the clean one; without the level it is not."""
    clean = waves(shape, channels)
    noise = 0.5 * clean.values.std()
    noisy = Grid(clean.values + np.random.default_rng(1).normal(0, noise, clean.values.shape))
    wanted, found = estimate_moments(clean), estimate_moments(noisy, noise=noise)
    size = np.linalg.norm(wanted.structure_tensor)
    # Six draws of the noise are off by up to 7 % in one dimension, and by up to 3 % in more.
    assert np.linalg.norm(found.structure_tensor - wanted.structure_tensor) < 0.1 * size
    assert np.linalg.norm(estimate_moments(noisy).structure_tensor - wanted.structure_tensor) > 0.1 * size
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(wanted.covariance), rtol=0.05)


def test_noise_of_scattered_points():
    """The same by local regressions, which smooth less the fewer neighbours they have."""
    clean = waves((70, 70))
    noise = 0.3 * clean.values.std()
    values = clean.flat_values() + np.random.default_rng(1).normal(0, noise, (4900, 1))
    found = [
        np.trace(estimate_moments(Points(clean.coordinates(), y), noise=level).structure_tensor)
        for y, level in ((clean.flat_values(), 0.0), (values, noise), (values, 0.0))
    ]
    assert found[1] == pytest.approx(found[0], rel=0.07)  # five times the 1.3 % by which draws of the noise differ
    assert found[2] > 1.2 * found[0]


def test_more_noise_than_signal_leaves_valid_moments():
    noisy = Grid(np.random.default_rng(0).normal(size=(40, 40, 2)))
    moments = estimate_moments(noisy, noise=2.0)
    for matrix in (moments.covariance, moments.structure_tensor):
        assert np.linalg.eigvalsh(matrix)[0] > 0


@pytest.mark.parametrize("noise", [-1.0, math.nan, math.inf])
def test_a_level_of_noise_that_is_none(noise):
    with pytest.raises(ValueError, match=r"noise is .*; pass a standard deviation, at least 0 and finite"):
        estimate_moments(waves((8, 8)), noise=noise)


def test_the_level_of_noise_is_estimated():
    clean = waves((200, 200))
    noisy = Grid(clean.values + np.random.default_rng(1).normal(0, 0.7, clean.values.shape))
    assert estimate_noise(noisy) == pytest.approx(0.7, rel=0.05)
    with pytest.raises(ValueError, match="samples that are scattered cannot be estimated; pass its standard deviation"):
        estimate_noise(Points(np.arange(4.0), np.arange(4.0)))
