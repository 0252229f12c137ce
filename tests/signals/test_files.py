import re

import numpy as np
import pytest
import soundfile
import tifffile
from PIL import Image

from helpers.images import random_pixels, write_png16
from uniphase.signals.arrays import array
from uniphase.signals.files import read, write
from uniphase.signals.images import image, write_image
from uniphase.signals.sounds import audio, write_audio


def test_read_passes_the_options_on(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((8, 6, 4)))
    grid = read(tmp_path / "a.npy", axes=3, size=4, align="corners")
    assert grid.shape == (4, 3, 2)
    assert grid.align == "corners"
    Image.fromarray(random_pixels(8, 6)).save(tmp_path / "a.png")
    grid = read(tmp_path / "a.png", size=4, space="lab", align="corners")
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
        read(name, **options)


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
def test_a_bad_file_is_reported_in_one_line(tmp_path, name, make, message):
    path = tmp_path / name
    make(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_the_medium_is_known(tmp_path):
    pixels = random_pixels(6, 9, 3)
    assert [image(pixels, space=space).medium for space in (None, "gray", "rgb", "lab")] == [
        "rgb",
        "gray",
        "rgb",
        "lab",
    ]
    assert image(pixels[..., 0]).medium == "gray"
    assert array(pixels).medium is None
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    sound = audio(tmp_path / "a.wav", size=50)
    assert (sound.medium, sound.rate, audio(np.zeros(9)).rate) == ("sound", 4000.0, None)


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
        write(tmp_path / name, values, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("write", "values"),
    [(write_image, np.zeros((2, 3, 1))), (lambda *file: write_audio(*file, 8000.0), np.zeros((2, 1)))],
)
def test_the_suffix_says_the_format(tmp_path, write, values):
    with pytest.raises(ValueError, match=r"the suffix is '\.npy'; use one of"):
        write(tmp_path / "a.npy", values)
