import math

import numpy as np
import pytest
import soundfile
import tifffile
from PIL import Image

from helpers.images import write_png16
from helpers.small import TINY, names, save_drawn, write_sound
from uniphase.cli.fit import prepare, run as run_job
from uniphase.cli.options import Options
from uniphase.cli.render import render_file
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate, snr_db
from uniphase.training.fit import fit


def test_render_gives_the_signal_back(run, camera_fit):
    network = str(camera_fit.directory / "camera.uniphase")
    code, out, err = run("render", network, "-o", "a.npy")
    assert (code, out, err) == (0, "wrote a.npy, 16 × 16 pixels (width × height)\n", "")
    assert evaluate(np.load("a.npy"), load("camera", size=16)).to_dict() == load_network(network).metrics
    code, out, _ = run("render", network, "--region", "-1:0,0:1", "--size", "20", "--derivative", "gradient")
    assert (code, out) == (0, "wrote camera--1to0_0to1-gradient-20x20.png, 20 × 20 pixels (width × height)\n")


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_rendering_at_the_size_of_the_signal_gives_the_signal(align):
    """And half a pixel beside it does not."""
    result = run_job(prepare("camera", Options(**TINY | {"align": align, "steps": 300})))
    render_file("camera.uniphase", output="same.npy")
    field = load("camera", size=16, align=align)
    same = np.load("same.npy")
    assert evaluate(same, field).mse == result.metrics.mse
    half = 1 / 16
    render_file("camera.uniphase", region=f"{half - 1}:{half + 1},-1:1", output="shifted.npy")
    assert snr_db(np.load("shifted.npy"), field.values) < result.metrics.snr_db - 5  # of about 20 dB


def test_rendering_larger_keeps_the_pixel_centers():
    save_drawn("camera.uniphase", load("camera", size=16))
    render_file("camera.uniphase", output="same.npy")
    render_file("camera.uniphase", scale=3.0, output="larger.npy")
    np.testing.assert_allclose(np.load("larger.npy")[1::3, 1::3], np.load("same.npy"), atol=1e-5)  # rounded positions
    render_file("camera.uniphase", region="-1:0,0:1", output="quarter.npy")
    np.testing.assert_allclose(np.load("quarter.npy"), np.load("same.npy")[:8, 8:], atol=1e-5)


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_a_region_in_pixels_is_that_part_of_the_array(align):
    save_drawn("camera.uniphase", load("camera", size=16, align=align))
    render_file("camera.uniphase", output="same.npy")
    render_file("camera.uniphase", region="3:8px,0:16px", output="part.npy")
    np.testing.assert_allclose(np.load("part.npy"), np.load("same.npy")[3:8], atol=1e-5)  # rounded positions


