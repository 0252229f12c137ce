import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import pytest
import soundfile
import tifffile
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file

from helpers.small import TINY, TINY_ARGUMENTS, TINY_SOUND, names, write_sound
from uniphase.cli.display import Watcher
from uniphase.cli.fit import prepare, run as run_job
from uniphase.cli.options import Options
from uniphase.jax.files import load_network


def test_fit_in_words(camera_fit):
    code, out, err, directory = camera_fit
    assert code == 0
    lines = out.splitlines()
    assert lines[:3] == [
        "signal   camera: 16 × 16 pixels (width × height), 1 channel",
        "network  uniform-phase, width 16, depth 1, 337 parameters",
        "fit      20 steps of 256 samples, as averages",
    ]
    assert re.fullmatch(r"memory   about 1\d\d MB of .* that are free", lines[3])
    assert [line.split()[0] for line in lines[-5:-3]] == ["train", "test"]
    assert lines[-2].startswith("337 parameters, samples as averages, 20 steps in ")
    size = (directory / "camera.uniphase").stat().st_size
    assert lines[-1] == f"wrote camera.uniphase ({size:,} bytes), camera.fit.png"
    assert names(directory) == ["camera.fit.png", "camera.uniphase"]
    with Image.open(directory / "camera.fit.png") as picture:
        picture.load()
        assert picture.width > 300
    told = err.splitlines()
    assert told[0] == "compiling …"
    assert re.fullmatch(r"time     about .* \(.* ms a step, .* s for measuring and drawing\)", told[1])
    assert all(len(line) < 80 for line in (*lines[:4], told[1]))
    stages = [name for name, _ in itertools.groupby(line.split()[0] for line in told)]  # a slow machine repeats some
    assert stages[-7:] == ["step", "measuring:", "comparing", "measuring:", "comparing", "writing", "drawing"]


def test_fit_in_json(run, here):
    code, out, err = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS, "--seed", "1", "-o", "a.uniphase", "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    report = json.loads(out)
    assert list(report) == ["train", "test", "steps", "seconds", "parameters", "stop", "output"]
    assert list(report["train"]) == list(report["test"]) == ["mse", "snr_db", "psnr_db", "ssim"]
    assert (report["steps"], report["parameters"], report["stop"], report["output"]) == (20, 337, "steps", "a.uniphase")
    saved = load_network("a.uniphase")
    assert saved.metrics == report["train"]
    assert saved.training["test_metrics"] == report["test"]
    assert saved.training["seed"] == 1
    assert names(here) == ["a.fit.png", "a.uniphase"]


def test_fit_in_json_says_nothing_of_what_it_drops(run):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 2), dtype=np.uint8), "LA").save("a.png")
    code, out, err = run("fit", "a.png", *TINY_ARGUMENTS, "--resume", "--json")
    assert (code, err) == (0, "")
    assert "test" not in json.loads(out)
    assert list(json.loads(out)["train"]) == ["mse", "snr_db", "psnr_db", "ssim"]


def test_fit_on_a_terminal_refreshes_a_table(run, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    code, _, err = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS)
    assert code == 0
    for heading in ("step", "loss", "SNR", "PSNR", "steps/s", "left", "20/20"):
        assert heading in err


def test_fit_of_every_medium(run):
    rng = np.random.default_rng(0)
    write_sound(Path("sound.wav"), 300)
    np.save("four.npy", rng.integers(0, 99, (4, 4, 4, 5, 3), dtype=np.uint8))
    Image.fromarray(rng.integers(0, 255, (9, 12, 3), dtype=np.uint8)).save("photo.png")
    adam = ["--optimizer", "adam"]  # compiled in half the time
    for name, options in (
        ("sound.wav", adam),
        ("four.npy", adam),
        ("photo.png", ["--space", "lab", *adam]),
    ):
        code, out, err = run("fit", name, *TINY_ARGUMENTS, *options, "--json")
        assert (code, err) == (0, "")
        stem = name.partition(".")[0]
        assert json.loads(out)["output"] == f"{stem}.uniphase"
        Image.open(f"{stem}.fit.png").verify()
    assert soundfile.info("sound.fit.wav").frames == 300


