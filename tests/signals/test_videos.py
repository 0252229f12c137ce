import re
import struct
import sys

import numpy as np
import pytest
from PIL import Image

from helpers.videos import wave, write_clip
from uniphase.signals import videos
from uniphase.signals.files import read, write
from uniphase.signals.images import image
from uniphase.signals.sounds import audio
from uniphase.signals.videos import video, video_shape, write_video

av = pytest.importorskip("av", reason="the extra video is not installed")

# What 8 bits, H.264 or a palette of 256 colours cost, on waves of amplitude 0.4.
LOSS = 0.02


def mux(path, frames, *, codec="libx264", layout="yuv420p", rate=10, times=None, sound=False, **options):
    """Write a container in one's own way."""
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width, stream.pix_fmt = *frames[0].shape[:2], layout
        track = container.add_stream("aac", rate=8000, layout="mono") if sound else None
        for k, frame in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            if times is not None:
                picture.pts = times[k]
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
        if track is not None:
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 6400), np.float32), format="fltp", layout="mono")
            silence.sample_rate = 8000
            container.mux(track.encode(silence))
            container.mux(track.encode())


def random_frames(count: int = 8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (count, 48, 64, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", ["a.mp4", "a.gif", "a.GIF"])
def test_a_video_comes_back(tmp_path, name):
    values = write_clip(tmp_path / name)
    clip = read(tmp_path / name)
    assert (clip.shape, clip.in_size, clip.out_size) == ((8, 24, 32), 3, 3)
    assert (clip.medium, clip.rate, clip.stored, clip.value_range) == ("rgb", pytest.approx(10), "uint8", (0.0, 1.0))
    assert clip.extents == ((-1.0, 1.0), (-0.75, 0.75), (-1.0, 1.0))
    assert clip.values.dtype == np.float32
    np.testing.assert_allclose(clip.values, values, atol=LOSS)


@pytest.mark.parametrize(
    ("suffix", "codec"), [("mkv", "libx264"), ("webm", "libvpx-vp9"), ("avi", "mpeg4"), ("mov", "libx264")]
)
def test_other_containers(tmp_path, suffix, codec):
    if codec not in av.codecs_available:
        pytest.skip(f"PyAV comes without {codec}")
    mux(tmp_path / f"a.{suffix}", np.rint(255 * wave()).astype(np.uint8), codec=codec)
    clip = read(tmp_path / f"a.{suffix}")
    assert (clip.shape, clip.rate) == ((8, 24, 32), 10.0)
    np.testing.assert_allclose(clip.values, wave(), atol=0.15)  # at the encoder's own quality MPEG-4 is off by 0.1


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_the_shape_is_known_before_all_is_decoded(tmp_path, name):
    write_clip(tmp_path / name)
    assert video_shape(tmp_path / name) == (8, 24, 32)


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_only_space_is_resized(tmp_path, name):
    write_clip(tmp_path / name)
    clip = video(tmp_path / name, size=16, space="gray", align="corners")
    assert (clip.values.shape, clip.medium, clip.align) == ((8, 12, 16, 1), "gray", "corners")
    assert clip.extents[1:] == image(np.zeros((24, 32)), align="corners").extents
    means = wave()[..., :1].reshape(8, 12, 2, 16, 2, 1).mean(axis=(2, 4))
    np.testing.assert_allclose(clip.values, means, atol=2 * LOSS)
    assert video(tmp_path / name, extents=(0.0, 2.0)).extents == ((0.0, 2.0),) * 3


def test_small_detail_does_not_alias():
    stripes = np.zeros((2, 64, 64), np.uint8)
    stripes[:, :, ::2] = 255
    np.testing.assert_allclose(video(stripes, rate=5.0, size=24).values[:, :, 2:-2], 0.5, atol=0.05)  # gray, not moiré


def test_an_array_of_bytes():
    frames = random_frames()
    clip = video(frames, rate=25)
    assert (clip.rate, clip.medium) == (25.0, "rgb")
    np.testing.assert_array_equal(np.rint(255 * clip.values), frames)
    assert video(frames[..., 0], rate=25).medium == "gray"
    assert video(frames, rate=25, space="lab").value_range[1] > 50


@pytest.mark.parametrize("medium", [None, "lab"])
@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_what_the_values_mean_is_kept(tmp_path, name, medium):
    """A gray field in its own range, and CIELAB."""
    truth = wave()
    if medium == "lab":
        grid = video(np.rint(255 * truth).astype(np.uint8), rate=10, space="lab")
        write(tmp_path / name, grid.values, medium="lab", rate=grid.rate, value_range=grid.value_range)
    else:
        write(tmp_path / name, 100 + 50 * truth[..., :1], rate=10.0, value_range=(100.0, 150.0))
    np.testing.assert_allclose(read(tmp_path / name).values, truth, atol=LOSS)


def test_mp4_says_how_its_colours_are_coded(tmp_path):
    red = np.broadcast_to(np.array([0.8, 0.2, 0.3], np.float32), (4, 24, 32, 3))
    write_video(tmp_path / "a.mp4", red, 10.0)
    np.testing.assert_allclose(video(tmp_path / "a.mp4").values, red, atol=LOSS)
    with av.open(str(tmp_path / "a.mp4")) as container:
        assert container.streams.video[0].codec_context.colorspace == 5  # BT.601, as in H.273


def test_mp4_has_even_sizes(tmp_path):
    with pytest.warns(UserWarning, match="a.mp4: its frames are 32 × 24, as MP4 has even sizes"):
        write_video(tmp_path / "a.mp4", wave(8, 23, 31), 10.0)
    found = video(tmp_path / "a.mp4").values
    assert found.shape == (8, 24, 32, 3)
    np.testing.assert_allclose(found[:, :23, :31], wave(8, 23, 31), atol=2 * LOSS)
    np.testing.assert_allclose(found[:, 23], found[:, 22], atol=2 * LOSS)


def test_without_h264_it_is_mpeg4(tmp_path, monkeypatch):
    monkeypatch.setattr(av, "codecs_available", {"mpeg4"})
    write_clip(tmp_path / "a.mp4")
    with av.open(str(tmp_path / "a.mp4")) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
    np.testing.assert_allclose(video(tmp_path / "a.mp4").values, wave(), atol=2 * LOSS)


@pytest.mark.parametrize("rate", [12.5, 30.0, 24000 / 1001])
def test_a_gif_lasts_as_long_as_it_should(tmp_path, rate):
    """Though its durations are whole hundredths of a second."""
    write_clip(tmp_path / "a.gif", frames=30, rate=rate)
    with Image.open(tmp_path / "a.gif") as file:
        milliseconds = []
        for k in range(file.n_frames):
            file.seek(k)
            milliseconds.append(file.info["duration"])
    assert sum(milliseconds) == pytest.approx(30_000 / rate, abs=5.1)
    assert read(tmp_path / "a.gif").rate == pytest.approx(rate, rel=0.02)


def test_a_gif_of_one_frame_is_an_image(tmp_path):
    Image.new("L", (6, 4), 51).save(tmp_path / "a.gif")
    grid = read(tmp_path / "a.gif", size=3)
    assert (grid.shape, grid.rate) == ((2, 3), None)
    with pytest.raises(ValueError, match=r"a.gif: cannot be read as a video \(it holds a single frame, which is an im"):
        video(tmp_path / "a.gif")


def test_what_is_dropped_is_said(tmp_path):
    mux(tmp_path / "sound.mp4", random_frames(), sound=True)
    with pytest.warns(UserWarning, match=r"sound.mp4: dropped its sound$"):
        assert video(tmp_path / "sound.mp4").shape == (8, 48, 64)
    assert audio(tmp_path / "sound.mp4").rate == 8000.0
    clear = [Image.new("RGBA", (8, 8), (200, k, 0, 255 * (k % 2))) for k in range(4)]
    clear[0].save(tmp_path / "a.gif", save_all=True, append_images=clear[1:], disposal=2)
    with pytest.warns(UserWarning, match=r"a.gif: dropped its alpha channel$"):
        read(tmp_path / "a.gif")


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_frames_that_are_not_evenly_spaced(tmp_path, name):
    if name == "a.mp4":
        mux(tmp_path / name, random_frames(), times=[0, 1, 2, 3, 4, 5, 6, 12])
    else:
        frames = [Image.fromarray(frame) for frame in random_frames()]
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], duration=[100] * 6 + [300, 100])
    with pytest.warns(UserWarning, match=f"{name}: its frames last differently long, and are taken as evenly spaced"):
        read(tmp_path / name)


