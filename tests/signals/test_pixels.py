import contextlib
import logging
import re
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import EpsImagePlugin, Image

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
    assert grid.extents == ((-6 / 9, 6 / 9), (-1.0, 1.0))
    assert grid.align == "centers"
    assert grid.stored == "uint8"
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
def test_alpha_is_reported_unless_opaque(tmp_path, name, channels):
    stored = random_pixels(6, 9, channels)
    Image.fromarray(stored).save(tmp_path / name, **_options(name))
    with pytest.warns(UserWarning, match=f"^{re.escape(str(tmp_path / name))}: dropped its alpha channel$"):
        grid = image(tmp_path / name)
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), stored[..., :-1])
    stored[..., -1] = 255
    Image.fromarray(stored).save(tmp_path / name, **_options(name))
    np.testing.assert_array_equal(stored_integers(image(tmp_path / name), np.uint8), stored[..., :-1])


@pytest.mark.parametrize("transparency", [1, b"\xff\x80\xff"])
def test_transparent_palette_is_reported(tmp_path, transparency):
    file = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8))
    file.putpalette([255, 0, 0, 0, 128, 0, 0, 0, 64])
    file.save(tmp_path / "a.png", transparency=transparency)
    with pytest.warns(UserWarning, match="dropped its alpha channel"):
        grid = image(tmp_path / "a.png")
    expected = np.array([[255, 0, 0], [0, 128, 0], [0, 0, 64]])[[[0, 1], [2, 1]]]
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), expected)


