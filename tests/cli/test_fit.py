import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tifffile
from PIL import Image

from helpers.small import TINY, TINY_ARGUMENTS, names, write_sound
from uniphase.cli.fit import prepare
from uniphase.cli.options import Options
from uniphase.jax.files import load_network
from uniphase.recipe import Recipe


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
    small = ["camera", "--size", "16", "--eval-size", "16", "--steps", "20"]
    code, out, _ = run("fit", *small, "--width", "4", "--depth", "1")
    (advice,) = [line for line in out.splitlines() if line.startswith("the network is too small for this signal")]
    assert code == 0
    found = re.fullmatch(r".*: 37 parameters for 256 values; --width (\d+) should reach about 30 dB SNR, in .*", advice)
    assert found, advice
    code, out, _ = run("fit", *small, "--width", found[1], "--force")
    assert code == 0
    assert "too small" not in out


def test_the_paper_in_one_option(run):
    code, out, _ = run("fit", "camera", "--size", "16", "--recipe", "paper", *TINY_ARGUMENTS, "--json")
    saved = load_network(json.loads(out)["output"])
    recipe = Recipe("adam", learning_rate=1e-4, final_fraction=1.0, steps=20, batch=256)
    assert (code, saved.domain.align, Recipe(**saved.training["recipe"])) == (0, "corners", recipe)


def test_what_does_not_fit_into_memory_is_refused_with_what_would(run, here, monkeypatch):
    monkeypatch.setattr("uniphase.training.memory.free_memory", lambda: 10_000_000)
    code, out, err = run("fit", "camera", "--size", "64")
    assert (code, out, err.count("\n"), names(here)) == (1, "", 1, [])
    assert re.fullmatch(
        r"uniphase: camera: the fit would take about \d+ MB of memory, but 10 MB are free; pass a smaller --size\n", err
    )


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


def test_a_finished_fit_is_not_replaced_by_resume(here):
    (here / "camera.uniphase").write_text("mine")
    with (
        pytest.warns(UserWarning, match="there is no interrupted fit; starting one"),
        pytest.raises(FileExistsError, match="exists; pass --force"),
    ):
        prepare("camera", Options(**TINY), resume=True)


def test_a_finished_fit_is_done_already(run, here):
    arguments = ["fit", "camera", "--size", "16", "--eval-size", "16", *TINY_ARGUMENTS]
    _, first, _ = run(*arguments, "--json")
    written = (here / "camera.uniphase").stat().st_mtime_ns
    code, out, err = run(*arguments, "--resume")
    assert (code, err) == (0, "")
    assert out.endswith("camera.uniphase: done already by the same command; without --resume, --force fits it again\n")
    assert f"{json.loads(first)['train']['psnr_db']:.4g}" in out
    code, out, _ = run(*arguments, "--resume", "--json")
    assert (code, out) == (0, first)
    assert (here / "camera.uniphase").stat().st_mtime_ns == written
    code, _, err = run(*arguments, "--resume", "--seed", "1")
    assert (code, "camera.uniphase: exists, but from another seed; pass --force" in err) == (1, True)


@pytest.mark.parametrize("signals", [["camera"], ["camera", "brick"]])
def test_a_fit_killed_before_its_picture_is_not_finished(run, here, monkeypatch, signals):
    """A short one has not written a state. With `--resume`, it begins anew; what is not its own is kept."""
    arguments = ["fit", *signals, "--size", "16", "--eval-size", "16", *TINY_ARGUMENTS]
    with monkeypatch.context() as patch:
        patch.setattr("uniphase.plots.preview.write_preview", interrupt)
        assert run(*arguments)[0] == 130
    assert names(here) == ["camera.uniphase"]
    code, _, err = run(*arguments[:2], *arguments[1 + len(signals) :], "--resume", "--seed", "1")
    assert (code, "camera.uniphase: exists, but from another seed; pass --force" in err) == (1, True)
    assert run(*arguments, "--resume")[0] == 0
    assert names(here) == sorted(f"{name}.{suffix}" for name in signals for suffix in ("fit.png", "uniphase"))
    assert load_network("camera.uniphase").metrics is not None


def interrupt(*_, **__):
    raise KeyboardInterrupt


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
