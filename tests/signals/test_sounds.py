import numpy as np
import pytest
import soundfile
from skimage import transform

from helpers.images import random_pixels
from uniphase.signals.files import read, write
from uniphase.signals.sounds import audio


@pytest.mark.parametrize(("name", "subtype"), [("a.wav", "FLOAT"), ("a.wav", "PCM_16"), ("a.flac", "PCM_16")])
@pytest.mark.parametrize("channels", [1, 2])
def test_sound(tmp_path, name, subtype, channels):
    stored = random_pixels(1000, channels, dtype=np.int16) / np.float32(32768)
    soundfile.write(tmp_path / name, stored, 8000, subtype=subtype)
    grid = read(tmp_path / name)
    assert grid.extents == ((-100.0, 100.0),)
    assert grid.values.dtype == np.float32
    np.testing.assert_array_equal(grid.values, stored)


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_sound_from_integers_is_scaled_as_a_file_is(tmp_path, dtype):
    stored = random_pixels(100, dtype=dtype)
    soundfile.write(tmp_path / "a.wav", stored, 8000, subtype="PCM_16" if dtype == np.int16 else "PCM_32")
    np.testing.assert_array_equal(audio(stored).values, audio(tmp_path / "a.wav").values)


def test_sound_is_resampled():
    samples = np.sin(np.linspace(0, 20, 1000))
    expected = np.asarray(transform.resize(samples, (250,), anti_aliasing=True), np.float32)
    np.testing.assert_array_equal(audio(samples, size=250).values[:, 0], expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((2, 3, 4)), r"source: the shape is \(2, 3, 4\), but a sound is"),
        (np.zeros(9, np.uint8), "source: the dtype is uint8; pass the samples as float32"),
    ],
)
def test_arrays_that_are_not_sounds(source, message):
    with pytest.raises(ValueError, match=message):
        audio(source)


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
@pytest.mark.parametrize("channels", [1, 2])
def test_sounds_are_written_as_they_are_read(tmp_path, name, channels):
    stored = random_pixels(1000, channels, dtype=np.int16) / np.float32(32768)
    write(tmp_path / name, stored, rate=7999.9)
    grid = read(tmp_path / name)
    assert grid.rate == 8000
    np.testing.assert_array_equal(grid.values, stored)
    write(tmp_path / name, np.array([[-7.0], [7.0]]), rate=8000.0)
    np.testing.assert_allclose(read(tmp_path / name).values, [[-1], [1]], atol=1 / 32768)  # the largest integer


def test_the_rate_of_an_array(tmp_path):
    sound = audio(np.zeros(1000), rate=44100)
    assert sound.rate == 44100.0
    assert audio(np.zeros(1000), rate=44100, size=500).rate == 22050.0
    write(tmp_path / "a.wav", sound.values, rate=sound.rate)
    assert audio(tmp_path / "a.wav").rate == 44100.0


def test_a_file_has_its_own_rate(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    with pytest.raises(ValueError, match=r"a.wav: rate is 44100, but a file has its own; leave rate out"):
        audio(tmp_path / "a.wav", rate=44100)


@pytest.mark.parametrize("rate", [0, -8000.0, float("nan"), float("inf")])
def test_an_invalid_rate(rate):
    with pytest.raises(ValueError, match=f"source: rate is {rate}; pass the samples per second"):
        audio(np.zeros(100), rate=rate)


def test_time_may_be_in_seconds(tmp_path):
    assert audio(np.zeros(4410), rate=44100, extents=(0.0, 0.1)).extents == ((0.0, 0.1),)
    soundfile.write(tmp_path / "a.wav", np.zeros(100), 8000)
    assert read(tmp_path / "a.wav", extents=(0.0, 100 / 8000)).extents == ((0.0, 0.0125),)
