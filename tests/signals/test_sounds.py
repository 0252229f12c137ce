import sys

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


def loud(samples: int = 9600) -> np.ndarray:
    """Two tracks that differ, of frequencies that every codec keeps."""
    phases = np.arange(samples) / 10
    return np.stack([0.5 * np.sin(phases), 0.25 * np.cos(phases)], axis=1)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.mp3", {}), ("a.ogg", {}), ("a.opus", {"format": "OGG", "subtype": "OPUS"})]
)
def test_compressed_sounds(tmp_path, name, kind):
    soundfile.write(tmp_path / name, loud(), 48000, **kind)
    sound = read(tmp_path / name)
    assert (sound.shape, sound.out_size, sound.rate, sound.medium) == ((9600,), 2, 48000.0, "sound")
    np.testing.assert_allclose(sound.values[2000:8000], loud()[2000:8000], atol=0.05)  # lossy
    for share in (0.3, 0.6):
        (tmp_path / f"short-{name}").write_bytes(
            (tmp_path / name).read_bytes()[: int(share * (tmp_path / name).stat().st_size)]
        )
        with pytest.raises(ValueError, match=f"short-{name}: cannot be read as a sound .*; get a whole copy"):
            read(tmp_path / f"short-{name}")


def write_contained(path, codec, rate=48000):
    av = pytest.importorskip("av", reason="the extra video is not installed")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout="stereo")
        stream.bit_rate = 256_000
        planes = np.ascontiguousarray(loud().T, np.float32)
        frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout="stereo")
        frame.sample_rate, frame.pts = rate, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode())


@pytest.mark.parametrize(
    ("name", "codec", "delay"), [("a.m4a", "aac", 1024), ("a.aac", "aac", 1024), ("a.mka", "libopus", 0)]
)
def test_sounds_in_containers(tmp_path, name, codec, delay):
    write_contained(tmp_path / name, codec)
    sound = read(tmp_path / name)
    if name == "a.m4a":
        assert sound.shape == (9600,)  # neither delayed nor padded
    assert (sound.out_size, sound.rate, sound.values.dtype) == (2, 48000.0, np.float32)
    start = delay if sound.shape[0] > 9600 else 0  # of the encoder, where the file does not say it
    np.testing.assert_allclose(sound.values[start + 2000 : start + 8000], loud()[2000:8000], atol=0.05)  # lossy
    short = tmp_path / f"short-{name}"
    short.write_bytes((tmp_path / name).read_bytes()[: (tmp_path / name).stat().st_size // 2])
    with pytest.raises(ValueError, match=f"short-{name}: cannot be read as a sound .*; get a whole copy"):
        read(short)


def test_what_a_container_cannot_give_is_one_line(tmp_path):
    from helpers.videos import write_clip

    write_clip(tmp_path / "a.mp4")
    (tmp_path / "text.m4a").write_text("not a sound" * 99)
    for name, reason in (("a.mp4", "it holds no sound"), ("text.m4a", "Invalid data found when processing input")):
        with pytest.raises(ValueError, match=rf"{name}: cannot be read as a sound \({reason}\); get a whole copy"):
            audio(tmp_path / name)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ModuleNotFoundError, match=r'a.m4a: needs the package av; pip install "uniphase\[video\]"$'):
        audio(tmp_path / "a.m4a")
