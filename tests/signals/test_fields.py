import dataclasses
import inspect

import numpy as np
import pytest

from uniphase.signals.fields import Grid, Points, axis_coordinates, grid_coordinates, slabs, square_extents


def test_centers_are_the_middles_of_cells_and_corners_include_the_ends():
    np.testing.assert_allclose(axis_coordinates(4, (-1.0, 1.0), "centers"), [-0.75, -0.25, 0.25, 0.75])
    np.testing.assert_allclose(axis_coordinates(5, (-1.0, 1.0), "corners"), [-1, -0.5, 0, 0.5, 1])


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (2, 3, 2, 5)])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_coordinates_follow_the_order_of_the_values(shape, align):
    extents = tuple((float(a), float(2 * a + 3)) for a in range(len(shape)))
    positions = grid_coordinates(shape, extents, align)
    grid = Grid(positions.reshape(*shape, len(shape)), extents=extents, align=align)
    np.testing.assert_array_equal(grid.coordinates(), grid.flat_values())
    assert (grid.in_size, grid.out_size, grid.samples, grid.shape) == (len(shape), len(shape), np.prod(shape), shape)
    for axis in range(len(shape)):
        steps = np.diff(positions.reshape(*shape, -1)[..., axis], axis=axis)
        np.testing.assert_allclose(steps, grid.spacing[axis], rtol=1e-12)  # rounding of the coordinates


def test_one_extent_serves_all_axes():
    assert Grid(np.zeros((2, 2, 1)), extents=(0.0, 3.0)).extents == ((0.0, 3.0), (0.0, 3.0))


def test_values_are_not_copied(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 5, 1), np.uint8))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert Grid(mapped).values is mapped


def test_points_accept_one_coordinate_and_one_channel():
    points = Points(np.arange(5), np.arange(5.0))
    assert (points.in_size, points.out_size, points.samples) == (1, 1, 5)
    np.testing.assert_array_equal(points.coordinates(), np.arange(5.0)[:, None])


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_position_moments(align):
    grid = Grid(np.zeros((5, 8, 1)), extents=((0.0, 3.0), (-1.0, 7.0)), align=align)
    for field in (grid, Points(grid.coordinates(), grid.flat_values())):
        mean, covariance = field.position_moments()
        np.testing.assert_allclose(mean, grid.coordinates().mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(covariance, np.cov(grid.coordinates().T, ddof=0), rtol=1e-12, atol=1e-12)


def test_value_range_is_that_of_the_medium_or_of_the_values():
    values = np.array([[0.25], [0.75]])
    assert Grid(values).value_range == (0.25, 0.75)
    assert Grid(values, medium="lab").value_range == (0.25, 0.75)
    assert Grid(values, medium="rgb").value_range == (0.0, 1.0)
    assert Grid(values, medium="sound").value_range == (-1.0, 1.0)
    assert Points(np.arange(2.0), values).value_range == (0.25, 0.75)


@pytest.mark.parametrize("medium", ["gray", "rgb"])
def test_the_range_of_an_image_that_does_not_reach_half_of_white_is_that_of_its_values(medium):
    for low, high in ((0.0, 0.5), (-0.1, 0.9), (0.1, 1.1), (-1000.0, 3000.0), (0.0, 0.0)):
        assert Grid(np.array([[low], [high]]), medium=medium).value_range == (low, high)
    assert Grid(np.array([[0.0], [0.51]]), medium=medium).value_range == (0.0, 1.0)


def test_a_given_range_comes_first():
    grid = Grid(np.array([[0.25], [0.75]]), medium="rgb", value_range=(0.0, 4095.0), stored="uint16")
    assert grid.value_range == (0.0, 4095.0)
    moved = dataclasses.replace(grid, extents=(0.0, 1.0))
    assert (moved.value_range, moved.stored, moved.extents) == ((0.0, 4095.0), "uint16", ((0.0, 1.0),))


def test_square_extents():
    assert square_extents((64, 256)) == ((-0.25, 0.25), (-1.0, 1.0))
    assert square_extents((3, 5, 2), "corners") == ((-0.5, 0.5), (-1.0, 1.0), (-0.25, 0.25))
    assert square_extents((1000,)) == ((-1.0, 1.0),)
    for align in ("centers", "corners"):
        grid = Grid(np.zeros((7, 11, 3, 1)), extents=square_extents((7, 11, 3), align), align=align)
        np.testing.assert_allclose(grid.spacing, grid.spacing[0], rtol=1e-12)  # rounding


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros(5), {}, r"values has shape \(5,\).*values\[..., None\]"),
        (np.zeros((0, 3)), {}, r"values has shape \(0, 3\).*no samples"),
        (np.zeros((3, 0)), {}, r"values has shape \(3, 0\).*no samples"),
        (np.zeros((4, 1, 3)), {}, r"values has shape \(4, 1, 3\): one sample on axis 1.*squeeze\(1\)"),
        (np.array([[1.0], [np.nan], [np.inf]]), {}, r"values has 1 infinite entries of 3; replace them, by NaN"),
        (np.full((4, 1), np.nan), {}, r"values has shape \(4, 1\), and every sample is missing"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), {}, "every sample is missing"),
        (np.zeros((4, 1)), {"sampling": "cells"}, "sampling is 'cells'; it must be 'points' or 'averages'"),
        (np.array([["a"], ["b"]]), {}, r"values has dtype <U1; convert"),
        (np.zeros((3, 1), complex), {}, r"values has dtype complex128"),
        (np.zeros((3, 1), object), {}, r"values has dtype object"),
        (
            np.zeros((3, 3, 1)),
            {"extents": ((0.0, 1.0),)},
            r"extents is \(\(0.0, 1.0\),\), but values has 2 coordinate axes",
        ),
        (np.zeros((3, 1)), {"extents": (1.0, 1.0)}, r"extents is \(1.0, 1.0\).*low < high"),
        (np.zeros((3, 1)), {"extents": (0.0, np.inf)}, r"extents is .*finite"),
        (np.zeros((3, 1)), {"align": "left"}, r"align is 'left'; it must be 'centers' or 'corners'"),
        (np.zeros((3, 1)), {"value_range": (1.0, 0.0)}, r"value_range is \(1.0, 0.0\); pass .* low <= high"),
        (np.zeros((3, 1)), {"value_range": (0.0, np.inf)}, r"value_range is .*; pass finite numbers"),
        (np.zeros((3, 1)), {"stored": "uint12"}, r"stored is 'uint12'; it must be the name of a NumPy type"),
        (np.zeros((3, 1)), {"stored": "complex64"}, r"stored is 'complex64'; .* real numbers, e.g. 'uint16'"),
    ],
)
def test_bad_grids(values, options, message):
    # Below the run-time type checker of the tests, which would refuse some of these first.
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(Grid.__init__)(Grid.__new__(Grid), values, **options)


