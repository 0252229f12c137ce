import re
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from helpers.images import png_chunk, random_pixels, stored_integers, write_png16
from uniphase.signals.files import read
from uniphase.signals.images import image


def _options(name: str) -> dict[str, Any]:
    return {"lossless": True, "exact": True} if name.endswith(".webp") else {}


@pytest.mark.parametrize(
    ("name", "channels"),
    [("a.png", 1), ("a.png", 3), ("a.TIF", 1), ("a.tiff", 3), ("a.bmp", 1), ("a.bmp", 3), ("a.webp", 3)],
)
def test_eight_bits(tmp_path, name, channels):
    stored = random_pixels(6, 9, channels)
    Image.fromarray(stored.squeeze()).save(tmp_path / name, **_options(name))
    grid = read(tmp_path / name)
    assert grid.extents == ((-1.0, 1.0), (-1.0, 1.0))
    assert grid.align == "centers"
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), stored)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg(tmp_path, mode):
    path = tmp_path / "a.jpg"
    Image.fromarray(random_pixels(16, 24, 3)).convert(mode).save(path)
    with Image.open(path) as file:
        decoded = np.asarray(file).reshape(16, 24, -1)
    np.testing.assert_array_equal(stored_integers(image(str(path)), np.uint8), decoded)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_one_bit(tmp_path, suffix):
    stored = random_pixels(5, 11) > 100
    Image.fromarray(stored).save(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(image(tmp_path / f"a{suffix}").values[..., 0], stored)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bit_gray(tmp_path, suffix):
    stored = random_pixels(6, 9, dtype=np.uint16)
    Image.fromarray(stored).save(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(stored_integers(image(tmp_path / f"a{suffix}"), np.uint16)[..., 0], stored)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_sixteen_bit_colour_png_keeps_its_precision(tmp_path, channels, interlaced):
    stored = random_pixels(7, 10, channels, dtype=np.uint16)
    alpha = channels in (2, 4)
    if alpha:
        stored[..., -1] = 65535
    write_png16(tmp_path / "a.png", stored, interlaced=interlaced)
    expected = stored[..., :-1] if alpha else stored
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.png"), np.uint16), expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byteorder": ">"},
        {"compression": "zlib", "predictor": True},
        {"compression": "zlib", "byteorder": ">"},
        {"tile": (16, 16)},
        {"rowsperstrip": 3},
        {"planarconfig": "separate"},
        {"planarconfig": "separate", "byteorder": ">"},
    ],
)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bit_tiff_keeps_its_precision(tmp_path, options, channels):
    stored = random_pixels(21, 18, channels, dtype=np.uint16)
    if channels == 4:
        stored[..., 3] = 65535
    planes = channels > 1 and "planarconfig" in options
    if not planes:
        options = {key: value for key, value in options.items() if key != "planarconfig"}
    written = np.moveaxis(stored, -1, 0) if planes else stored.squeeze()
    tifffile.imwrite(tmp_path / "a.tif", written, photometric="rgb" if channels > 1 else "minisblack", **options)
    expected = stored[..., :3]
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.tif"), np.uint16), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
def test_float_tiff_is_kept(tmp_path, dtype, channels):
    stored = np.random.default_rng(0).normal(0, 10, (6, 9, channels)).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", stored.squeeze(), photometric="rgb" if channels == 3 else "minisblack")
    np.testing.assert_array_equal(image(tmp_path / "a.tif").values, stored.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int16, np.uint32])
def test_other_integers_are_scaled_by_their_own_range(tmp_path, dtype):
    stored = random_pixels(6, 9, dtype=dtype) // 2
    tifffile.imwrite(tmp_path / "a.tif", stored)
    expected = stored / np.iinfo(dtype).max
    np.testing.assert_allclose(image(tmp_path / "a.tif").values[..., 0], expected, rtol=1e-7)  # float32


@pytest.mark.parametrize("suffix", [".png", ".gif", ".tif"])
def test_palette(tmp_path, suffix):
    file = Image.fromarray(np.array([[0, 1, 2], [2, 1, 0]], np.uint8))
    file.putpalette([255, 0, 0, 0, 128, 0, 0, 0, 64])
    file.save(tmp_path / f"a{suffix}")
    expected = np.array([[255, 0, 0], [0, 128, 0], [0, 0, 64]])[[[0, 1, 2], [2, 1, 0]]]
    np.testing.assert_array_equal(stored_integers(image(tmp_path / f"a{suffix}"), np.uint8), expected)


