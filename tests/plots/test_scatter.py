import numpy as np
import pytest

from helpers.pictures import LOSSES, RNG, assert_picture
from uniphase.plots.preview import preview_figure, write_preview
from uniphase.plots.scatter import surface_shape
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate


def points(coordinates: int, channels: int = 1) -> Points:
    return Points(RNG.uniform(0, 9, (40, coordinates)), RNG.normal(size=(40, channels)))


def drawn(field: Points):
    shape = surface_shape(field)
    surface = None if shape is None else RNG.normal(size=(*shape, field.out_size))
    return field, field.values + 0.1, LOSSES, evaluate(field.values + 0.1, field), "a title", surface


@pytest.mark.parametrize("coordinates", [1, 2, 3])
def test_points_have_a_preview(coordinates, tmp_path):
    *arguments, surface = drawn(points(coordinates, channels=2))
    write_preview(tmp_path / "a.png", *arguments, surface=surface)
    assert_picture(tmp_path / "a.png")


def test_a_map_has_the_first_coordinate_to_the_right_and_the_second_upwards():
    field = Points([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [0.0, 1.0, 2.0, 3.0])
    surface = np.zeros((4, 2, 1))
    surface[3, 1] = 7.0
    figure = preview_figure(field, field.values, LOSSES, evaluate(field.values, field), "", surface=surface)
    truth, fit, error, loss = figure.axes[:4]
    assert [axes.get_title() for axes in (truth, fit, error, loss)] == ["truth", "fit, PSNR inf dB", "|error|", "loss"]
    np.testing.assert_array_equal(truth.collections[0].get_offsets(), field.positions)
    image = fit.images[0]
    assert image.origin == "lower"
    np.testing.assert_allclose(image.get_extent(), (-2 / 3, 4 + 2 / 3, -1, 3))  # a cell around each sample
    assert (fit.get_xlim(), fit.get_ylim()) == ((0, 4), (0, 2))
    np.testing.assert_array_equal(np.argwhere(image.get_array() == 7.0), [[1, 3]])


def test_only_points_have_a_surface():
    assert surface_shape(Grid(np.zeros((4, 4, 1)))) is None
    assert surface_shape(points(3)) is None
    assert surface_shape(points(2)) is not None
