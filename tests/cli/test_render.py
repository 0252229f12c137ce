import math

import jax
import numpy as np
import pytest
import soundfile
from PIL import Image

from helpers.small import TINY, names, write_sound
from uniphase.cli.fit import prepare, run
from uniphase.cli.render import render_file
from uniphase.cli.subjects import Options
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.jax.files import load_network, save_network
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate, snr_db
from uniphase.storage.network_file import NetworkFile


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_rendering_at_the_size_of_the_signal_gives_the_signal(align, here):
    """And half a pixel beside it does not."""
    result = run(prepare("camera", Options(**TINY | {"align": align, "steps": 300})))
    render_file("camera.uniphase", output="same.npy")
    field = load("camera", size=16, align=align)
    same = np.load("same.npy")
    assert evaluate(same, field).mse == result.metrics.mse
    half = 1 / 16
    render_file("camera.uniphase", region=f"{half - 1}:{half + 1},-1:1", output="shifted.npy")
    assert snr_db(np.load("shifted.npy"), field.values) < result.metrics.snr_db - 5  # of about 20 dB


def test_rendering_larger_keeps_the_pixel_centers(here):
    run(prepare("camera", Options(**TINY)))
    render_file("camera.uniphase", output="same.npy")
    render_file("camera.uniphase", scale=3.0, output="larger.npy")
    np.testing.assert_allclose(np.load("larger.npy")[1::3, 1::3], np.load("same.npy"), atol=1e-5)  # rounded positions
    render_file("camera.uniphase", region="-1:0,0:1", output="quarter.npy")
    np.testing.assert_allclose(np.load("quarter.npy"), np.load("same.npy")[:8, 8:], atol=1e-5)


def test_names_and_sizes_of_what_is_rendered(here):
    run(prepare("coffee", Options(**TINY)))
    for options, name, shape in (
        ({}, "coffee-16x11.png", (11, 16)),
        ({"size": 32}, "coffee-32x22.png", (22, 32)),
        ({"scale": 0.25}, "coffee-4x3.png", (3, 4)),
        ({"region": "-1:1,-1:0"}, "coffee-8x11.png", (11, 8)),
        ({"region": "-1:1,-1:0", "size": 33}, "coffee-24x33.png", (33, 24)),
        ({"derivative": "gradient"}, "coffee-gradient-16x11.png", (11, 16)),
        ({"derivative": "laplacian"}, "coffee-laplacian-16x11.png", (11, 16)),
    ):
        rendered = render_file("coffee.uniphase", **options)
        assert (str(rendered.path), rendered.shape) == (name, shape)
        with Image.open(name) as picture:
            assert picture.size == shape[::-1]
        with pytest.raises(FileExistsError, match="exists; pass --force"):
            render_file("coffee.uniphase", **options)
        render_file("coffee.uniphase", **options, force=True)


def test_derivatives_as_numbers_and_as_pictures(here):
    run(prepare("coffee", Options(**TINY)))
    saved = load_network("coffee.uniphase")
    for derivative, shape in (("gradient", (11, 16, 3, 2)), ("laplacian", (11, 16, 3))):
        render_file("coffee.uniphase", derivative=derivative, output="a.npy", force=True)
        exact = render(saved.network, (11, 16), derivative=derivative)
        assert exact.shape == shape
        np.testing.assert_array_equal(np.load("a.npy"), exact)
    render_file("coffee.uniphase", derivative="gradient", output="g.png")
    render_file("coffee.uniphase", derivative="laplacian", output="l.png")
    gray, around = np.asarray(Image.open("g.png")), np.asarray(Image.open("l.png"))
    assert (gray.shape, gray.max()) == ((11, 16), 255)
    assert (around.shape, min(around.min(), 255 - around.max())) == ((11, 16, 3), 0)


def test_a_sound_is_rendered_at_its_own_pitch(here):
    write_sound(here / "a.wav", 400)
    run(prepare("a.wav", Options(**TINY | {"size": None})))
    for options, samples, rate in (
        ({}, 400, 8000),
        ({"scale": 2.0}, 800, 16000),
        ({"region": "-100:0"}, 200, 8000),
        ({"region": "0:100", "size": 400}, 400, 16000),
    ):
        rendered = render_file("a.uniphase", **options, output="out.wav", force=True)
        assert (rendered.shape, soundfile.info("out.wav").samplerate) == ((samples,), rate)
    assert str(render_file("a.uniphase").path) == "a-400.wav"
    assert str(render_file("a.uniphase", derivative="gradient").path) == "a-gradient-400.npy"


def test_an_array_as_a_picture_spans_its_values(here):
    np.save("a.npy", 1000 + np.random.default_rng(0).normal(size=(16, 16)))
    run(prepare("a.npy", Options(**TINY | {"steps": 300})))
    assert str(render_file("a.uniphase").path) == "a-16x16.npy"
    render_file("a.uniphase", output="a.png")
    pixels = np.asarray(Image.open("a.png"))
    assert pixels.max() - pixels.min() > 200


def test_scattered_points_are_rendered_at_a_size(here):
    rng = np.random.default_rng(0)
    points = Points(rng.uniform((0, 0), (1, 2), (200, 2)), rng.normal(size=200))
    moments = estimate_moments(points)
    blueprint = uniform_phase(moments, width=8, depth=1)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    save_network("a.uniphase", NetworkFile.of(network, points, blueprint=blueprint, moments=moments))
    with pytest.raises(ValueError, match=r"fitted to scattered points, which are of no size; pass --size"):
        render_file("a.uniphase", scale=2.0)
    assert render_file("a.uniphase", size=20).shape == (10, 20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0; it must be positive"),
        ({"scale": math.inf}, "scale is inf; it must be positive"),
        ({"size": 8, "scale": 2.0}, "size is 8 and scale is 2.0; pass one of them"),
        ({"region": "0:1"}, "region is '0:1'; pass low:high for each of 2 axes, low first, e.g. -0.5:0.5,-0.5:0.5"),
        ({"region": "0:1,1:0"}, "region is '0:1,1:0'; pass low:high"),
        ({"region": "0:1,a:b"}, "region is '0:1,a:b'; pass low:high"),
        ({"region": "0:1,0:1:2"}, "region is '0:1,0:1:2'; pass low:high"),
        ({"output": "a.jpg"}, "a.jpg: the suffix is '.jpg'; use .png, .wav or .npy"),
        ({"output": "a.wav"}, "a.wav: the field is no sound; write .png or .npy"),
        ({"output": "no/a.png"}, "no/a.png: there is no directory no; make it first"),
        ({"output": "b.npy"}, "b.npy: a directory; pass the path of a file"),
    ],
)
def test_what_cannot_be_rendered(options, message, here):
    field = Grid(np.zeros((4, 4, 1)))
    blueprint = uniform_phase(estimate_moments(load("camera", size=4)), width=4, depth=0)
    save_network(
        "a.uniphase", NetworkFile.of(CoordinateMLP(blueprint, key=jax.random.key(0)), field, blueprint=blueprint)
    )
    (here / "b.npy").mkdir()
    with pytest.raises((ValueError, OSError)) as error:
        render_file("a.uniphase", **options)
    assert str(error.value).startswith(message)
    assert names(here) == ["a.uniphase", "b.npy"]