def test_fit_of_volumes_in_files_of_every_kind(run, here):
    """Named after the file, without its suffix."""
    nibabel = pytest.importorskip("nibabel", reason="the extra scans is not installed")
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    values = np.random.default_rng(0).normal(size=(5, 6, 7)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 3.0, 1.0])), "scan.nii.gz")
    np.savez("two.npz", density=values, other=values[0])
    zarr.create_array("store.zarr", shape=values.shape, dtype=values.dtype)[...] = values
    found = []
    for name, *options in (("scan.nii.gz",), ("two.npz", "--array", "density"), ("store.zarr",)):
        code, out, err = run("fit", name, *TINY_ARGUMENTS, "--optimizer", "adam", *options, "--json")
        assert (code, err) == (0, "")
        found.append(json.loads(out)["output"])
    assert found == ["scan.uniphase", "two.uniphase", "store.uniphase"]
    assert load_network("scan.uniphase").domain.extents == ((-2.5, 2.5), (-6.0, 6.0), (-10.5, 10.5))
    code, _, err = run("fit", "two.npz")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(
        "uniphase: two.npz: it holds several arrays; choose one of density, other as array, e.g. --arr"
    )


def test_fit_stops_as_told(run):
    for options, stop in ((["--target-db", "1"], "target"), (["--seconds", "0.001"], "seconds")):
        code, out, _ = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS, *options, "--json", "--force")
        assert (code, json.loads(out)["stop"]) == (0, stop)


def test_a_target_decides_the_size():
    widths = [prepare("camera", Options(size=64), target_db=target).blueprint.width for target in (15.0, 40.0)]
    assert widths[0] < widths[1]
    assert prepare("camera", Options(size=64, width=16), target_db=40.0).blueprint.width == 16


def test_a_network_that_cannot_hold_a_signal_says_what_would(run):
    """16 × 16 pixels in 37 parameters; --width is what the sentence recommends."""
    code, out, _ = run("fit", "camera", "--size", "16", "--width", "4", "--depth", "1", "--steps", "20")
    (advice,) = [line for line in out.splitlines() if line.startswith("the network is too small for this signal")]
    assert code == 0
    found = re.fullmatch(r".*: 37 parameters for 256 values; --width (\d+) should reach about 30 dB SNR, in .*", advice)
    assert found, advice
    code, out, _ = run("fit", "camera", "--size", "16", "--width", found[1], "--steps", "20", "--force")
    assert code == 0
    assert "too small" not in out


def test_the_paper_in_one_option(run):
    code, out, _ = run("fit", "camera", "--size", "16", "--recipe", "paper", *TINY_ARGUMENTS, "--json")
    saved = load_network(json.loads(out)["output"])
    recipe = {"optimizer": "adam", "learning_rate": 1e-4, "final_fraction": 1.0, "steps": 20, "batch": 256}
    assert (code, saved.domain.align, saved.training["recipe"]) == (0, "corners", recipe)


