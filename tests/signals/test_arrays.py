import re

import numpy as np
import pytest
import tifffile
from skimage import transform

from helpers.images import random_pixels, stored_integers
from uniphase.signals.arrays import array, volume
from uniphase.signals.files import read, write


@pytest.mark.parametrize("dtype", [np.float16, np.int16, bool])
def test_npy_stays_on_the_disk(tmp_path, dtype):
    stored = random_pixels(4, 5, 6).astype(dtype)
    np.save(tmp_path / "a.npy", stored)
    grid = read(tmp_path / "a.npy")
    assert isinstance(grid.values, np.memmap)
    assert not grid.values.flags.writeable
    assert grid.values.dtype == dtype
    np.testing.assert_array_equal(grid.values[..., 0], stored)


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((9,), None, (9, 1)),
        ((9, 2), None, (9, 2)),
        ((9, 5), None, (9, 5, 1)),
        ((9, 5, 4), None, (9, 5, 4)),
        ((9, 5, 4), 3, (9, 5, 4, 1)),
        ((9, 5, 7), 2, (9, 5, 7)),
        ((9, 5), 1, (9, 5)),
    ],
)
def test_axes(shape, axes, expected):
    assert array(np.zeros(shape), axes=axes).values.shape == expected


@pytest.mark.parametrize(("shape", "axes"), [((9, 5), 3), ((9, 5, 4, 2), 2), ((9, 5), 0)])
def test_axes_that_do_not_fit(shape, axes):
    message = f"source: axes is {axes}, but the shape is {re.escape(str(shape))}; set axes to"
    with pytest.raises(ValueError, match=message):
        array(np.zeros(shape), axes=axes)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
def test_resized_volume_keeps_its_units(dtype):
    stored = (random_pixels(8, 12, 10) / 2).astype(dtype)
    grid = volume(stored, size=6)
    expected = transform.resize(stored.astype(np.float32), (4, 6, 5), anti_aliasing=True)
    np.testing.assert_array_equal(grid.values[..., 0], expected)
    assert grid.values.dtype == np.float32


@pytest.mark.parametrize("values", [np.arange(6, dtype=np.uint16).reshape(2, 3), np.full((2, 2, 2, 1), np.nan)])
def test_arrays_are_written_as_they_are(tmp_path, values):
    write(tmp_path / "a.NPY", values)
    stored = np.load(tmp_path / "a.NPY")
    assert stored.dtype == values.dtype
    np.testing.assert_array_equal(stored, values)


def test_cells_are_square():
    assert array(np.zeros((64, 256, 1))).extents == ((-0.25, 0.25), (-1.0, 1.0))
    assert array(np.zeros((64, 256)), size=100).extents == ((-0.25, 0.25), (-1.0, 1.0))
    assert array(np.zeros(1000)).extents == ((-1.0, 1.0),)
    assert volume(np.zeros((3, 5, 2)), align="corners").extents == ((-0.5, 0.5), (-1.0, 1.0), (-0.25, 0.25))
    assert volume(np.zeros((8, 12, 10)), extents=(0.0, 1.0)).extents == ((0.0, 1.0),) * 3


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float64"])
def test_a_prediction_is_written_in_the_type_of_the_array(tmp_path, dtype):
    stored = (random_pixels(4, 5, 6) > 100).astype(dtype)
    field = array(stored, size=6)
    assert field.stored == dtype
    prediction = field.values.astype(np.float32) + np.float32(0.25)
    write(tmp_path / "a.npy", prediction, medium=field.medium, stored=field.stored)
    back = np.load(tmp_path / "a.npy")
    assert back.dtype == dtype
    np.testing.assert_array_equal(back[..., 0], stored if np.dtype(dtype).kind != "f" else stored + 0.25)


def test_the_scaled_values_of_an_image_stay_floats(tmp_path):
    values = np.full((2, 3, 1), 0.3, np.float32)
    write(tmp_path / "a.npy", values, medium="gray", stored="uint8")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)


def test_a_tiff_stack_is_a_volume(tmp_path):
    stored = random_pixels(4, 6, 8)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="minisblack")
    grid = volume(tmp_path / "a.tif", extents=(0.0, 1.0))
    np.testing.assert_array_equal(stored_integers(grid, np.uint8)[..., 0], stored)
    assert grid.extents == ((0.0, 1.0),) * 3
    assert volume(tmp_path / "a.tif", size=4).shape == (2, 3, 4)
    tifffile.imwrite(tmp_path / "a.tif", stored[0], photometric="minisblack")
    with pytest.raises(ValueError, match=r"a.tif: the shape is \(6, 8\), not that of a volume; read it with load"):
        volume(tmp_path / "a.tif")
