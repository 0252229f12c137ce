import errno
import os
import re

import numpy as np
import pytest
import soundfile
import tifffile
from PIL import Image
from skimage import color, transform, util

from helpers.images import random_pixels, stored_integers, write_png16
from uniphase.signals import files


@pytest.mark.parametrize(("shape", "channels"), [((6, 9), 1), ((6, 9, 1), 1), ((6, 9, 3), 3)])
def test_image_from_an_array(shape, channels):
    stored = random_pixels(*shape)
    np.testing.assert_array_equal(stored_integers(files.image(stored), np.uint8), stored.reshape(6, 9, channels))


@pytest.mark.parametrize("alpha", [np.uint8(254), np.float32(0.9)])
def test_alpha_of_an_array_is_said(alpha):
    with pytest.warns(UserWarning, match="^source: dropped its alpha channel$"):
        assert files.image(np.full((2, 3, 4), alpha)).out_size == 3


@pytest.mark.parametrize("shape", [(40, 60), (61, 40, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("size", [16, 90])
def test_resize_is_that_of_skimage_on_the_stored_type(shape, dtype, size):
    stored = random_pixels(*shape, dtype=dtype)
    new = (round(shape[0] * size / max(shape)), round(shape[1] * size / max(shape)))
    expected = np.asarray(transform.resize(stored, new, anti_aliasing=True), np.float32)
    values = files.image(stored, size=size).values
    np.testing.assert_array_equal(values, expected.reshape(values.shape))


def test_resize_keeps_the_range_of_floats():
    values = np.linspace(-300, 500, 40 * 40, dtype=np.float32).reshape(40, 40)
    resized = files.image(values, size=20).values
    assert resized.min() < -250
    assert resized.max() > 450
    np.testing.assert_array_equal(files.image(values, size=40).values[..., 0], values)


def test_resize_of_one_bit_is_antialiased(tmp_path):
    Image.fromarray(np.indices((8, 8)).sum(0) % 2 == 0).save(tmp_path / "a.png")
    values = files.image(tmp_path / "a.png", size=4).values
    assert ((values > 0.2) & (values < 0.8)).all()


def test_colour_comes_after_resizing():
    stored = random_pixels(40, 60, 3)
    resized = transform.resize(stored, (20, 30), anti_aliasing=True)
    lab = files.image(stored, size=30, space="lab").values
    np.testing.assert_array_equal(lab, color.rgb2lab(resized).astype(np.float32))
    gray = files.image(stored, size=30, space="gray").values
    np.testing.assert_array_equal(gray[..., 0], color.rgb2gray(resized).astype(np.float32))


def test_gray_is_replicated():
    stored = random_pixels(6, 9)
    replicated = np.repeat(stored[..., None], 3, axis=-1)
    np.testing.assert_array_equal(stored_integers(files.image(stored, space="rgb"), np.uint8), replicated)
    lab = color.rgb2lab(util.img_as_float32(replicated))
    np.testing.assert_array_equal(files.image(stored, space="lab").values, lab)
    np.testing.assert_array_equal(files.image(stored, space="gray").values, files.image(stored).values)


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
        files.image(source)


@pytest.mark.parametrize("size", [1, 0, -3])
def test_too_small_a_size(size):
    for function in (files.image, files.array):
        with pytest.raises(ValueError, match=f"size is {size}; it must be at least 2"):
            function(np.zeros((6, 9)), size=size)


def test_a_size_that_flattens_an_axis():
    with pytest.raises(ValueError, match=r"size is 10, which makes \(100, 9\) samples \(10, 1\)"):
        files.image(np.zeros((100, 9)), size=10)


@pytest.mark.parametrize(("name", "subtype"), [("a.wav", "FLOAT"), ("a.wav", "PCM_16"), ("a.flac", "PCM_16")])
@pytest.mark.parametrize("channels", [1, 2])
def test_sound(tmp_path, name, subtype, channels):
    stored = random_pixels(1000, channels, dtype=np.int16) / np.float32(32768)
    soundfile.write(tmp_path / name, stored, 8000, subtype=subtype)
    grid = files.read(tmp_path / name)
    assert grid.extents == ((-100.0, 100.0),)
    assert grid.values.dtype == np.float32
    np.testing.assert_array_equal(grid.values, stored)


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_sound_from_integers_is_scaled_as_a_file_is(tmp_path, dtype):
    stored = random_pixels(100, dtype=dtype)
    soundfile.write(tmp_path / "a.wav", stored, 8000, subtype="PCM_16" if dtype == np.int16 else "PCM_32")
    np.testing.assert_array_equal(files.audio(stored).values, files.audio(tmp_path / "a.wav").values)


def test_sound_is_resampled():
    samples = np.sin(np.linspace(0, 20, 1000))
    expected = np.asarray(transform.resize(samples, (250,), anti_aliasing=True), np.float32)
    np.testing.assert_array_equal(files.audio(samples, size=250).values[:, 0], expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((2, 3, 4)), r"source: the shape is \(2, 3, 4\), but a sound is"),
        (np.zeros(9, np.uint8), "source: the dtype is uint8; pass the samples as float32"),
    ],
)
def test_arrays_that_are_no_sounds(source, message):
    with pytest.raises(ValueError, match=message):
        files.audio(source)


@pytest.mark.parametrize("dtype", [np.float16, np.int16, bool])
def test_npy_stays_on_the_disk(tmp_path, dtype):
    stored = random_pixels(4, 5, 6).astype(dtype)
    np.save(tmp_path / "a.npy", stored)
    grid = files.read(tmp_path / "a.npy")
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
    assert files.array(np.zeros(shape), axes=axes).values.shape == expected


@pytest.mark.parametrize(("shape", "axes"), [((9, 5), 3), ((9, 5, 4, 2), 2), ((9, 5), 0)])
def test_axes_that_do_not_fit(shape, axes):
    message = f"source: axes is {axes}, but the shape is {re.escape(str(shape))}; set axes to"
    with pytest.raises(ValueError, match=message):
        files.array(np.zeros(shape), axes=axes)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
def test_resized_volume_keeps_its_units(dtype):
    stored = (random_pixels(8, 12, 10) / 2).astype(dtype)
    grid = files.volume(stored, size=6)
    expected = transform.resize(stored.astype(np.float32), (4, 6, 5), anti_aliasing=True)
    np.testing.assert_array_equal(grid.values[..., 0], expected)
    assert grid.values.dtype == np.float32


def test_read_passes_the_options_on(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((8, 6, 4)))
    grid = files.read(tmp_path / "a.npy", axes=3, size=4, align="corners")
    assert grid.shape == (4, 3, 2)
    assert grid.align == "corners"
    Image.fromarray(random_pixels(8, 6)).save(tmp_path / "a.png")
    grid = files.read(tmp_path / "a.png", size=4, space="lab", align="corners")
    assert grid.values.shape == (4, 3, 3)
    assert grid.align == "corners"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.wav", {"space": "lab"}, "a.wav: space is 'lab', but only images"),
        ("a.npy", {"space": "gray"}, "a.npy: space is 'gray', but only images"),
        ("a.png", {"axes": 2}, "a.png: axes is 2, but only arrays"),
        ("a.flac", {"axes": 1}, "a.flac: axes is 1, but only arrays"),
        ("a.xyz", {}, r"a.xyz: the suffix '.xyz' is not known; .*\.png .*\.wav .*\.npy"),
        ("a", {}, "a: the suffix '' is not known"),
    ],
)
def test_options_and_suffixes_that_do_not_fit(name, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        files.read(name, **options)


def _truncated_jpeg(path):
    Image.fromarray(random_pixels(64, 64, 3)).save(path)
    path.write_bytes(path.read_bytes()[:2000])


def _truncated_png16(path):
    write_png16(path, random_pixels(64, 64, 3, dtype=np.uint16))
    path.write_bytes(path.read_bytes()[:2000])


def _truncated_flac(path):
    soundfile.write(path, random_pixels(20000, dtype=np.int16), 8000)
    path.write_bytes(path.read_bytes()[:20000])


def _truncated_npy(path):
    np.save(path, np.zeros((64, 64)))
    path.write_bytes(path.read_bytes()[:2000])


def _npz(path):
    with path.open("wb") as stream:
        np.savez(stream, a=np.zeros(3))


def _text(path):
    path.write_text("not what the suffix says\n" * 100)


_BAD_FILES = [
    ("a.png", lambda path: path.mkdir(), "a directory, not an image; pass the path of a file"),
    ("a.png", lambda path: path.touch(), "an empty file, not an image; get a whole copy"),
    ("a.png", _text, r"cannot be read as an image \(its format is not known\); .* convert it to"),
    ("a.tif", _text, "cannot be read as an image .*not a TIFF"),
    ("a.jpg", _truncated_jpeg, "cannot be read as an image .*truncated.*; get a whole copy"),
    ("a.png", _truncated_png16, "cannot be read as an image .*truncated.*; get a whole copy"),
    (
        "a.tif",
        lambda path: tifffile.imwrite(path, np.zeros((4, 6, 4), np.uint16), photometric="separated"),
        r"cannot be read as an image \(its 16-bit samples of kind CMYK;16L would be cut to 8 bits\); .* convert it",
    ),
    (
        "a.tif",
        lambda path: tifffile.imwrite(path, np.zeros((4, 6, 4), np.float32), photometric="separated"),
        r"cannot be read as an image \(its photometric interpretation is SEPARATED\); .* convert it",
    ),
    (
        "a.tif",
        lambda path: tifffile.imwrite(path, np.zeros((4, 6), np.uint16), photometric="miniswhite"),
        r"cannot be read as an image \(its photometric interpretation is MINISWHITE\); .* convert it",
    ),
    (
        "a.tif",
        lambda path: tifffile.imwrite(path, np.zeros((4, 6, 5), np.float32), photometric="rgb", planarconfig="contig"),
        r"the shape is \(4, 6, 5\), but an image is",
    ),
    ("a.wav", lambda path: path.mkdir(), "a directory, not a sound"),
    ("a.wav", lambda path: path.touch(), "an empty file, not a sound; .* convert it to WAV or FLAC"),
    ("a.wav", _text, "cannot be read as a sound .* convert it to WAV or FLAC"),
    ("a.wav", lambda path: soundfile.write(path, np.zeros(0), 8000), r".*\(it holds 0 samples of 0\)"),
    ("a.flac", _truncated_flac, "cannot be read as a sound"),
    ("a.npy", lambda path: path.mkdir(), "a directory, not an NPY array"),
    ("a.npy", lambda path: path.touch(), "an empty file, not an NPY array; .* numpy.save"),
    ("a.npy", _text, "cannot be read as an NPY array .*; save an array of real numbers with numpy.save"),
    ("a.npy", _npz, "cannot be read as an NPY array"),
    ("a.npy", _truncated_npy, "cannot be read as an NPY array"),
    ("a.npy", lambda path: np.save(path, np.array([{}, 1])), "cannot be read as an NPY array .*objects"),
    ("a.npy", lambda path: np.save(path, np.ones(3, complex)), r".*\(its dtype is complex128\)"),
]


@pytest.mark.parametrize(("name", "make", "message"), _BAD_FILES)
def test_a_bad_file_is_told_in_one_line(tmp_path, name, make, message):
    path = tmp_path / name
    make(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        files.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.png", "a.wav", "a.npy"])
def test_missing_file(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(tmp_path / name))}: no such file$"):
        files.read(tmp_path / name)


@pytest.mark.parametrize("limit", [40, 70])  # 100 pixels: beyond twice the limit Pillow's error, below it the warning
def test_decompression_bomb(tmp_path, monkeypatch, limit):
    Image.fromarray(random_pixels(10, 10)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(ValueError, match=r"a.png: .*100 pixels.* save it as NPY$") as caught:
        files.image(tmp_path / "a.png")
    assert "\n" not in str(caught.value)


def test_forbidden_file(tmp_path, monkeypatch):
    """Permissions do not bind every user, so the refusal is played."""

    def refuse(path, **options):
        raise PermissionError(13, "Permission denied", str(path))

    np.save(tmp_path / "a.npy", np.zeros(9))
    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        files.read(tmp_path / "a.npy")


def test_the_medium_is_known(tmp_path):
    pixels = random_pixels(6, 9, 3)
    assert [files.image(pixels, space=space).medium for space in (None, "gray", "rgb", "lab")] == [
        "rgb",
        "gray",
        "rgb",
        "lab",
    ]
    assert files.image(pixels[..., 0]).medium == "gray"
    assert files.array(pixels).medium is None
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    sound = files.audio(tmp_path / "a.wav", size=50)
    assert (sound.medium, sound.rate, files.audio(np.zeros(9)).rate) == ("sound", 4000.0, None)


@pytest.mark.parametrize("name", ["a.png", "a.TIF", "a.tiff"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_written_as_they_are_read(tmp_path, name, channels):
    pixels = random_pixels(6, 9, channels)
    files.write(tmp_path / name, pixels / np.float32(255), medium="rgb" if channels == 3 else None)
    np.testing.assert_array_equal(stored_integers(files.read(tmp_path / name), np.uint8), pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.jpeg", "a.webp"])
def test_lossy_images_are_close(tmp_path, name):
    values = np.linspace(0, 1, 32 * 24 * 3).reshape(32, 24, 3)
    files.write(tmp_path / name, values)
    np.testing.assert_allclose(files.read(tmp_path / name).values, values, atol=0.03)  # quality 95 of a smooth image


def test_images_are_rounded_and_clipped(tmp_path):
    files.write_image(tmp_path / "a.png", np.array([[[-0.5]], [[0.4 / 255]], [[0.6 / 255]], [[1.7]]]))
    with Image.open(tmp_path / "a.png") as file:
        np.testing.assert_array_equal(np.asarray(file)[:, 0], [0, 0, 1, 255])


def test_lab_is_converted_back(tmp_path):
    pixels = random_pixels(6, 9, 3)
    files.write_image(tmp_path / "a.png", files.image(pixels, space="lab").values, "lab")
    np.testing.assert_array_equal(stored_integers(files.image(tmp_path / "a.png"), np.uint8), pixels)
    files.write_image(tmp_path / "b.png", np.full((2, 3, 3), [10.0, -50.0, 200.0]), "lab")  # no colour at all: clipped


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
@pytest.mark.parametrize("channels", [1, 2])
def test_sounds_are_written_as_they_are_read(tmp_path, name, channels):
    stored = random_pixels(1000, channels, dtype=np.int16) / np.float32(32768)
    files.write(tmp_path / name, stored, rate=7999.9)
    grid = files.read(tmp_path / name)
    assert grid.rate == 8000
    np.testing.assert_array_equal(grid.values, stored)
    files.write(tmp_path / name, np.array([[-7.0], [7.0]]), rate=8000.0)
    np.testing.assert_allclose(files.read(tmp_path / name).values, [[-1], [1]], atol=1 / 32768)  # the largest integer


@pytest.mark.parametrize("values", [np.arange(6, dtype=np.uint16).reshape(2, 3), np.full((2, 2, 2, 1), np.nan)])
def test_arrays_are_written_as_they_are(tmp_path, values):
    files.write(tmp_path / "a.NPY", values)
    stored = np.load(tmp_path / "a.NPY")
    assert stored.dtype == values.dtype
    np.testing.assert_array_equal(stored, values)


@pytest.mark.parametrize(
    ("name", "values", "options", "message"),
    [
        ("a.xyz", np.zeros((2, 3, 1)), {}, r"the suffix is '.xyz'; use one of .*\.png .*\.wav .*\.npy"),
        ("a.mp3", np.zeros((9, 1)), {"rate": 8000.0}, "the suffix is '.mp3'"),
        ("a.png", np.zeros((9, 1)), {}, r"values has shape \(9, 1\) .* an image is .*; write the values as NPY"),
        ("a.png", np.zeros((4, 5, 6, 3)), {}, r"values has shape \(4, 5, 6, 3\)"),
        ("a.png", np.zeros((4, 5, 2)), {}, r"values has shape \(4, 5, 2\)"),
        ("a.png", np.zeros((4, 5, 1)), {"medium": "lab"}, r"values has shape \(4, 5, 1\) and medium is 'lab'"),
        ("a.png", np.zeros((4, 5, 3), np.uint8), {}, r"values has dtype uint8; pass floats in \[0, 1\]"),
        ("a.png", np.full((4, 5, 3), np.nan), {}, "values has 60 NaN or infinite entries of 60; replace them"),
        ("a.wav", np.zeros((4, 5, 3)), {"rate": 8000.0}, r"values has shape \(4, 5, 3\), but a sound is"),
        ("a.wav", np.zeros((9, 1)), {}, "rate is None; pass the samples per second"),
        ("a.wav", np.zeros((9, 1)), {"rate": 0.0}, "rate is 0.0; pass the samples per second"),
        ("a.flac", np.zeros((9, 1), np.int16), {"rate": 8000.0}, r"values has dtype int16; pass floats in \[-1, 1\]"),
        ("a.flac", np.full((9, 1), np.inf), {"rate": 8000.0}, "values has 9 NaN or infinite entries"),
    ],
)
def test_values_that_a_file_cannot_hold(tmp_path, name, values, options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / name))}: {message}"):
        files.write(tmp_path / name, values, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("write", "values"),
    [(files.write_image, np.zeros((2, 3, 1))), (lambda *file: files.write_audio(*file, 8000.0), np.zeros((2, 1)))],
)
def test_the_suffix_says_the_format(tmp_path, write, values):
    with pytest.raises(ValueError, match=r"the suffix is '\.npy'; use one of"):
        write(tmp_path / "a.npy", values)


@pytest.mark.parametrize("name", ["a.png", "a.wav", "a.npy"])
@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, name, step):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / name).write_text("before")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        files.write(tmp_path / name, np.zeros((9, 1) if name == "a.wav" else (2, 3, 1)), rate=8000.0)
    assert (tmp_path / name).read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    def interrupted():
        with files.atomic_path(tmp_path / "a.txt") as temporary:
            assert (temporary.parent, temporary.suffix) == (tmp_path, ".txt")
            temporary.write_text("half of")
            raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a.txt").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_written_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    files.write(tmp_path / "a.npy", np.zeros((2, 1)))
    assert (tmp_path / "a.npy").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"b/a.npy: there is no directory .*b; make it first"):
        files.write(tmp_path / "b" / "a.npy", np.zeros((2, 1)))
    with pytest.raises(IsADirectoryError, match="a directory; pass the path of a file"), files.atomic_path(tmp_path):
        pass
