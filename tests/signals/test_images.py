import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage import color, transform, util

from helpers.images import random_pixels, stored_integers
from uniphase.initialization.moments import estimate_moments
from uniphase.signals.files import read, write
from uniphase.signals.images import image, write_image
from uniphase.signals.metrics import evaluate
from uniphase.signals.pixels import decode


@pytest.mark.parametrize(("shape", "channels"), [((6, 9), 1), ((6, 9, 1), 1), ((6, 9, 3), 3)])
def test_image_from_an_array(shape, channels):
    stored = random_pixels(*shape)
    np.testing.assert_array_equal(stored_integers(image(stored), np.uint8), stored.reshape(6, 9, channels))


@pytest.mark.parametrize("alpha", [np.uint8(254), np.float32(0.9)])
def test_alpha_of_an_array_is_reported(alpha):
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
def test_arrays_that_are_not_images(source, message):
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


def _disc(height: int, width: int) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    distance = np.hypot(rows - (height - 1) / 2, columns - (width - 1) / 2)
    return (1 / (1 + np.exp(distance - height / 4))).astype(np.float32)


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_a_disc_has_the_same_slope_all_around(align):
    field = image(_disc(64, 256), align=align)
    down, right = np.gradient(field.values[..., 0], *field.spacing)
    # Measured between the same pixels of a symmetric disc, so equal but for rounding.
    np.testing.assert_allclose(np.abs(down).max(), np.abs(right).max(), rtol=1e-4)
    omega = estimate_moments(field).structure_tensor
    np.testing.assert_allclose(omega, omega[0, 0] * np.eye(2), atol=1e-3 * omega[0, 0])  # Sobel on a grid of pixels


@pytest.mark.parametrize("shape", [(64, 256), (300, 400), (9, 2)])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_pixels_are_square(shape, align):
    grid = image(np.zeros(shape, np.uint8), align=align)
    low, high = np.array(grid.extents).T
    np.testing.assert_array_equal(low, -high)
    assert high.max() == 1
    np.testing.assert_allclose(*grid.spacing, rtol=1e-12)  # rounding


def test_extents_may_be_given():
    pixels = np.zeros((64, 256), np.uint8)
    assert image(pixels, extents=(-1.0, 1.0)).extents == ((-1.0, 1.0), (-1.0, 1.0))
    assert image(pixels, extents=((0.0, 0.64), (0.0, 2.56))).extents == ((0.0, 0.64), (0.0, 2.56))


def test_resizing_keeps_the_borders():
    """A network that is fitted to a small copy is tested on the image: 85 of 128 is not 400 of 600."""
    pixels = random_pixels(400, 600)
    assert image(pixels, size=128).extents == image(pixels).extents == ((-2 / 3, 2 / 3), (-1.0, 1.0))


_TWELVE_BITS = random_pixels(20, 30, dtype=np.uint16) >> 4
_HOUNSFIELD = (random_pixels(20, 30, dtype=np.uint16) >> 4).astype(np.int16) - 1000


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        (random_pixels(20, 30) // 4, (0, 1)),
        (random_pixels(20, 30, dtype=np.uint16), (0, 1)),
        (np.array([[7, 32767], [9, 9]], np.uint16), np.array([7, 32767]) / 65535),
        (_TWELVE_BITS, np.array([_TWELVE_BITS.min(), _TWELVE_BITS.max()]) / 65535),
        (_HOUNSFIELD, np.array([_HOUNSFIELD.min(), _HOUNSFIELD.max()]) / 32767),
        (_HOUNSFIELD.astype(np.float32), (_HOUNSFIELD.min(), _HOUNSFIELD.max())),
        (_disc(20, 30), (0, 1)),
        (0.4 * _disc(20, 30), (0.4 * _disc(20, 30).min(), 0.4 * _disc(20, 30).max())),
        (np.zeros((4, 6)), (0, 0)),
    ],
)
def test_the_value_range_is_that_of_the_data(pixels, expected):
    np.testing.assert_allclose(image(pixels).value_range, expected, rtol=1e-6)  # float32
    assert image(pixels).stored == pixels.dtype.name
    assert image(pixels, size=4).value_range == image(pixels).value_range
    assert image(pixels, space="rgb").value_range == image(pixels).value_range


@pytest.mark.parametrize("pixels", [_TWELVE_BITS, _HOUNSFIELD, _HOUNSFIELD.astype(np.float32)])
def test_decibels_do_not_depend_on_how_an_image_is_stored(pixels):
    field, taken = image(pixels), (pixels - pixels.min()) / np.ptp(pixels).astype(np.float64)
    low, high = field.value_range
    noise = 0.1 * np.random.default_rng(0).normal(size=field.values.shape)
    metrics = evaluate(field.values + (high - low) * noise, field)
    reference = evaluate(taken[..., None] + noise, image(taken))
    assert metrics.psnr_db == pytest.approx(reference.psnr_db, abs=1e-3)  # float32
    assert metrics.ssim == pytest.approx(reference.ssim, abs=1e-3)


@pytest.mark.parametrize("name", ["a.png", "a.tif"])
@pytest.mark.parametrize(("shape", "space"), [((7, 10), None), ((7, 10, 3), None), ((7, 10, 3), "lab")])
def test_sixteen_bits_are_written_as_they_are_read(tmp_path, name, shape, space):
    pixels = random_pixels(*shape, dtype=np.uint16)
    field = image(pixels, space=space)
    write(tmp_path / name, field.values, medium=field.medium, stored=field.stored, value_range=field.value_range)
    back = _decoded(tmp_path / name)
    assert back.dtype == np.uint16
    # CIELAB in float32 resolves 16 bits of linear light, not of the steep sRGB curve near black.
    np.testing.assert_allclose(back.astype(float), pixels, atol=0 if space is None else 2)


