import numpy as np
import pytest

from uniphase.signals.fields import Grid
from uniphase.signals.splines import cubic_spline


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_the_spline_is_registered(align):
    """It meets its own samples and a smooth function between them; a shift by half a sample would be off by 0.05."""

    def wave(n: int) -> Grid:
        grid = Grid(np.zeros((n, n + 1, 1)), align=align)
        return Grid(np.sin(grid.coordinates().sum(axis=1)).reshape(n, n + 1, 1), align=align)

    np.testing.assert_allclose(cubic_spline(wave(20), wave(20)), wave(20).values, atol=1e-12)  # rounding
    inside = slice(2, -2) if align == "centers" else slice(None)  # beyond the outermost samples it is constant
    error = (cubic_spline(wave(20), wave(40)) - wave(40).values)[inside, inside]
    assert np.abs(error).max() < 1e-5  # fourth order: (1/10)⁴/384 along each axis, and more at the ends


def test_a_spline_through_few_samples():
    for n in (2, 3):
        line = Grid(np.linspace(0.0, 1.0, n)[:, None], align="corners")
        fine = Grid(np.zeros((9, 1)), align="corners")
        np.testing.assert_allclose(cubic_spline(line, fine)[:, 0], np.linspace(0, 1, 9), atol=1e-12)  # rounding
