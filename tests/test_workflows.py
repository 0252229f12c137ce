import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np
import pytest
import soundfile
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file

from uniphase.checkpoints import load_network, save_network
from uniphase.datasets import load
from uniphase.fields import Grid, Points
from uniphase.metrics import evaluate, snr_db
from uniphase.moments import estimate_moments
from uniphase.network_files import Saved
from uniphase.networks import CoordinateMLP
from uniphase.recipes import default_rate, default_recipe, default_size
from uniphase.render import render
from uniphase.schemes import uniform_phase
from uniphase.workflows import Options, _shown, compare, cubic_spline, prepare, render_file, run

TINY = {"size": 16, "width": 16, "depth": 1, "steps": 20}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def write_sound(path: Path, samples: int = 400) -> None:
    soundfile.write(path, np.sin(np.arange(samples) / 5), 8000)


def test_what_is_not_chosen_follows_from_the_signal(here):
    write_sound(here / "a.wav")
    image = prepare("camera", Options(size=128))
    width, depth = default_size(image.subject.field)
    assert (image.blueprint.width, len(image.blueprint.layers)) == (width, depth + 2)
    assert image.recipe == default_recipe(image.subject.field, image.network)
    assert image.subject.field.align == "centers"
    paper = prepare("camera", Options(size=16, recipe="paper"))
    assert (paper.blueprint.width, len(paper.blueprint.layers), paper.subject.field.align) == (256, 13, "corners")
    assert (paper.recipe.optimizer, paper.recipe.learning_rate, paper.recipe.final_fraction) == ("adam", 1e-4, 1.0)
    assert (paper.recipe.steps, paper.recipe.batch) == (3000, 256)
    sound = prepare("a.wav", Options(recipe="paper"))
    assert (len(sound.blueprint.layers), sound.recipe.steps, sound.recipe.learning_rate) == (7, 5000, 5e-5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(optimizer="adam"), ("adam", 1e-3, 0.01)),
        (Options(optimizer="adam", lr=0.5), ("adam", 0.5, 0.01)),
        (Options(optimizer="muon", lr=0.5), ("muon", 0.5, 0.01)),
        (Options(recipe="paper", optimizer="muon"), ("muon", None, 1.0)),
        (Options(recipe="paper", lr=0.5), ("adam", 0.5, 1.0)),
    ],
)
def test_a_choice_replaces_one_entry_of_the_recipe(options, expected):
    job = prepare("camera", replace(options, size=8, width=8))
    optimizer, rate, final_fraction = expected
    rate = default_rate(job.network) if rate is None else rate
    recipe = job.recipe
    assert (recipe.optimizer, recipe.learning_rate, recipe.final_fraction) == (optimizer, rate, final_fraction)


def test_a_signal_made_smaller_is_tested_as_stored(monkeypatch):
    assert prepare("camera", Options(size=16)).subject.test.shape == (512, 512)
    assert prepare("camera", Options(size=16, eval_size=32)).subject.test.shape == (32, 32)
    assert prepare("camera", Options(size=512, width=8)).subject.test is None
    monkeypatch.setattr("uniphase.workflows._MANY_SAMPLES", 512 * 512 - 1)
    with pytest.warns(UserWarning, match="camera: not tested on all of its 262,144 samples; see --eval-size"):
        assert prepare("camera", Options(size=16)).subject.test is None


def test_a_fit_leaves_all_that_is_known_of_it(here):
    job = prepare("camera", Options(**TINY, eval_size=24), seed=3)
    result = run(job)
    assert names(here) == ["camera.fit.png", "camera.uniphase"]
    saved = load_network("camera.uniphase")
    assert saved.metrics == result.metrics.to_dict()
    assert saved.training == {
        "signal": "camera",
        "scheme": "uniform-phase",
        "recipe": asdict(job.recipe),
        "seed": 3,
        "steps": 20,
        "seconds": result.seconds,
        "stop": "steps",
        "test_metrics": result.test_metrics.to_dict(),
    }
    for a, b in zip(jax.tree.leaves(saved.network), jax.tree.leaves(result.network), strict=True):
        np.testing.assert_array_equal(a, b)


KILLED = """
import sys
from uniphase.workflows import Options, prepare, run
options = Options(size=8, eval_size=8, width=8, depth=1, steps=int(sys.argv[1]))
run(prepare("camera", options, output="killed.uniphase", resume=True), checkpoint_seconds=0.0)
"""


def steps_done(state: Path) -> int:
    if not state.exists():
        return 0
    return json.loads(safe_open(state, "numpy").metadata()["uniphase-state"])["header"]["numbers"]["step"]


