import numpy as np
import pytest
from PIL import Image
from skimage import color, transform, util

from helpers.images import random_pixels, stored_integers
from uniphase.signals.files import read, write
from uniphase.signals.images import image, write_image


@pytest.mark.parametrize(("shape", "channels"), [((6, 9), 1), ((6, 9, 1), 1), ((6, 9, 3), 3)])
def test_image_from_an_array(shape, channels):
    stored = random_pixels(*shape)
    np.testing.assert_array_equal(stored_integers(image(stored), np.uint8), stored.reshape(6, 9, channels))


@pytest.mark.parametrize("alpha", [np.uint8(254), np.float32(0.9)])
def test_alpha_of_an_array_is_said(alpha):
    with pytest.warns(UserWarning, match="^source: dropped its alpha channel$"):
        assert image(np.full((2, 3, 4), alpha)).out_size == 3


@pytest.mark.parametrize("shape", [(40, 60), (61, 40, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("size", [16, 90])
def test_resize_is_that_of_skimage_on_the_stored_type(shape, dtype, size):
    stored = random_pixels(*shape, dtype=dtype)
    new = (round(shape[0] * size / max(shape)), round(shape[1] * size / max(shape)))
    expected = np.asarray(transform.resize(stored, new, anti_aliasing=True), np.float32)
    values = image(stored, size=size).values
    np.testing.assert_array_equal(values, expected.reshape(values.shape))


def test_resize_keeps_the_range_of_floats():
    values = np.linspace(-300, 500, 40 * 40, dtype=np.float32).reshape(40, 40)
    resized = image(values, size=20).values
    assert resized.min() < -250
    assert resized.max() > 450
    np.testing.assert_array_equal(image(values, size=40).values[..., 0], values)


def test_resize_of_one_bit_is_antialiased(tmp_path):
    Image.fromarray(np.indices((8, 8)).sum(0) % 2 == 0).save(tmp_path / "a.png")
    values = image(tmp_path / "a.png", size=4).values
    assert ((values > 0.2) & (values < 0.8)).all()


def test_colour_comes_after_resizing():
    stored = random_pixels(40, 60, 3)
    resized = transform.resize(stored, (20, 30), anti_aliasing=True)
    lab = image(stored, size=30, space="lab").values
    np.testing.assert_array_equal(lab, color.rgb2lab(resized).astype(np.float32))
    gray = image(stored, size=30, space="gray").values
    np.testing.assert_array_equal(gray[..., 0], color.rgb2gray(resized).astype(np.float32))


def test_gray_is_replicated():
    stored = random_pixels(6, 9)
    replicated = np.repeat(stored[..., None], 3, axis=-1)
    np.testing.assert_array_equal(stored_integers(image(stored, space="rgb"), np.uint8), replicated)
    lab = color.rgb2lab(util.img_as_float32(replicated))
    np.testing.assert_array_equal(image(stored, space="lab").values, lab)
    np.testing.assert_array_equal(image(stored, space="gray").values, image(stored).values)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((6, 9, 5)), r"source: the shape is \(6, 9, 5\), but an image is .* read it with array"),
        (np.zeros(6), r"source: the shape is \(6,\)"),
        (np.zeros((6, 9), np.int64), "source: the dtype is int64.* make it uint8 or float32"),
        (np.zeros((6, 9), np.complex64), "source: the dtype is complex64"),
    ],
)
def test_arrays_that_are_no_images(source, message):
    with pytest.raises(ValueError, match=message):
        image(source)


@pytest.mark.parametrize("limit", [40, 70])  # 100 pixels: beyond twice the limit Pillow's error, below it the warning
def test_decompression_bomb(tmp_path, monkeypatch, limit):
    Image.fromarray(random_pixels(10, 10)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(ValueError, match=r"a.png: .*100 pixels.* save it as NPY$") as caught:
        image(tmp_path / "a.png")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.png", "a.TIF", "a.tiff"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_written_as_they_are_read(tmp_path, name, channels):
    pixels = random_pixels(6, 9, channels)
    write(tmp_path / name, pixels / np.float32(255), medium="rgb" if channels == 3 else None)
    np.testing.assert_array_equal(stored_integers(read(tmp_path / name), np.uint8), pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.jpeg", "a.webp"])
def test_lossy_images_are_close(tmp_path, name):
    values = np.linspace(0, 1, 32 * 24 * 3).reshape(32, 24, 3)
    write(tmp_path / name, values)
    np.testing.assert_allclose(read(tmp_path / name).values, values, atol=0.03)  # quality 95 of a smooth image


def test_images_are_rounded_and_clipped(tmp_path):
    write_image(tmp_path / "a.png", np.array([[[-0.5]], [[0.4 / 255]], [[0.6 / 255]], [[1.7]]]))
    with Image.open(tmp_path / "a.png") as file:
        np.testing.assert_array_equal(np.asarray(file)[:, 0], [0, 0, 1, 255])


def test_lab_is_converted_back(tmp_path):
    pixels = random_pixels(6, 9, 3)
    write_image(tmp_path / "a.png", image(pixels, space="lab").values, "lab")
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.png"), np.uint8), pixels)
    write_image(tmp_path / "b.png", np.full((2, 3, 3), [10.0, -50.0, 200.0]), "lab")  # no colour at all: clipped