def test_cmyk(tmp_path):
    inks = np.array([[[0, 0, 0, 0], [255, 0, 0, 0]], [[0, 255, 0, 0], [0, 0, 0, 255]]], np.uint8)
    Image.frombytes("CMYK", (2, 2), inks.tobytes()).save(tmp_path / "a.tif")
    expected = [[[1, 1, 1], [0, 1, 1]], [[1, 0, 1], [0, 0, 0]]]
    np.testing.assert_array_equal(image(tmp_path / "a.tif").values, expected)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif"])
def test_orientation_is_applied(tmp_path, suffix):
    stored = np.full((16, 32), 10, np.uint8)
    stored[:8, :8] = 250
    exif = Image.Exif()
    exif[0x0112] = 6  # turn clockwise by a right angle
    Image.fromarray(stored).save(tmp_path / f"a{suffix}", exif=exif)
    values = image(tmp_path / f"a{suffix}").values[..., 0]
    assert values.shape == (32, 16)
    np.testing.assert_allclose(values, np.rot90(stored, -1) / 255, atol=2 / 255)  # JPEG, flat blocks


def test_orientation_of_sixteen_bit_colour(tmp_path):
    stored = random_pixels(4, 6, 3, dtype=np.uint16)
    exif = Image.Exif()
    exif[0x0112] = 6
    write_png16(tmp_path / "a.png", stored, extra=png_chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")))
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.png"), np.uint16), np.rot90(stored, -1))


@pytest.mark.parametrize(("name", "channels"), [("a.png", 2), ("a.png", 4), ("a.tif", 2), ("a.tif", 4), ("a.webp", 4)])
def test_alpha_is_said_unless_opaque(tmp_path, name, channels):
    stored = random_pixels(6, 9, channels)
    Image.fromarray(stored).save(tmp_path / name, **_options(name))
    with pytest.warns(UserWarning, match=f"^{re.escape(str(tmp_path / name))}: dropped its alpha channel$"):
        grid = image(tmp_path / name)
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), stored[..., :-1])
    stored[..., -1] = 255
    Image.fromarray(stored).save(tmp_path / name, **_options(name))
    np.testing.assert_array_equal(stored_integers(image(tmp_path / name), np.uint8), stored[..., :-1])


@pytest.mark.parametrize("transparency", [1, b"\xff\x80\xff"])
def test_transparent_palette_is_said(tmp_path, transparency):
    file = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8))
    file.putpalette([255, 0, 0, 0, 128, 0, 0, 0, 64])
    file.save(tmp_path / "a.png", transparency=transparency)
    with pytest.warns(UserWarning, match="dropped its alpha channel"):
        grid = image(tmp_path / "a.png")
    expected = np.array([[255, 0, 0], [0, 128, 0], [0, 0, 64]])[[[0, 1], [2, 1]]]
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), expected)


@pytest.mark.parametrize(("mode", "key"), [("1", 0), ("L", 7), ("RGB", (7, 7, 7)), ("I;16", 7)])
def test_transparent_colour_is_said(tmp_path, mode, key):
    stored = np.full((2, 3), 7, np.uint16 if mode == "I;16" else np.uint8)
    file = Image.fromarray(stored)
    (file if mode == "I;16" else file.convert(mode)).save(tmp_path / "a.png", transparency=key)
    with pytest.warns(UserWarning, match="dropped its (alpha channel|transparent colour)"):
        grid = image(tmp_path / "a.png")
    assert grid.out_size == (3 if mode == "RGB" else 1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_unspecified_channels_are_said(tmp_path, dtype):
    stored = random_pixels(6, 9, 4, dtype=dtype)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", extrasamples=["unspecified"])
    with pytest.warns(UserWarning, match="dropped its unspecified channels"):
        grid = image(tmp_path / "a.tif")
    np.testing.assert_array_equal(stored_integers(grid, dtype), stored[..., :3])


@pytest.mark.parametrize("suffix", [".gif", ".png", ".tif", ".webp"])
def test_further_frames_are_said(tmp_path, suffix):
    frames = [Image.fromarray(np.full((6, 9, 3), value, np.uint8)) for value in (10, 20, 200)]
    frames[0].save(tmp_path / f"a{suffix}", save_all=True, append_images=frames[1:], **_options(suffix))
    with pytest.warns(UserWarning, match=f"a{suffix}: dropped all but the first of its 3 frames$"):
        grid = image(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), 10)


def test_further_pages_of_a_tiff_beyond_pillow_are_said(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 6, 9), np.float64), photometric="minisblack")
    with pytest.warns(UserWarning, match="dropped all but the first of its 4 frames$"):
        assert image(tmp_path / "a.tif").shape == (6, 9)