@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32, np.float64, np.uint32])
@pytest.mark.parametrize("shape", [(7, 10), (7, 10, 3)])
def test_tiff_is_written_in_its_own_type(tmp_path, dtype, shape):
    pixels = (_HOUNSFIELD.flat[: np.prod(shape)].reshape(shape) + (1000 if dtype == np.uint32 else 0)).astype(dtype)
    field = image(pixels)
    write(tmp_path / "a.tif", field.values, medium=field.medium, stored=field.stored, value_range=field.value_range)
    back = _decoded(tmp_path / "a.tif")
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, pixels)


def test_a_stack_is_written_as_it_is_read(tmp_path):
    for pixels in (random_pixels(5, 7, 10), random_pixels(5, 7, 10, 3, dtype=np.uint16)):
        kind = "rgb" if pixels.ndim == 4 else "minisblack"
        tifffile.imwrite(tmp_path / "a.tif", pixels, photometric=kind)
        field = image(tmp_path / "a.tif")
        write(tmp_path / "b.tif", field.values, medium=field.medium, stored=field.stored)
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "b.tif"), pixels)
        np.testing.assert_array_equal(image(tmp_path / "b.tif").values, field.values)


def test_integers_are_rounded_and_clipped_to_their_type(tmp_path):
    values = np.array([[[-0.1], [0.4 / 65535]], [[0.6 / 65535], [1.1]]], np.float32)
    write_image(tmp_path / "a.png", values, "gray", stored="uint16")
    np.testing.assert_array_equal(_decoded(tmp_path / "a.png"), [[0, 0], [1, 65535]])
    write_image(tmp_path / "a.tif", 3 * values, "gray", stored="int16")
    assert _decoded(tmp_path / "a.tif").max() == 32767


@pytest.mark.parametrize(
    ("name", "pixels"),
    [("a.webp", _TWELVE_BITS), ("a.png", _HOUNSFIELD), ("a.png", _HOUNSFIELD.astype(np.float32))],
)
def test_eight_bits_show_the_whole_value_range(tmp_path, name, pixels):
    field = image(pixels)
    write(tmp_path / name, field.values, medium=field.medium, stored=field.stored, value_range=field.value_range)
    back = _decoded(tmp_path / name)
    assert back.dtype == np.uint8
    assert back.min() < 10  # WebP is lossy
    assert back.max() > 245


def test_numbers_of_an_array_are_not_scaled(tmp_path):
    values = np.array([[[7.4], [300.0]], [[-3.0], [41.0]]])
    write(tmp_path / "a.png", values, stored="uint8")
    np.testing.assert_array_equal(_decoded(tmp_path / "a.png"), [[7, 255], [0, 41]])
    write(tmp_path / "a.png", values, stored="float64", value_range=(-3.0, 300.0))
    np.testing.assert_array_equal(_decoded(tmp_path / "a.png"), [[9, 255], [0, 37]])
    write(tmp_path / "a.png", np.full((2, 3, 1), 7.0), stored="float64", value_range=(7.0, 7.0))


def _decoded(path) -> np.ndarray:
    (page,) = decode(str(path), [])
    return page


# Missing pixels.


def test_a_mask_marks_missing_pixels(tmp_path):
    pixels, mask = random_pixels(6, 9, 3), np.zeros((6, 9), bool)
    mask[1:3, 4] = True
    Image.fromarray(np.where(mask, 255, 0).astype(np.uint8)).save(tmp_path / "mask.png")
    np.save(tmp_path / "mask.npy", mask)
    for source in (mask, tmp_path / "mask.png", str(tmp_path / "mask.npy")):
        found = image(pixels, mask=source)
        np.testing.assert_array_equal(found.missing.reshape(6, 9), mask)
        np.testing.assert_array_equal(found.values[~mask], image(pixels).values[~mask])
        assert found.value_range == (0.0, 1.0)
    assert np.isnan(image(pixels, mask=mask, space="lab").values[1, 4]).all()


@pytest.mark.filterwarnings("error")
def test_alpha_as_a_mask():
    pixels = np.full((2, 3, 4), 200, np.uint8)
    pixels[0, 1, 3], pixels[1, 2, 3] = 100, 130
    found = image(pixels, alpha="mask")
    np.testing.assert_array_equal(found.missing, [False, True, False, False, False, False])
    both = image(pixels, alpha="mask", mask=np.array([[0, 0, 1], [0, 0, 0]]))
    np.testing.assert_array_equal(both.missing, [False, True, True, False, False, False])


@pytest.mark.parametrize(("options", "message"), [
    ({"mask": np.zeros((9, 6))}, r"source: the mask has the shape \(9, 6\), but the signal has \(6, 9\); pass one"),
    ({"mask": np.ones((6, 9))}, "source: every sample is masked; in a mask, white .* marks the samples to leave out"),
    ({"alpha": "mask"}, "source: alpha is 'mask', but there is no alpha channel"),
])  # fmt: skip
def test_bad_masks(options, message):
    with pytest.raises(ValueError, match=message):
        image(random_pixels(6, 9, 3), **options)


def test_pixels_are_averages_and_samples_at_corners_are_points():
    assert image(random_pixels(6, 9)).sampling == "averages"
    assert image(random_pixels(6, 9), align="corners").sampling == "points"