def test_names_and_sizes_of_what_is_rendered():
    save_drawn("coffee.uniphase", load("coffee", size=16))
    left = "-0.666667:0.666667,-1:0"  # of 400 × 600 pixels, which are square
    for options, name, shape in (
        ({}, "coffee-16x11.png", (11, 16)),
        ({"size": 32}, "coffee-32x22.png", (22, 32)),
        ({"scale": 0.25}, "coffee-4x3.png", (3, 4)),
        ({"region": left}, "coffee--0.666667to0.666667_-1to0-8x11.png", (11, 8)),
        ({"region": left, "size": 33}, "coffee--0.666667to0.666667_-1to0-24x33.png", (33, 24)),
        ({"region": "0:11px,2:7px"}, "coffee-0to11px_2to7px-5x11.png", (11, 5)),
        ({"region": "0:11px,-1:0", "scale": 2.0}, "coffee-0to11px_-1to0-16x22.png", (22, 16)),
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


def test_a_picture_is_what_a_camera_would_see():
    """Averages where cells are larger than the fitted ones, points where they are smaller, or what is asked for."""
    field = load("coffee", size=16)
    network = save_drawn("coffee.uniphase", field)
    for options, expected in (
        ({}, {}),
        ({"scale": 2.0}, {}),
        ({"size": 8}, {"average": True, "nodes": 6}),
        ({"samples": "averages"}, {"average": True, "nodes": 4}),
        ({"size": 8, "samples": "points"}, {}),
    ):
        shape = render_file("coffee.uniphase", **options, output="a.npy", force=True).shape
        found = np.load("a.npy")
        np.testing.assert_allclose(found, render(network, shape, extents=field.extents, **expected), atol=1e-5)


@pytest.fixture(scope="module")
def fits():
    """A fit of averages, and one of scattered points."""
    grid, x = load("camera", size=16), np.random.default_rng(0).uniform((0, 0), (1, 2), (60, 2))
    tiny = {"width": 8, "depth": 1, "steps": 1, "progress": False}
    return {"grid": fit(grid, samples="averages", **tiny), "points": fit(Points(x, np.sin(3 * x[:, 0])), **tiny)}


@pytest.mark.parametrize(
    ("kind", "options", "same"),
    [
        ("grid", {}, {}),
        ("grid", {"size": 8}, {}),
        ("grid", {"samples": "averages", "size": 8}, {"average": True}),
        ("grid", {"samples": "points"}, {"average": False}),
        ("grid", {"region": "-1:0,0:1"}, {"region": ((-1.0, 0.0), (0.0, 1.0))}),  # cells of the fitted size
        ("grid", {"region": "-1:0,0:1", "size": 4}, {"region": ((-1.0, 0.0), (0.0, 1.0))}),  # larger
        ("grid", {"region": "-1:0,0:1", "size": 16}, {"region": ((-1.0, 0.0), (0.0, 1.0))}),  # smaller, though as many
        ("points", {"size": 12}, {}),
        ("points", {"size": 12, "samples": "averages"}, {"average": True}),
        ("points", {"size": 12, "region": "0:0.5,0:0.25"}, {"region": ((0.0, 0.5), (0.0, 0.25))}),
    ],
)
def test_a_fit_renders_what_the_command_does(kind, options, same, fits):
    fits[kind].save("a.uniphase")
    shape = render_file("a.uniphase", **options, output="a.npy").shape
    np.testing.assert_array_equal(fits[kind].render(shape, **same), np.load("a.npy"))


def test_derivatives_as_numbers_and_as_pictures():
    field = load("coffee", size=16)
    network = save_drawn("coffee.uniphase", field)
    for derivative, shape in (("gradient", (11, 16, 3, 2)), ("laplacian", (11, 16, 3))):
        render_file("coffee.uniphase", derivative=derivative, output="a.npy", force=True)
        exact = render(network, (11, 16), extents=field.extents, derivative=derivative)
        assert exact.shape == shape
        np.testing.assert_array_equal(np.load("a.npy"), exact)
    render_file("coffee.uniphase", derivative="gradient", output="g.png")
    render_file("coffee.uniphase", derivative="laplacian", output="l.png")
    gray, around = np.asarray(Image.open("g.png")), np.asarray(Image.open("l.png"))
    assert (gray.shape, gray.max()) == ((11, 16), 255)
    assert (around.shape, min(around.min(), 255 - around.max())) == ((11, 16, 3), 0)


def test_a_sound_is_rendered_at_its_own_pitch(here):
    write_sound(here / "a.wav", 400)
    save_drawn("a.uniphase", load("a.wav"))
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


def test_an_array_as_a_picture_spans_its_values():
    np.save("a.npy", 1000 + np.random.default_rng(0).normal(size=(16, 16)))
    run_job(prepare("a.npy", Options(**TINY | {"steps": 300})))
    assert str(render_file("a.uniphase").path) == "a-16x16.npy"
    render_file("a.uniphase", output="a.png")
    pixels = np.asarray(Image.open("a.png"))
    assert pixels.max() - pixels.min() > 200


def test_sixteen_bits_come_out_as_they_went_in(here):
    pixels = np.random.default_rng(0).integers(0, 4096, (12, 16, 1), dtype=np.uint16)
    write_png16(here / "a.png", pixels)
    network = save_drawn("a.uniphase", load("a.png"))
    values = render(network, (12, 16), extents=((-0.75, 0.75), (-1.0, 1.0)))
    expected = np.clip(np.rint(65535 * values.astype(np.float64)), 0, 65535)
    assert str(render_file("a.uniphase").path) == "a-16x12.png"
    render_file("a.uniphase", output="b.tif")
    for path in ("a-16x12.png", "b.tif"):
        field = load(path)
        assert field.stored == "uint16"
        np.testing.assert_array_equal(np.rint(65535 * field.values.astype(np.float64)), expected)


def test_floats_come_out_as_they_went_in(here):
    """Hounsfield units, as a CT scan has."""
    tifffile.imwrite("a.tif", np.random.default_rng(0).uniform(-1000, 3000, (12, 16)).astype(np.float32))
    field = load("a.tif")
    network = save_drawn("a.uniphase", field)
    values = render(network, (12, 16), extents=field.extents)
    assert str(render_file("a.uniphase").path) == "a-16x12.tif"
    stored = tifffile.imread("a-16x12.tif")
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored, values[..., 0])
    render_file("a.uniphase", output="a.png")
    low, high = field.value_range
    scaled = np.clip((values[..., 0].astype(np.float64) - low) / (high - low), 0, 1)
    np.testing.assert_allclose(np.asarray(Image.open("a.png")), 255 * scaled, atol=0.51)  # 8 bits, rounded in float32


