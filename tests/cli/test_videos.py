"""The commands with a video: a fit of one, and frames at any rate and size."""

import json
import sys

import numpy as np
import pytest

from helpers.small import TINY_ARGUMENTS, names, save_drawn
from helpers.videos import wave, write_clip
from uniphase.cli.options import Options
from uniphase.cli.render import render_file
from uniphase.cli.subjects import load_subject
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid
from uniphase.signals.videos import video

av = pytest.importorskip("av", reason="the extra video is not installed")

EXTENTS = ((-1.0, 1.0), (-0.75, 0.75), (-1.0, 1.0))


@pytest.mark.parametrize("name", ["clip.mp4", "clip.gif"])
def test_fit_of_a_video(run, here, name):
    write_clip(here / name)
    code, out, err = run("fit", name, "--size", "8", *TINY_ARGUMENTS, "--optimizer", "adam", "--json")
    assert (code, err) == (0, "")
    assert {"train", "test"} <= set(json.loads(out))
    content = load_network("clip.uniphase")
    assert (content.domain.shape, content.domain.extents, content.rate) == ((8, 6, 8), EXTENTS, pytest.approx(10))
    assert names(here) == sorted([name, "clip.fit.png", "clip.uniphase"])
    _, out, _ = run("info", "clip.uniphase")
    assert (
        "domain: 8 × 6 pixels (width × height), 8 frames at 10 per second on [-1, 1] × [-0.75, 0.75] × [-1, 1] "
        "(time, down, right), centers, points, rgb" in out
    )


def test_a_video_made_smaller_is_tested_as_stored_if_that_is_not_too_much(here, monkeypatch):
    write_clip(here / "clip.mp4")
    assert load_subject("clip.mp4", Options(size=8)).test.shape == (8, 24, 32)
    loaded = []
    monkeypatch.setattr(
        "uniphase.cli.subjects.load", lambda *args, **kw: loaded.append(kw["size"]) or load(*args, **kw)
    )
    monkeypatch.setattr("uniphase.cli.subjects.MANY_SAMPLES", 6000)
    with pytest.warns(UserWarning, match="clip.mp4: not tested on all of its 6,144 samples; pass --eval-size"):
        assert load_subject("clip.mp4", Options(size=8)).test is None
    assert loaded == [8]  # and not as stored
    assert load_subject("clip.mp4", Options(size=8, eval_size=16)).test.shape == (8, 12, 16)


def test_a_missing_package_is_one_line(run, here, monkeypatch):
    write_clip(here / "clip.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    code, out, err = run("fit", "clip.mp4")
    message = 'uniphase: av is not installed, which this command needs; run pip install "uniphase[video]"\n'
    assert (code, out, err) == (1, "", message)
    assert names(here) == ["clip.mp4"]


@pytest.fixture
def network(here):
    """Of a video of 8 frames at 10 a second."""
    write_clip(here / "clip.mp4")
    return save_drawn("clip.uniphase", load("clip.mp4"))


@pytest.mark.parametrize(
    ("options", "name", "shape", "rate"),
    [
        ({}, "clip-32x24x8.mp4", (8, 24, 32), 10),
        ({"fps": 30.0}, "clip-32x24x24.mp4", (24, 24, 32), 30),  # lasts as long
        ({"slow": 3.0}, "clip-32x24x24.mp4", (24, 24, 32), 10),  # lasts three times as long
        ({"slow": 2.0, "fps": 20.0, "scale": 0.5}, "clip-16x12x32.mp4", (32, 12, 16), 20),
        ({"size": 64}, "clip-64x48x8.mp4", (8, 48, 64), 10),
        ({"region": "-1:0,-0.75:0.75,-1:1"}, "clip--1to0_-0.75to0.75_-1to1-32x24x4.mp4", (4, 24, 32), 10),
        ({"output": "a.gif", "fps": 20.0}, "a.gif", (16, 24, 32), 20),
        ({"output": "a.npy", "fps": 20.0}, "a.npy", (16, 24, 32), None),
    ],
)
def test_time_and_space_are_rendered_each_by_its_own_option(network, options, name, shape, rate):
    rendered = render_file("clip.uniphase", **options)
    assert (str(rendered.path), rendered.shape) == (name, shape)
    if rate is None:
        values = render(network, shape, extents=EXTENTS)
        np.testing.assert_array_equal(np.load(name), values)
    else:
        written = video(name)
        assert (written.shape, written.rate) == (shape, pytest.approx(rate))


def test_what_is_rendered_is_the_network(network):
    render_file("clip.uniphase", fps=20.0)
    values = np.clip(render(network, (16, 24, 32), extents=EXTENTS), 0, 1)
    found = video("clip-32x24x16.mp4").values
    gray = [0.299, 0.587, 0.114]  # colours are coarser in the file
    np.testing.assert_allclose(found @ gray, values @ gray, atol=0.05)  # H.264 at crf 16 is off by 0.022
    assert np.abs((found - values[::-1]) @ gray).max() > 0.2  # and not another video


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fps": 0.0}, "fps is 0; it must be positive"),
        ({"slow": -1.0}, "slow is -1; it must be positive"),
        ({"fps": 60.0, "output": "a.gif"}, "a.gif: 60 frames per second, but a GIF has at most 50"),
        ({"derivative": "gradient", "output": "a.mp4"}, "a.mp4: the gradient is not a video; write .npy"),
        ({"output": "a.png"}, "a.png: a picture has 2 axes, but the network has 3; write .npy"),
    ],
)
def test_what_cannot_be_rendered(network, here, options, message):
    before = names(here)
    with pytest.raises(ValueError, match="^" + message.replace(".", r"\.")):
        render_file("clip.uniphase", **options)
    assert names(here) == before


def test_what_is_no_video_has_no_frames(here):
    save_drawn("volume.uniphase", Grid(wave(4, 4, 4)[..., :1]))
    for options, message in (
        ({"fps": 5.0}, "volume.uniphase: fps is 5, but the network is not that of a video; leave fps out"),
        ({"slow": 2.0}, "volume.uniphase: slow is 2, but the network is not that of a video; leave slow out"),
        ({"output": "a.mp4"}, r"a\.mp4: the field is not a video; write \.npy"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            render_file("volume.uniphase", **options)
    assert names(here) == ["volume.uniphase"]


def test_a_bad_video_is_refused_in_one_line(run, here):
    write_clip(here / "whole.mp4")
    (here / "short.mp4").write_bytes((here / "whole.mp4").read_bytes()[:1000])
    write_clip(here / "one.mp4", frames=1)
    before = names(here)
    for name, reason in (("short.mp4", "Invalid data"), ("one.mp4", "it holds a single frame, which is an image")):
        code, out, err = run("fit", name, "--json")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"uniphase: {name}: cannot be read as a video ({reason}")
    assert names(here) == before