def test_a_fit_leaves_all_that_is_known_of_it(here):
    job = prepare("camera", Options(**TINY, eval_size=24), seed=3)
    result = run_job(job)
    assert names(here) == ["camera.fit.png", "camera.uniphase"]
    saved = load_network("camera.uniphase")
    assert saved.metrics == result.metrics.to_dict()
    assert saved.training == {
        "signal": "camera",
        "scheme": "uniform-phase",
        "options": {"recipe": "default", "eval_size": 24, **TINY},
        "recipe": asdict(job.recipe),
        "seed": 3,
        "steps": 20,
        "seconds": result.seconds,
        "stop": "steps",
        "test_metrics": result.test_metrics.to_dict(),
    }
    for a, b in zip(jax.tree.leaves(saved.network), jax.tree.leaves(result.network), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_picture_and_the_sound_are_of_what_was_measured(here, monkeypatch):
    """And not evaluated again."""
    from uniphase.cli import measuring as module

    measured, drawn, measure = [], [], module.measure
    monkeypatch.setattr(module, "measure", lambda *args: measured.append(measure(*args)) or measured[-1])
    monkeypatch.setattr("uniphase.plots.preview.write_preview", lambda *args: drawn.append(args[2]))
    write_sound(here / "a.wav")
    result = run_job(prepare("a.wav", Options(**TINY_SOUND)))
    (found,) = measured
    np.testing.assert_array_equal(drawn[0], found.prediction)
    np.testing.assert_array_equal(result.prediction, found.prediction)
    written, _ = soundfile.read("a.fit.wav", always_2d=True)
    np.testing.assert_allclose(written, np.clip(found.prediction, -1, 1), atol=1 / 2**15)  # 16 bits


class Stages(Watcher):
    """Notes what it is told, and is interrupted at a stage."""

    def __init__(self, stop: str = ""):
        self.seen, self.stop = [], stop

    def stage(self, name, done=0, total=0):
        self.seen.append(name)
        if name == self.stop:
            raise KeyboardInterrupt


def test_the_network_is_saved_before_it_is_measured(here):
    """Whoever stops it then has lost no step, and is told where the network is."""
    for stop, metrics in (("measuring", False), ("drawing", True)):
        watcher = Stages(stop)
        with pytest.raises(KeyboardInterrupt, match=r"the network is in camera.uniphase"):
            run_job(prepare("camera", Options(**TINY, eval_size=16), force=True), watcher=watcher)
        saved = load_network("camera.uniphase")
        assert (saved.metrics is not None, saved.training["steps"]) == (metrics, 20)
    assert list(dict.fromkeys(watcher.seen)) == ["compiling", "measuring", "comparing", "writing", "drawing"]


def test_where_time_is_short_some_samples_are_measured(run, here, monkeypatch):
    """As many as there is time for; of a sound, what was not evaluated is not written."""
    monkeypatch.setattr("uniphase.cli.measuring.sample_seconds", lambda *_: 1.0)
    monkeypatch.setattr("uniphase.fitting.budget._LEAST", 60)
    write_sound(here / "a.wav")
    code, out, _ = run("fit", "a.wav", *TINY_ARGUMENTS, "--optimizer", "adam", "--seconds", "0.1")
    assert code == 0
    assert "\nmeasured on 43 of 300 samples, for lack of time, without SSIM\n" in out  # 0.8 · 60, every seventh
    assert "\nno a.fit.wav, for lack of time; uniphase render a.uniphase writes the sound\n" in out
    assert names(here) == ["a.fit.png", "a.uniphase", "a.wav"]
    saved = load_network("a.uniphase")
    assert saved.metrics is not None
    assert (saved.training["measured"], saved.metrics["ssim"]) == (43, None)
    assert saved.metrics["snr_db"] is not None
    assert run("render", "a.uniphase")[0] == 0


def test_what_does_not_fit_into_memory_is_refused_with_what_would(run, here, monkeypatch):
    monkeypatch.setattr("uniphase.training.memory.free_memory", lambda: 10_000_000)
    code, out, err = run("fit", "camera", "--size", "64")
    assert (code, out, err.count("\n"), names(here)) == (1, "", 1, [])
    assert re.fullmatch(
        r"uniphase: camera: the fit would take about \d+ MB of memory, but 10 MB are free; pass a smaller --size\n", err
    )


def test_a_log_is_continued(run, here, monkeypatch):
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    options = ["camera", "--size", "16", "--eval-size", "16", *TINY_ARGUMENTS, "--log", "run.csv"]
    job = prepare("camera", Options(**TINY, eval_size=16))

    class Impatient(Watcher):
        def progress(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, watcher=Impatient(), log="run.csv")
    assert run("fit", *options, "--resume", "--json")[0] == 0
    rows = [line.split(",") for line in Path("run.csv").read_text().splitlines()]
    assert rows[0] == ["step", "seconds", "loss", "snr_db", "rate", "steps_per_second"]
    assert [row[0] for row in rows[1:]] == ["10", "20"]
    assert run("fit", *options, "--force", "--json")[0] == 0
    assert len(Path("run.csv").read_text().splitlines()) == 3


def test_omega_is_that_of_the_scheme(here):
    """For images and for sounds, whose schemes have a default of their own."""
    write_sound(here / "a.wav")
    for name, size in (("camera", 16), ("a.wav", None)):
        layers = prepare(name, Options(**TINY | {"size": size, "omega": 12.5}), scheme="sm20").blueprint.layers
        assert layers[0].omega == 12.5


@pytest.fixture
def bad(here, monkeypatch) -> Path:
    """A directory with one file for each thing that can be wrong with a file."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    photo.save("photo.jpg")
    Path("truncated.jpg").write_bytes(Path("photo.jpg").read_bytes()[:1000])
    Path("text.png").write_text("not an image")
    Path("empty.png").touch()
    for name in ("folder.png", "folder", "empty"):
        Path(name).mkdir()
    photo.save("folder/a.jpg")
    tifffile.imwrite("nan.tif", np.full((4, 4), np.nan, np.float32))
    soundfile.write("silent.wav", np.zeros(0), 8000)
    np.save("nan.npy", np.full((4, 4), np.nan))
    np.save("object.npy", np.array([1, None], object), allow_pickle=True)
    Image.new("1", (200, 200)).save("bomb.png")
    Path("there.uniphase").write_text("mine")
    return here


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing.png"], 1, "nothing.png: no such file, nor one of the signals camera"),
        (["folder.png"], 1, "folder.png: a directory, not an image; pass the path of a file"),
        (["folder"], 1, "folder: a directory; pass its files, e.g. folder/*.jpg"),
        (["empty"], 1, "empty: a directory; pass the path of a file"),
        (["empty.png"], 1, "empty.png: an empty file, not an image"),
        (["text.png"], 1, "text.png: cannot be read as an image"),
        (["truncated.jpg"], 1, "truncated.jpg: cannot be read as an image"),
        (["bomb.png"], 1, "bomb.png: Image size (40000 pixels) exceeds limit"),
        (["silent.wav"], 1, "silent.wav: cannot be read as a sound (it holds 0 samples of 0)"),
        (
            ["nan.npy"],
            1,
            "nan.npy: values has shape (4, 4), and every sample is missing (NaN); pass some that are known",
        ),
        (["nan.tif"], 1, "nan.tif: values has shape (4, 4, 1), and every sample is missing (NaN)"),
        (["object.npy"], 1, "object.npy: cannot be read as an NPY array"),
        (["photo.jpg", "--width", "0"], 1, "width is 0; a layer needs at least 1 neuron"),
        (["photo.jpg", "--depth", "-1"], 1, "depth is -1; pass the number of hidden layers, 0 or more"),
        (["photo.jpg", "--steps", "-5"], 1, "steps is -5; it must be positive"),
        (["photo.jpg", "--batch", "0"], 1, "batch is 0; it must be positive"),
        (["photo.jpg", "--lr", "nan"], 1, "learning_rate is nan; it must be positive"),
        (["photo.jpg", "--seconds", "-5"], 1, "seconds is -5; it must be positive: pass how long to fit, e.g. 60"),
        (["photo.jpg", "--log", "text.png"], 1, "text.png: exists; pass --force to replace it"),
        (["photo.jpg", "--log", "none/a.csv"], 1, "none/a.csv: there is no directory none; make it first"),
        (["photo.jpg", "there.uniphase", "--log", "a.csv"], 1, "log is a.csv, but there are 2 signals; leave it out"),
        (["photo.jpg", "--target-db", "nan", "--width", "8"], 1, "target_db is nan; it must be finite"),
        (["photo.jpg", "--seed", "-1"], 1, "seed is -1; it must lie between 0 and"),
        (["photo.jpg", "--size", "1"], 1, "size is 1; it must be at least 2"),
        (["photo.jpg", "--size", "8", "--eval-size", "-4"], 1, "size is -4; it must be at least 2"),
        (["photo.jpg", "--axes", "2"], 1, "photo.jpg: axes is 2, but only arrays"),
        (["photo.jpg", "--scheme", "wavelet"], 1, "there is no scheme 'wavelet'; the known ones are uniform-phase"),
        (["photo.jpg", "--omega", "30"], 1, "omega is 30, but uniform-phase has none; leave it out, or choose from"),
        (["photo.jpg", "--scheme", "sm20", "--omega", "-3"], 1, "omega is -3.0; it must be positive and finite"),
        (["photo.jpg", "--scheme", "sm20", "--omega", "inf"], 1, "omega is inf; it must be positive and finite"),
        (["photo.jpg", "-o", "there.uniphase"], 1, "there.uniphase: exists; pass --force to replace it"),
        (["photo.jpg", "-o", "none/a.uniphase"], 1, "none/a.uniphase: there is no directory none; make it first"),
        (["photo.jpg", "-o", "text.png"], 1, "text.png: the suffix is '.png'; use .uniphase"),
        (["photo.jpg", "-o", "photo.jpg", "--force"], 1, "photo.jpg: the suffix is '.jpg'; use .uniphase"),
        (["photo.jpg", "--width", "many"], 2, 'unable to convert "many" into int'),
        (["photo.jpg", "--optimizer", "sgd"], 2, 'Choose from: "muon", "adam"'),
        (["photo.jpg", "--speed", "9"], 2, "Unknown option: --speed"),
        ([], 2, "requires an argument"),
    ],
)
def test_a_fit_that_cannot_be_is_refused_in_one_line(run, bad, arguments, code, message):
    before = names(bad)
    found, out, err = run("fit", *arguments, "--json")
    assert (found, out) == (code, "")
    if code == 1:
        assert err.count("\n") == 1
        assert err.startswith(f"uniphase: {message}")
    assert message in err
    assert names(bad) == before
    assert Path("there.uniphase").read_text() == "mine"


def test_the_error_for_omega_names_the_schemes_that_have_one(run):
    _, _, err = run("fit", "camera", "--omega", "30", "--json")
    assert "sm20, cvp26-0, cvp26-1" in err
    assert "tanh-pe" not in err


def test_divergence_is_one_line_and_no_file(run, here):
    code, out, err = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS, "--lr", "1e9", "--json")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("uniphase: camera: the fit diverged 6 times")
    assert names(here) == []


KILLED = """
import sys
from uniphase.cli.display import Watcher
from uniphase.cli.fit import prepare, run
from uniphase.cli.options import Options
options = Options(size=16, eval_size=16, width=16, depth=1, steps=int(sys.argv[1]))
run(prepare("camera", options, output="killed.uniphase", resume=True), checkpoint_seconds=0.0)
"""


def steps_done(state: Path) -> int:
    if not state.exists():
        return 0
    header = json.loads(safe_open(state, "numpy").metadata()["uniphase-state"])["header"]
    return header["numbers"]["step"]


def assert_same_bits(found: str, expected: str) -> None:
    tensors, others = load_file(found), load_file(expected)
    assert tensors.keys() == others.keys()
    for name in others:
        assert tensors[name].tobytes() == others[name].tobytes()


def test_a_fit_killed_again_and_again_ends_with_the_same_bits(here):
    """Whatever it was doing: the state that each kill leaves is resumed to the end."""
    steps, done, state = 600, 0, here / "killed.uniphase.part"
    options = Options(**TINY | {"eval_size": 16, "steps": steps})
    run_job(prepare("camera", options, output="whole.uniphase"))
    cache = {"JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir)}
    environment = os.environ | cache | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}  # to start sooner
    for kill in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(steps)], env=environment, stderr=subprocess.PIPE, text=True
        )
        while steps_done(state) < done + 100:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        time.sleep(0.003 * kill)  # in the middle of a step, or of writing the state
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        assert done < steps_done(state) < steps
        assert not (here / "killed.uniphase").exists()
        done = steps_done(state)
        shutil.copy(state, "copy.uniphase.part")
        run_job(prepare("camera", options, output="copy.uniphase", resume=True, force=True))
        assert not Path("copy.uniphase.part").exists()
        assert_same_bits("copy.uniphase", "whole.uniphase")


def test_an_interrupt_saves_and_says_how_to_continue(run, here, monkeypatch):
    """A real signal, in the middle of a fit."""
    options = ["camera", "--size", "16", *TINY_ARGUMENTS[:-1], "1000000"]
    with monkeypatch.context() as patch:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored
        patch.setattr("uniphase.cli.terminal.progress_cells", lambda *_: signal.raise_signal(signal.SIGINT) or {})
        code, _, err = run("fit", *options)
        signal.signal(signal.SIGINT, before)
    assert code == 130
    assert err.splitlines()[-1] == "uniphase: interrupted; the same command with --resume continues the fit"
    assert "Traceback" not in err
    assert names(here) == ["camera.uniphase.part"]
    code, _, err = run("fit", *options)
    assert (code, "camera.uniphase.part: left by an interrupted fit; pass --resume" in err) == (1, True)
    code, out, _ = run("fit", *options, "--resume", "--seconds", "0.1", "--json")
    assert (code, json.loads(out)["stop"]) == (0, "seconds")
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


def test_a_state_is_neither_lost_nor_used_for_another_fit(here):
    job = prepare("camera", Options(**TINY))

    class Impatient(Watcher):
        def progress(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, watcher=Impatient())
    assert names(here) == ["camera.uniphase.part"]
    message = "left by an interrupted fit; pass --resume to continue it, --force to discard it"
    with pytest.raises(FileExistsError, match=message):
        prepare("camera", Options(**TINY))
    other = prepare("camera", Options(**TINY | {"lr": 0.01}), resume=True)
    with pytest.raises(ValueError, match="a checkpoint of another run"):
        run_job(other)
    assert names(here) == ["camera.uniphase.part"]
    assert run_job(prepare("camera", Options(**TINY), resume=True)).steps == 20
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


def test_a_finished_fit_is_not_replaced_by_resume(here):
    (here / "camera.uniphase").write_text("mine")
    with (
        pytest.warns(UserWarning, match="there is no interrupted fit; starting one"),
        pytest.raises(FileExistsError, match="exists; pass --force"),
    ):
        prepare("camera", Options(**TINY), resume=True)


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_fit_that_diverges_leaves_nothing(here):
    job = prepare("camera", Options(**TINY | {"lr": 1e9}))
    with pytest.raises(ValueError, match=r"camera: the fit diverged .* start with a lower one, with --lr"):
        run_job(job, checkpoint_seconds=0.0)
    assert names(here) == []


def test_seeds_that_numbers_of_32_bits_cannot_hold():
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match=f"seed is {seed}; it must lie between"):
            prepare("camera", Options(), seed=seed)


def test_masked_and_noisy_signals(run, here):
    """Samples that are missing are not counted, and a fit ends at its noise."""
    rng = np.random.default_rng(0)
    pixels = np.linspace(0, 255, 144).reshape(12, 12).astype(np.uint8)
    noisy = np.clip(pixels + rng.normal(0, 40, pixels.shape), 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save("a.png")
    Image.fromarray(noisy).save("noisy.png")
    Image.fromarray(np.dstack([pixels] * 3 + [np.where(pixels > 60, 255, 0).astype(np.uint8)])).save("alpha.png")
    Image.fromarray(np.where(rng.random((12, 12)) < 0.3, 255, 0).astype(np.uint8)).save("mask.png")
    Image.fromarray(np.full((12, 12), 255, np.uint8)).save("white.png")
    Image.fromarray(np.zeros((8, 12), np.uint8)).save("small.png")
    for arguments, stop in (
        (["a.png", "--mask", "mask.png"], "steps"),
        (["alpha.png", "--alpha", "mask"], "steps"),
        (["noisy.png", "--noise", "0.5"], "noise"),
        (["noisy.png", "--denoise", "--force"], None),
    ):
        code, out, _ = run("fit", *arguments, *TINY_ARGUMENTS, "--json")
        found = json.loads(out)
        assert (code, found["train"]["ssim"] is None) == (0, arguments[0] != "noisy.png")
        assert stop in (None, found["stop"])
    before = names(here)
    for arguments, message in (
        (["a.png", "--mask", "small.png"], "a.png: the mask has the shape (8, 12), but the signal has (12, 12)"),
        (["a.png", "--mask", "white.png"], "a.png: every sample is masked"),
        (["a.png", "--mask", "none.png"], "none.png: "),
        (["a.png", "--alpha", "mask"], "a.png: alpha is 'mask', but there is no alpha channel"),
        (["a.png", "--noise", "-1"], "noise is -1.0; pass a standard deviation, positive and finite"),
    ):
        code, out, err = run("fit", *arguments, *TINY_ARGUMENTS, "-o", "other.uniphase")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert err.startswith(f"uniphase: {message}")
    assert names(here) == before