@pytest.mark.parametrize(("mode", "key"), [("1", 0), ("L", 7), ("RGB", (7, 7, 7)), ("I;16", 7)])
def test_transparent_colour_is_reported(tmp_path, mode, key):
    stored = np.full((2, 3), 7, np.uint16 if mode == "I;16" else np.uint8)
    file = Image.fromarray(stored)
    (file if mode == "I;16" else file.convert(mode)).save(tmp_path / "a.png", transparency=key)
    with pytest.warns(UserWarning, match="dropped its (alpha channel|transparent colour)"):
        grid = image(tmp_path / "a.png")
    assert grid.out_size == (3 if mode == "RGB" else 1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_unspecified_channels_are_reported(tmp_path, dtype):
    stored = random_pixels(6, 9, 4, dtype=dtype)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", extrasamples=["unspecified"])
    with pytest.warns(UserWarning, match="dropped its unspecified channels"):
        grid = image(tmp_path / "a.tif")
    np.testing.assert_array_equal(stored_integers(grid, dtype), stored[..., :3])


@pytest.mark.parametrize("suffix", [".gif", ".png", ".webp"])
def test_further_frames_are_reported(tmp_path, suffix):
    frames = [Image.fromarray(np.full((6, 9, 3), value, np.uint8)) for value in (10, 20, 200)]
    frames[0].save(tmp_path / f"a{suffix}", save_all=True, append_images=frames[1:], **_options(suffix))
    with pytest.warns(UserWarning, match=f"a{suffix}: dropped all but the first of its 3 frames$"):
        grid = image(tmp_path / f"a{suffix}")
    np.testing.assert_array_equal(stored_integers(grid, np.uint8), 10)


def _save_pages(path, pages: list[np.ndarray], **options):
    first, *others = [Image.fromarray(page) for page in pages]
    first.save(path, save_all=True, append_images=others, **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("options", [{}, {"metadata": None, "byteorder": ">"}])
def test_a_tiff_stack_is_a_volume(tmp_path, dtype, channels, options):
    stored = random_pixels(4, 6, 9, channels, dtype=np.uint16).astype(dtype)
    kind = {"photometric": "rgb", "planarconfig": "contig"} if channels == 3 else {"photometric": "minisblack"}
    tifffile.imwrite(tmp_path / "a.tif", stored if channels == 3 else stored[..., 0], **kind, **options)
    grid = read(tmp_path / "a.tif")
    largest = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    assert grid.extents == ((-4 / 9, 4 / 9), (-6 / 9, 6 / 9), (-1.0, 1.0))
    assert (grid.stored, grid.medium) == (np.dtype(dtype).name, "rgb" if channels == 3 else "gray")
    expected = np.maximum(stored / np.float64(largest), -1 if largest > 1 else -np.inf)  # -32768 is -1, as -32767
    np.testing.assert_allclose(grid.values, expected, rtol=2e-7)  # float32


def test_a_compressed_stack_is_a_volume(tmp_path):
    stored = random_pixels(3, 6, 9, 3)
    _save_pages(tmp_path / "a.tif", list(stored), compression="tiff_lzw")
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.tif"), np.uint8), stored)
    assert image(tmp_path / "a.tif", space="gray").values.shape == (3, 6, 9, 1)


def test_a_stack_is_resized_and_loses_its_alpha(tmp_path):
    _save_pages(tmp_path / "a.tif", list(random_pixels(6, 8, 12, 4)))
    with pytest.warns(UserWarning, match="dropped its alpha channel$") as caught:
        assert image(tmp_path / "a.tif", size=6).values.shape == (3, 4, 6, 3)
    assert len(caught) == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_pages_of_another_size_are_dropped(tmp_path, dtype):
    stored = random_pixels(2, 8, 12, dtype=np.uint8).astype(dtype)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for page in (*stored, stored[0, ::2, ::2], stored[0, ::4, ::4]):
            file.write(page, photometric="minisblack", metadata=None, contiguous=False)
    message = "dropped 2 of its 4 pages, which differ from the first in size or type$"
    with pytest.warns(UserWarning, match=message):
        assert image(tmp_path / "a.tif").shape == (2, 8, 12)
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        for page in (stored[0], stored[0, ::2, ::2]):
            file.write(page, photometric="minisblack", metadata=None, contiguous=False)
    with pytest.warns(UserWarning, match="dropped 1 of its 2 pages"):
        assert image(tmp_path / "a.tif").shape == (8, 12)


@pytest.mark.parametrize(
    ("shape", "axes", "options"),
    [
        ((3, 2, 8, 12), "ZCYX", {"imagej": True}),
        ((2, 8, 12), "CYX", {"imagej": True}),
        ((3, 2, 8, 12), "TZYX", {"ome": True}),
        ((3, 2, 8, 12), None, {}),
    ],
)
def test_pages_that_are_not_one_axis_are_refused(tmp_path, shape, axes, options):
    metadata = {} if axes is None else {"axes": axes}
    pixels = random_pixels(*shape, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="minisblack", metadata=metadata, **options)
    message = re.escape(f"{axes or 'QQYX'} of shape {shape}")
    with pytest.raises(ValueError, match=rf"its pages are channels or of several axes: {message}\); .* or to NPY"):
        image(tmp_path / "a.tif")


def test_a_stack_of_imagej_in_one_piece(tmp_path):
    stored = random_pixels(5, 8, 12, dtype=np.uint16)
    text = "ImageJ=1.11a\nimages=5\nslices=5\n"
    with tifffile.TiffWriter(tmp_path / "a.tif", byteorder=">") as file:
        file.write(stored[0], photometric="minisblack", description=text, metadata=None)
    with (tmp_path / "a.tif").open("ab") as stream:
        stream.write(stored[1:].astype(">u2").tobytes())
    np.testing.assert_array_equal(stored_integers(image(tmp_path / "a.tif"), np.uint16)[..., 0], stored)


@pytest.fixture
def terminal(capfd, monkeypatch):
    """What is written to the terminal of a user who has not set up logging, as pytest has for every test."""

    @contextlib.contextmanager
    def watch():
        with monkeypatch.context() as patch:
            patch.setattr(logging.getLogger(), "handlers", [])
            yield capfd

    return watch


def _broken_stack(path):
    """Three pages, the last of which cannot be found."""
    tifffile.imwrite(path, np.zeros((3, 40, 60)), photometric="minisblack", metadata=None)
    with tifffile.TiffFile(path) as file:
        offset = file.pages[1].offset
    data = path.read_bytes()
    end = offset + 2 + 12 * int.from_bytes(data[offset : offset + 2], "little")
    path.write_bytes(data[:end] + b"\xf0\xff\xff\x7f" + data[end + 4 :])


def test_damage_is_reported_as_a_warning_and_not_logged_to_the_terminal(tmp_path, terminal):
    _broken_stack(tmp_path / "a.tif")
    message = r"a.tif: may be damaged \(.* invalid page offset 2147483632\)$"
    with terminal() as written, pytest.warns(UserWarning, match=message):
        assert image(tmp_path / "a.tif").shape == (2, 40, 60)
    assert written.readouterr().err == ""


def test_pillow_does_not_log_to_the_terminal(tmp_path, terminal):
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((4, 6, 7), np.uint8), photometric="rgb", planarconfig="contig")
    with terminal() as written, pytest.raises(ValueError, match=r"the shape is \(4, 6, 7\)"):
        image(tmp_path / "a.tif")
    assert written.readouterr().err == ""


def test_logging_of_the_user_is_left_as_it_was(tmp_path, caplog):
    loggers = [logging.getLogger(name) for name in ("PIL", "tifffile")]
    before = [(list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    _broken_stack(tmp_path / "a.tif")
    with pytest.warns(UserWarning, match="may be damaged"):
        image(tmp_path / "a.tif")
    assert "invalid page offset" in caplog.text
    assert [(list(logger.handlers), logger.level, logger.propagate) for logger in loggers] == before


def test_damaged_metadata_do_not_matter(tmp_path):
    path = tmp_path / "a.jpg"
    exif = b"Exif\0\0II*\0\x08\0\0\0\x09\0"  # says that it holds nine entries, and holds none
    Image.fromarray(random_pixels(16, 24)).save(path, exif=exif)
    assert image(path).shape == (16, 24)


@pytest.mark.parametrize("name", ["a.png", "a.gif", "a.tif"])
def test_no_program_is_run_on_what_calls_itself_an_image(tmp_path, monkeypatch, name):
    """Pillow opens PostScript by its content, and gives it to Ghostscript."""
    called = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_: called.append(1))
    lines = ["%!PS-Adobe-3.0 EPSF-3.0", "%%BoundingBox: 0 0 20 20", "%%EndComments", "showpage", ""]
    (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(ValueError, match=f"{name}: cannot be read as a"):
        read(tmp_path / name)
    assert called == []
