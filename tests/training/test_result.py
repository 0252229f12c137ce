import numpy as np

from uniphase.signals.fields import Points
from uniphase.training.fit import fit


def test_a_fit_to_scattered_points_has_a_picture():
    """With the fit between the points, as `render` gives it."""
    positions = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    points = Points(positions, np.sin(3 * positions[:, 0]))
    result = fit(points, width=8, depth=1, steps=2, progress=False)
    figure = result.plot()
    assert [axes.get_title() for axes in figure.axes[:4:2]] == ["truth", "|error|"]
    image = figure.axes[1].images[0].get_array()
    np.testing.assert_array_equal(image, result.render(image.shape[::-1])[..., 0].T)