def test_a_fit_killed_again_and_again_ends_with_the_same_bits(here):
    steps, done, state = 2000, 0, here / "killed.uniphase.part"
    command = [sys.executable, "-c", KILLED, str(steps)]
    cache = {"JAX_COMPILATION_CACHE_DIR": str(here / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    environment = os.environ | cache  # to start sooner
    for kill in range(3):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while steps_done(state) < done + 100 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(0.003 * kill)  # in the middle of a step, or of writing the state
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        assert done < steps_done(state) < steps
        assert not (here / "killed.uniphase").exists()
        done = steps_done(state)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    whole = Options(size=8, eval_size=8, width=8, depth=1, steps=steps)
    run(prepare("camera", whole, output="whole.uniphase"))
    assert not state.exists()
    killed, whole = load_file("killed.uniphase"), load_file("whole.uniphase")
    assert killed.keys() == whole.keys()
    for name in whole:
        assert killed[name].tobytes() == whole[name].tobytes()


def test_a_state_is_neither_lost_nor_used_for_another_fit(here):
    job = prepare("camera", Options(**TINY))

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(job, callback=interrupt)
    assert names(here) == ["camera.uniphase.part"]
    with pytest.raises(FileExistsError, match="left by an interrupted fit; pass --resume to go on, --force to drop it"):
        prepare("camera", Options(**TINY))
    other = prepare("camera", Options(**TINY | {"lr": 0.01}), resume=True)
    with pytest.raises(ValueError, match="a checkpoint of another fit"):
        run(other)
    assert names(here) == ["camera.uniphase.part"]
    assert run(prepare("camera", Options(**TINY), resume=True)).steps == 20
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


def test_a_finished_fit_is_not_replaced_by_resume(here):
    (here / "camera.uniphase").write_text("mine")
    with (
        pytest.warns(UserWarning, match="there is no interrupted fit; starting one"),
        pytest.raises(FileExistsError, match="exists; pass --force"),
    ):
        prepare("camera", Options(**TINY), resume=True)


def test_the_input_is_never_replaced(here):
    Image.fromarray(np.eye(8, dtype=np.uint8)).save("b.fit.png")
    with pytest.raises(FileExistsError, match="would replace what is read; pass another --output"):
        prepare("b.fit.png", Options(), output="b.uniphase", force=True)
    write_sound(here / "a.wav")
    before = (here / "a.wav").read_bytes()
    run(prepare("a.wav", Options(**TINY | {"size": None})))
    assert (here / "a.wav").read_bytes() == before
    assert names(here) == ["a.fit.png", "a.fit.wav", "a.uniphase", "a.wav", "b.fit.png"]


def test_a_disk_that_is_full_leaves_what_was_there(here, monkeypatch):
    job = prepare("camera", Options(**TINY))
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    message = r"camera.uniphase: cannot be written \(No space left on device\); mend that, and go on with --resume"
    with pytest.raises(OSError, match=message):
        run(job)
    assert names(here) == []
    with pytest.raises(OSError, match=message):
        run(job, checkpoint_seconds=0.0)
    assert names(here) == []


def test_a_sound_that_cannot_be_written(here, monkeypatch):
    write_sound(here / "a.wav")
    job = prepare("a.wav", Options(**TINY))

    def fail(*_, **__):
        raise soundfile.SoundFileRuntimeError("System error.")

    monkeypatch.setattr("soundfile.write", fail)
    with pytest.raises(OSError, match=r"a.uniphase: cannot be written \(System error\.\)"):
        run(job)


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_fit_that_diverges_leaves_nothing(here):
    job = prepare("camera", Options(**TINY | {"lr": 1e9}))
    with pytest.raises(ValueError, match=r"camera: the loss exploded .* lower it with --lr"):
        run(job, checkpoint_seconds=0.0)
    assert names(here) == []


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
    save_network("a.uniphase", Saved.of(network, blueprint, points, moments=moments))
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
        ({"output": "a.wav"}, "a.wav: the field is no sound; write .npy"),
        ({"output": "no/a.png"}, "no/a.png: there is no directory no; make it first"),
        ({"output": "b.npy"}, "b.npy: a directory; pass the path of a file"),
    ],
)
def test_what_cannot_be_rendered(options, message, here):
    field = Grid(np.zeros((4, 4, 1)))
    blueprint = uniform_phase(estimate_moments(load("camera", size=4)), width=4, depth=0)
    save_network("a.uniphase", Saved.of(CoordinateMLP(blueprint, key=jax.random.key(0)), blueprint, field))
    (here / "b.npy").mkdir()
    with pytest.raises((ValueError, OSError)) as error:
        render_file("a.uniphase", **options)
    assert str(error.value).startswith(message)
    assert names(here) == ["a.uniphase", "b.npy"]