def test_a_stack_of_pages_comes_out_as_a_stack():
    pages = np.random.default_rng(0).integers(0, 255, (3, 6, 8), dtype=np.uint8)
    tifffile.imwrite("a.tif", pages, photometric="minisblack")
    save_drawn("a.uniphase", load("a.tif"))
    rendered = render_file("a.uniphase")
    assert (str(rendered.path), rendered.shape) == ("a-3x6x8.tif", (3, 6, 8))
    stored = tifffile.imread("a-3x6x8.tif")
    assert (stored.shape, stored.dtype) == ((3, 6, 8), np.uint8)
    with pytest.raises(ValueError, match=r"b.png: a picture has 2 axes, but the network has 3; write .npy"):
        render_file("a.uniphase", output="b.png")


def test_scattered_points_are_rendered_at_a_size():
    rng = np.random.default_rng(0)
    save_drawn("a.uniphase", Points(rng.uniform((0, 0), (1, 2), (200, 2)), rng.normal(size=200)))
    with pytest.raises(ValueError, match=r"fitted to scattered points, which have no size; pass --size"):
        render_file("a.uniphase", scale=2.0)
    assert render_file("a.uniphase", size=20).shape == (10, 20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0; it must be positive"),
        ({"scale": math.inf}, "scale is inf; it must be positive"),
        ({"scale": math.nan}, "scale is nan; it must be positive"),
        ({"size": 8, "scale": 2.0}, "size is 8 and scale is 2.0; pass one of them"),
        (
            {"region": "0:1"},
            "region is '0:1'; pass low:high for each of 2 axes, low first, e.g. -0.5:0.5",
        ),
        ({"region": "0:1,1:0"}, "region is '0:1,1:0'; pass low:high"),
        ({"region": "0:1,a:b"}, "region is '0:1,a:b'; pass low:high"),
        ({"region": "0:1,0:1:2"}, "region is '0:1,0:1:2'; pass low:high"),
        ({"output": "a.jpg"}, "a.jpg: the suffix is '.jpg'; use .png, .tif, .mp4, .gif, .wav, .npy or .npz"),
        ({"output": "a.wav"}, "a.wav: the field is not a sound; write .png or .npy"),
        ({"output": "a.png"}, "a.png: a picture has 1 or 3 channels, but the network has 2; write .npy"),
        ({"output": "no/a.npy"}, "no/a.npy: there is no directory no; make it first"),
        ({"output": "b.npy"}, "b.npy: a directory; pass the path of a file"),
    ],
)
def test_what_cannot_be_rendered(options, message, here):
    save_drawn("a.uniphase", Grid(np.random.default_rng(0).normal(size=(4, 4, 2))))
    (here / "b.npy").mkdir()
    with pytest.raises((ValueError, OSError)) as error:
        render_file("a.uniphase", **options)
    assert str(error.value).startswith(message)
    assert names(here) == ["a.uniphase", "b.npy"]