def test_frames_of_a_turned_camera_are_upright(tmp_path):
    """A telephone held upright stores frames that lie on their side, and a matrix that turns them clockwise."""
    values = wave()
    values[:, :12, :16] = 1.0  # the upper left quarter, which comes to the upper right
    write_video(tmp_path / "a.mp4", values, 10.0)
    content = bytearray((tmp_path / "a.mp4").read_bytes())
    matrix = content.find(b"tkhd") + 44  # in the track header of ISO 14496-12, version 0
    assert struct.unpack_from(">9i", content, matrix) == (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    struct.pack_into(">9i", content, matrix, 0, 1 << 16, 0, -1 << 16, 0, 0, 24 << 16, 0, 1 << 30)
    (tmp_path / "turned.mp4").write_bytes(content)
    turned = video(tmp_path / "turned.mp4")
    np.testing.assert_array_equal(turned.values, np.rot90(video(tmp_path / "a.mp4").values, -1, axes=(1, 2)))
    assert turned.values[:, :16, 12:].mean() > 0.95


def _one_frame(path):
    mux(path, random_frames(1))


def _truncated(path):
    mux(path, random_frames())
    path.write_bytes(path.read_bytes()[:3000])


def _truncated_with_index(path):
    """The index comes first, so that the file opens and breaks off later."""
    mux(path, random_frames(30), movflags="faststart")
    path.write_bytes(path.read_bytes()[:30000])


def _truncated_gif(path):
    write_clip(path)
    path.write_bytes(path.read_bytes()[:3000])


def _sound(path):
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 6400), np.float32), format="fltp", layout="mono")
        silence.sample_rate = 8000
        container.mux(stream.encode(silence))
        container.mux(stream.encode())


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.mp4", _one_frame, r"cannot be read as a video \(it holds a single frame, which is an image\)"),
        ("a.mp4", _truncated, r"cannot be read as a video \(Invalid data found .*\); get a whole copy"),
        ("a.mp4", _truncated_with_index, r"cannot be read as a video \(it breaks off after [12]\.\d of 3\.0 seconds\)"),
        ("a.mp4", lambda path: path.write_text("not a video" * 99), r"cannot be read as a video \(Invalid data found"),
        ("a.mp4", lambda path: path.touch(), "an empty file, not a video; get a whole copy"),
        ("a.mp4", lambda path: path.mkdir(), "a directory, not a video; pass the path of a file"),
        ("a.mp4", _sound, r"cannot be read as a video \(it holds no video\)"),
        ("a.gif", lambda path: path.write_text("not a GIF"), "cannot be read as a GIF"),
        ("a.gif", _truncated_gif, "cannot be read as a (video|GIF)"),
    ],
)
def test_a_bad_video_is_reported_in_one_line(tmp_path, name, make, message):
    path = tmp_path / name
    make(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, "size is 1; it must be at least 2"),
        (
            {"size": 2, "source": np.zeros((4, 9, 99), np.uint8)},
            r"source: size is 2, which makes its frames 2 × 0; pass",
        ),
        ({"rate": None}, "source: rate is None; pass the frames per second"),
        ({"rate": 0.0}, "source: rate is 0.0; pass the frames per second"),
        ({"source": np.zeros((4, 9, 9))}, r"source: the shape is \(4, 9, 9, 1\) and the dtype is float64, but a video"),
        ({"source": np.zeros((1, 9, 9), np.uint8)}, r"source: the shape is \(1, 9, 9, 1\)"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        video(**({"source": random_frames(), "rate": 10.0} | options))


def test_a_file_has_its_own_rate(tmp_path):
    with pytest.raises(ValueError, match=r"a.mp4: rate is 9, but a file has its own; leave rate out"):
        video(tmp_path / "a.mp4", rate=9.0)


def test_a_video_larger_than_memory_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    write_clip(tmp_path / "a.mp4")
    monkeypatch.setattr(videos, "_memory", lambda: 50_000)
    with pytest.raises(
        ValueError, match=r"a.mp4: 8 frames of 32 × 24 take 0.0 GB, but this machine has .*; pass a sma"
    ):
        video(tmp_path / "a.mp4")
    assert video(tmp_path / "a.mp4", size=16).shape == (8, 12, 16)


@pytest.mark.parametrize(
    ("name", "values", "rate", "message"),
    [
        ("a.mp4", wave()[0], 10.0, r"values has shape \(24, 32, 3\)"),
        ("a.mp4", wave()[..., :2], 10.0, r"values has shape \(8, 24, 32, 2\)"),
        ("a.mp4", wave(), None, "rate is None; pass the frames per second"),
        ("a.gif", wave(), 60.0, "60 frames per second, but a GIF has at most 50; take fewer, or MP4"),
        ("a.gif", np.rint(wave()).astype(np.uint8), 10.0, "values has dtype uint8"),
        ("a.mp4", wave() * np.nan, 10.0, "values has 18432 NaN or infinite entries"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, values, rate, message):
    with pytest.raises(ValueError, match=f"{re.escape(name)}: {message}"):
        write(tmp_path / name, values, rate=rate)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    write_clip(tmp_path / "a.mp4")
    write_clip(tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "av", None)
    message = r'a.mp4: needs the package av; pip install "uniphase\[video\]"$'
    with pytest.raises(ModuleNotFoundError, match=message):
        video(tmp_path / "a.mp4")
    with pytest.raises(ModuleNotFoundError, match=message):
        write_clip(tmp_path / "a.mp4")
    assert video(tmp_path / "a.gif").shape == (8, 24, 32)


@pytest.mark.parametrize(
    "playlist",
    [
        "ffconcat version 1.0\nfile other.mp4\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.mp4\n#EXT-X-ENDLIST\n",
    ],
)
def test_a_file_has_no_other_file_read(tmp_path, playlist):
    """FFmpeg knows a playlist by its content, and follows it."""
    write_clip(tmp_path / "other.mp4")
    (tmp_path / "a.mp4").write_text(playlist)
    with pytest.raises(ValueError, match=r"a\.mp4: cannot be read as a video"):
        video(tmp_path / "a.mp4")