def test_a_comparison_has_a_row_for_each_scheme_and_for_the_spline(here):
    told = []
    options = Options(**TINY, eval_size=32)
    result = compare("camera", ["uniform-phase", "relu"], options, seeds=2, callback=lambda name, _: told.append(name))
    assert [row.scheme for row in result.rows] == ["uniform-phase", "relu", "bicubic"]
    assert [(len(row.train), len(row.test)) for row in result.rows] == [(2, 2), (2, 2), (0, 1)]
    assert result.rows[0].train[0] != result.rows[0].train[1]
    assert set(told) == {f"{name}, seed {seed}" for name in ("uniform-phase", "relu") for seed in (0, 1)}
    assert result.rows[-1].test[0].snr_db > 8  # measured: 9.4
    assert names(here) == ["camera.compare.curves.png", "camera.compare.png"]
    with pytest.raises(FileExistsError, match="exists; pass --force"):
        compare("camera", ["relu"], options)


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_comparison_leaves_out_what_diverges(here):
    options = Options(**TINY | {"lr": 1e9})
    with (
        pytest.warns(UserWarning, match="uniform-phase: left out, as the loss exploded"),
        pytest.raises(ValueError, match=r"camera: every run diverged; pass a smaller --lr than 1e\+09"),
    ):
        compare("camera", ["uniform-phase"], options)
    assert names(here) == []


def test_a_comparison_of_sounds_goes_where_it_is_told(here):
    write_sound(here / "a.wav")
    (here / "out").mkdir()
    options = Options(**TINY | {"size": None})
    assert compare("a.wav", ["sm20"], options, output="out").rows[-1].test == ()
    compare("a.wav", ["sm20"], options, output="b.png")
    assert names(here) == ["a.wav", "b.curves.png", "b.png", "out"]
    assert names(here / "out") == ["a.compare.curves.png", "a.compare.png"]
    for output, message in (("b.jpg", "the suffix is '.jpg'"), ("none/b.png", "there is no directory none")):
        with pytest.raises((ValueError, OSError), match=message):
            compare("a.wav", ["sm20"], options, output=output)


@pytest.mark.parametrize("align", ["centers", "corners"])
def test_the_spline_is_registered(align):
    """It meets its own samples and a smooth function between them; a shift by half a sample would be off by 0.05."""

    def wave(n: int) -> Grid:
        grid = Grid(np.zeros((n, n + 1, 1)), align=align)
        return Grid(np.sin(grid.coordinates().sum(axis=1)).reshape(n, n + 1, 1), align=align)

    np.testing.assert_allclose(cubic_spline(wave(20), wave(20)), wave(20).values, atol=1e-12)  # rounding
    inside = slice(2, -2) if align == "centers" else slice(None)  # beyond the outermost samples it is constant
    error = (cubic_spline(wave(20), wave(40)) - wave(40).values)[inside, inside]
    assert np.abs(error).max() < 1e-5  # fourth order: (1/10)⁴/384 along each axis, and more at the ends


def test_a_spline_through_few_samples():
    for n in (2, 3):
        line = Grid(np.linspace(0.0, 1.0, n)[:, None], align="corners")
        fine = Grid(np.zeros((9, 1)), align="corners")
        np.testing.assert_allclose(cubic_spline(line, fine)[:, 0], np.linspace(0, 1, 9), atol=1e-12)  # rounding


def test_a_large_field_is_drawn_from_samples_where_they_are(monkeypatch):
    field = Grid(np.arange(101 * 53 * 2.0).reshape(101, 53, 2, 1), extents=((0.0, 1.0), (0.0, 1.0), (0.0, 9.0)))
    assert _shown(field) is field
    monkeypatch.setattr("uniphase.workflows._MANY_SAMPLES", 1000)
    shown = _shown(field)
    assert shown.samples <= 2 * 1000
    rows = {tuple(x): v for x, v in zip(field.coordinates().round(9), field.flat_values()[:, 0], strict=True)}
    kept = zip(shown.coordinates().round(9), shown.flat_values()[:, 0], strict=True)
    assert all(rows[tuple(x)] == v for x, v in kept)


def test_seeds_that_numbers_of_32_bits_cannot_hold():
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match=f"seed is {seed}; it must lie between"):
            prepare("camera", Options(), seed=seed)