@pytest.mark.parametrize(
    ("positions", "values", "message"),
    [
        (np.zeros((3, 2)), np.zeros(4), r"positions has 3 rows but values has 4"),
        (np.zeros((0, 2)), np.zeros(0), r"no samples"),
        (np.zeros((3, 2, 1)), np.zeros(3), r"positions has shape \(3, 2, 1\); pass one row per sample"),
        (np.zeros((3, 2)), np.zeros((3, 1, 1)), r"values has shape \(3, 1, 1\)"),
        (np.array([0.0, np.nan, 1.0]), np.zeros(3), r"positions has 1 NaN or infinite entries"),
        (np.arange(3.0), np.array([0.0, np.inf, 1.0]), r"values has 1 NaN or infinite entries"),
    ],
)
def test_bad_points(positions, values, message):
    with pytest.raises(ValueError, match=message):
        Points(positions, values)


@pytest.mark.parametrize("shape", [(1000,), (10, 1000), (3, 5, 7), (2, 100, 3)])
@pytest.mark.parametrize("limit", [1, 17, 10**6])
def test_slabs_cover_an_array_once_within_their_limit(shape, limit):
    seen = np.zeros(shape, int)
    for axis, start, stop in slabs(shape, limit):
        slab = seen[(slice(None),) * axis + (slice(start, stop),)]
        assert slab.size <= max(limit, seen.size // max(shape))  # at least one layer
        slab += 1
    assert (seen == 1).all()


def test_samples_with_nan_are_missing():
    values = np.arange(12.0).reshape(2, 3, 2)
    values[0, 1, 0] = np.nan
    grid = Grid(values)
    np.testing.assert_array_equal(grid.missing, [False, True, False, False, False, False])
    assert grid.value_range == (0.0, 11.0)
    assert Grid(np.zeros((4, 1))).missing is None
    assert Grid(np.zeros((4, 1), np.uint8)).missing is None


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    image = torch.rand(3, 8, 9)
    message = (
        r"values is a tensor of shape \(3, 8, 9\), whose channels seem to be first; pass values.movedim\(0, -1\), or"
    )
    with pytest.raises(ValueError, match=message):
        Grid(image)
    assert Grid(image.movedim(0, -1)).shape == (8, 9)
    assert Grid(image.numpy()).out_size == 9
    with pytest.raises(
        ValueError, match=r"values is a tensor with gradients, or on cpu; pass values.detach\(\).cpu\(\)"
    ):
        Grid(torch.rand(8, 9, 3, requires_grad=True))
    assert Grid(torch.rand(8, 9, 3, requires_grad=True).detach().cpu()).out_size == 3
