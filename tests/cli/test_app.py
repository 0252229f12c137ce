import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
import soundfile
from PIL import Image

from uniphase.cli.app import Choices, main
from uniphase.initialization.schemes import SCHEMES
from uniphase.jax.files import NetworkFile, load_network, save_network
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.datasets import load
from uniphase.signals.metrics import evaluate

TINY = ["--width", "16", "--depth", "1", "--steps", "20"]


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: str):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_moments_of_camera_are_the_printed_ones(run):
    code, out, err = run("moments", "camera", "--size", "128", "--align", "corners", "--json")
    assert (code, err) == (0, "")
    moments = json.loads(out)
    assert list(moments) == ["mean", "covariance", "structure_tensor"]
    np.testing.assert_allclose(moments["mean"], [0.506114], rtol=1e-5)
    np.testing.assert_allclose(moments["covariance"], [[0.07927476]], rtol=1e-5)
    np.testing.assert_allclose(moments["structure_tensor"], [[87.02186, 10.91007], [10.91007, 114.8221]], rtol=1e-5)


def test_moments_in_words(run):
    code, out, _ = run("moments", "coffee", "--size", "64", "--space", "lab")
    assert code == 0
    assert out.startswith("coffee: 43 × 64 samples of 3 channel(s) on [-1, 1] × [-1, 1], centers\nmean\n")
    assert "structure tensor" in out


def test_moments_of_files(run, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(8, 8, 8)))
    for axes, channels, in_size in ((3, 1, 3), (2, 8, 2)):
        code, out, _ = run("moments", str(tmp_path / "a.npy"), "--axes", str(axes), "--json")
        moments = json.loads(out)
        assert (code, len(moments["mean"]), len(moments["structure_tensor"])) == (0, channels, in_size)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["moments", "nothing.png"], 1, "uniphase: nothing.png: no such file, nor one of the signals camera"),
        (["moments", "camera", "--size", "1"], 1, "uniphase: size is 1; it must be at least 2"),
        (["moments", "camera", "--axes", "2"], 1, "uniphase: camera: axes is 2, but"),
        (["schemes", "siren"], 1, "uniphase: there is no scheme 'siren'; the known ones are uniform-phase, sm20"),
        (["moments", "camera", "--align", "left"], 2, 'Choose from: "centers", "corners"'),
        (["moments"], 2, "requires an argument"),
        (["paint"], 2, 'Unknown command "paint"'),
    ],
)
def test_bad_input_is_one_message_and_an_exit_code(run, arguments, code, message):
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_an_unreadable_file_is_one_line(run, tmp_path):
    (tmp_path / "a.png").write_text("not an image")
    code, out, err = run("moments", str(tmp_path / "a.png"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {tmp_path / 'a.png'}: cannot be read as an image")


def test_what_is_dropped_is_said(run, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (9, 9, 4), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    code, _, err = run("moments", str(tmp_path / "a.png"))
    assert (code, err) == (0, f"uniphase: note: {tmp_path / 'a.png'}: dropped its alpha channel\n")


def test_schemes_lists_all_and_shows_each(run):
    code, out, _ = run("schemes")
    assert code == 0
    for name in SCHEMES:
        assert name in out
        code, shown, _ = run("schemes", name)
        assert code == 0
        assert "Reference: " in shown
        assert f"{name}: 2 → 1, " in shown


def test_fit_in_words(run, here):
    code, out, err = run("fit", "camera", "--size", "16", *TINY)
    assert code == 0
    assert out.startswith("uniform-phase: 2 → 1, 337 parameters\nlayer")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[-5:-3]] == ["train", "test"]
    assert lines[-2].startswith("337 parameters, 20 steps in ")
    size = (here / "camera.uniphase").stat().st_size
    assert lines[-1] == f"wrote camera.uniphase ({size:,} bytes), camera.fit.png"
    assert names(here) == ["camera.fit.png", "camera.uniphase"]
    assert err.splitlines()[-1].startswith("step 20/20  loss ")
    assert err.splitlines()[-1].endswith("left 0:00:00")


def test_fit_in_json(run, here):
    code, out, err = run("fit", "camera", "--size", "16", *TINY, "--seed", "1", "-o", "a.uniphase", "--json")
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


def test_fit_in_json_says_nothing_of_what_it_drops(run, here):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 2), dtype=np.uint8), "LA").save("a.png")
    code, out, err = run("fit", "a.png", *TINY, "--resume", "--json")
    assert (code, err) == (0, "")
    assert "test" not in json.loads(out)
    assert list(json.loads(out)["train"]) == ["mse", "snr_db", "psnr_db", "ssim"]


def test_fit_on_a_terminal_refreshes_a_table(run, here, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    code, _, err = run("fit", "camera", "--size", "16", *TINY)
    assert code == 0
    for heading in ("step", "loss", "SNR", "PSNR", "steps/s", "left", "20/20"):
        assert heading in err


def test_fit_of_every_medium(run, here):
    rng = np.random.default_rng(0)
    soundfile.write("sound.wav", rng.uniform(-0.5, 0.5, (300, 2)), 8000)
    np.save("four.npy", rng.integers(0, 99, (4, 4, 4, 5, 3), dtype=np.uint8))
    Image.fromarray(rng.integers(0, 255, (9, 12, 3), dtype=np.uint8)).save("photo.png")
    for name, options in (
        ("sound.wav", []),
        ("four.npy", []),
        ("photo.png", ["--space", "lab"]),
    ):
        code, out, err = run("fit", name, *TINY, *options, "--json")
        assert (code, err) == (0, "")
        stem = name.partition(".")[0]
        assert json.loads(out)["output"] == f"{stem}.uniphase"
        Image.open(f"{stem}.fit.png").verify()
    assert soundfile.info("sound.fit.wav").frames == 300


def test_fit_stops_as_told(run, here):
    for options, stop in ((["--target-db", "1"], "target"), (["--seconds", "0.001"], "seconds")):
        code, out, _ = run("fit", "camera", "--size", "16", *TINY, *options, "--json", "--force")
        assert (code, json.loads(out)["stop"]) == (0, stop)


def test_the_paper_in_one_option(run, here):
    code, out, _ = run("fit", "camera", "--size", "16", "--recipe", "paper", *TINY, "--json")
    saved = load_network(json.loads(out)["output"])
    recipe = {"optimizer": "adam", "learning_rate": 1e-4, "final_fraction": 1.0, "steps": 20, "batch": 256}
    assert (code, saved.domain.align, saved.training["recipe"]) == (0, "corners", recipe)


def test_the_options_are_those_of_the_workflows():
    from uniphase.cli.subjects import Options

    assert dataclasses.asdict(Choices()) == dataclasses.asdict(Options())


def test_info(run, here):
    run("fit", "camera", "--size", "16", *TINY)
    code, out, err = run("info", "camera.uniphase")
    assert (code, err) == (0, "")
    for part in (
        "uniform-phase: 2 → 1, 337 parameters",
        "domain: 16 × 16 samples on [-1, 1] × [-1, 1], centers, gray\n",
        "structure tensor\n",
        "\ntest ",
        "signal: camera\n",
        "recipe: optimizer muon, learning_rate ",
        "versions: uniphase ",
    ):
        assert part in out
    code, out, err = run("info", "camera.uniphase", "--json")
    header = json.loads(out)
    assert (code, err, header["parameters"]) == (0, "", 337)
    assert header["bytes"] == (here / "camera.uniphase").stat().st_size
    assert {"format", "blueprint", "domain", "moments", "metrics", "training", "versions"} <= set(header)


def test_render_gives_the_signal_back(run, here):
    run("fit", "camera", "--size", "16", *TINY)
    code, out, err = run("render", "camera.uniphase", "-o", "a.npy")
    assert (code, out, err) == (0, "wrote a.npy, 16 × 16 samples\n", "")
    assert evaluate(np.load("a.npy"), load("camera", size=16)).to_dict() == load_network("camera.uniphase").metrics
    code, out, _ = run("render", "camera.uniphase", "--region", "-1:0,0:1", "--size", "20", "--derivative", "gradient")
    assert (code, out) == (0, "wrote camera-gradient-20x20.png, 20 × 20 samples\n")


def test_compare(run, here):
    options = ["--schemes", "uniform-phase,relu", "--seeds", "2", "--size", "16", "--eval-size", "32", *TINY]
    code, out, err = run("compare", "camera", *options)
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["scheme", "uniform-phase", "relu", "bicubic"]
    assert [line.count("±") for line in lines[:4]] == [0, 4, 4, 0]
    assert lines[3].split()[1:3] == ["exact", "exact"]
    assert lines[-2].startswith("recipe: optimizer muon, learning_rate ")
    assert lines[-1] == "wrote camera.compare.png, camera.compare.curves.png"
    assert "relu, seed 1  step 20/20" in err
    for path in here.iterdir():
        Image.open(path).verify()
    code, out, err = run("compare", "camera", *options, "--json", "-o", "a.png")
    report = json.loads(out)
    assert (code, err, list(report)) == (0, "", ["rows", "recipe", "output"])
    assert [row["scheme"] for row in report["rows"]] == ["uniform-phase", "relu", "bicubic"]
    assert {len(row["test"]["snr_db"]) for row in report["rows"][:2]} == {2}
    assert report["rows"][2]["train"] is None


def test_compare_without_a_test_has_a_row_for_the_spline_all_the_same(run, here):
    soundfile.write("a.wav", np.sin(np.arange(400) / 5), 8000)
    code, out, _ = run("compare", "a.wav", "--schemes", "sm20", *TINY)
    assert code == 0
    assert out.splitlines()[2].split(maxsplit=3) == ["bicubic", "exact", "exact", "not applicable  not applicable"]


@pytest.fixture
def bad(here, monkeypatch) -> Path:
    """A directory with one file for each thing that can be wrong with a file."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    photo.save("photo.jpg")
    Path("truncated.jpg").write_bytes(Path("photo.jpg").read_bytes()[:1000])
    Path("text.png").write_text("not an image")
    Path("empty.png").touch()
    Path("folder.png").mkdir()
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
        (["empty.png"], 1, "empty.png: an empty file, not an image"),
        (["text.png"], 1, "text.png: cannot be read as an image"),
        (["truncated.jpg"], 1, "truncated.jpg: cannot be read as an image"),
        (["bomb.png"], 1, "bomb.png: Image size (40000 pixels) exceeds limit"),
        (["silent.wav"], 1, "silent.wav: cannot be read as a sound (it holds 0 samples of 0)"),
        (["nan.npy"], 1, "values has 16 NaN or infinite entries of 16"),
        (["object.npy"], 1, "object.npy: cannot be read as an NPY array"),
        (["photo.jpg", "--width", "0"], 1, "width is 0; a layer needs at least 1 neuron"),
        (["photo.jpg", "--depth", "-1"], 1, "depth is -1; pass the number of hidden layers, 0 or more"),
        (["photo.jpg", "--steps", "-5"], 1, "steps is -5; it must be positive"),
        (["photo.jpg", "--batch", "0"], 1, "batch is 0; it must be positive"),
        (["photo.jpg", "--lr", "nan"], 1, "learning_rate is nan; it must be positive"),
        (["photo.jpg", "--seconds", "0"], 1, "seconds is 0.0; it must be positive"),
        (["photo.jpg", "--target-db", "nan"], 1, "target_db is nan; it must be finite"),
        (["photo.jpg", "--seed", "-1"], 1, "seed is -1; it must lie between 0 and"),
        (["photo.jpg", "--size", "1"], 1, "size is 1; it must be at least 2"),
        (["photo.jpg", "--axes", "2"], 1, "photo.jpg: axes is 2, but only arrays"),
        (["photo.jpg", "--scheme", "siren"], 1, "there is no scheme 'siren'; the known ones are uniform-phase, sm20"),
        (["photo.jpg", "-o", "there.uniphase"], 1, "there.uniphase: exists; pass --force to replace it"),
        (["photo.jpg", "-o", "none/a.uniphase"], 1, "none/a.uniphase: there is no directory none; make it first"),
        (["photo.jpg", "-o", "folder.png"], 1, "folder.png: the suffix is '.png'; use .uniphase"),
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["render", "photo.jpg"], "photo.jpg: cannot be read as a uniphase network"),
        (["render", "none.uniphase"], "none.uniphase: no such file"),
        (["info", "there.uniphase"], "there.uniphase: cannot be read as a uniphase network"),
        (["info", "folder.png"], "folder.png: a directory, not a uniphase network"),
        (["compare", "photo.jpg", "--schemes", "relu,siren"], "there is no scheme 'siren'; the known ones are"),
        (["compare", "photo.jpg", "--schemes", "relu,relu"], "schemes has 'relu' 2 times; name each once"),
        (["compare", "photo.jpg", "--schemes", "relu", "--seeds", "0"], "seeds is 0; it must be at least 1"),
        (["compare", "none.png", "--schemes", "relu"], "none.png: no such file"),
    ],
)
def test_other_commands_refuse_in_one_line(run, bad, arguments, message):
    before = names(bad)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(bad) == before


def test_a_full_disk_is_one_line(run, here, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    code, _, err = run("fit", "camera", "--size", "16", *TINY, "--json")
    reason = "cannot be written (No space left on device); mend that, and go on with --resume"
    assert (code, err) == (1, f"uniphase: camera.uniphase: {reason}\n")
    assert names(here) == []


def test_a_file_system_that_refuses_is_found_before_training(run, here, monkeypatch):
    refuse = lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))  # noqa: E731
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("uniphase.cli.fit.fit", None)
    code, out, err = run("fit", "camera", "--size", "16", *TINY)
    reason = "cannot be written (Permission denied); make room, or pass another --output"
    assert (code, out, err) == (1, "", f"uniphase: camera.uniphase: {reason}\n")


def test_divergence_is_one_line_and_no_file(run, here):
    code, out, err = run("fit", "camera", "--size", "16", *TINY, "--lr", "1e9", "--json")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("uniphase: camera: the loss exploded")
    assert names(here) == []


def test_no_memory_is_one_line_and_other_errors_are_not_hidden(run, monkeypatch):
    def fail(message, kind=RuntimeError):
        monkeypatch.setattr("uniphase.signals.datasets.load", lambda *_, **__: (_ for _ in ()).throw(kind(message)))

    fail("Unable to allocate 71.1 PiB", MemoryError)
    assert run("moments", "camera") == (1, "", "uniphase: Unable to allocate 71.1 PiB; pass a smaller --size\n")

    fail("RESOURCE_EXHAUSTED: Out of memory allocating 4000000000000 bytes.\nmore")
    assert run("moments", "camera") == (1, "", "uniphase: out of memory; pass a smaller --width, --batch or --size\n")
    fail("", MemoryError)
    assert run("moments", "camera") == (1, "", "uniphase: out of memory; pass a smaller --size\n")
    fail("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["moments", "camera"])


# A shell that runs the tests in the background has interrupts ignored, and children inherit that.
INTERRUPTIBLE = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "


def test_an_interrupt_saves_and_says_how_to_go_on(run, here):
    options = ["camera", "--size", "8", "--width", "8", "--depth", "1", "--steps", "1000000"]
    command = f"{INTERRUPTIBLE}from uniphase.cli import main; main(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "fit", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr.readline().startswith("step ")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "uniphase: interrupted; the same command with --resume goes on"
    assert "Traceback" not in err
    assert names(here) == ["camera.uniphase.part"]
    code, _, err = run("fit", *options)
    assert (code, "camera.uniphase.part: left by an interrupted fit; pass --resume" in err) == (1, True)
    code, out, _ = run("fit", *options, "--resume", "--seconds", "0.1", "--json")
    assert (code, json.loads(out)["stop"]) == (0, "seconds")
    assert names(here) == ["camera.fit.png", "camera.uniphase"]


HELP = "import sys; from uniphase.cli import app; app(['--help'], result_action='return_value')"


def test_help_needs_neither_jax_nor_numpy():
    check = f"{HELP}; print([m for m in ('jax', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    assert "moments" in out
    assert out.endswith("[]\n")


def test_help_answers_in_half_a_second():
    """The fastest of five, since others may be using the machine."""

    def seconds():
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "uniphase.cli", "--help"], check=True, capture_output=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.5


def test_the_installed_command_runs():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="uniphase")
    assert command.value == "uniphase.cli:main"


SMALL = ["--size", "16", "--width", "8", "--depth", "1"]


def test_diagnose_in_words(run, here):
    code, out, err = run("diagnose", "camera", *SMALL, "--scheme", "sm20", "-o", "report.png")
    assert (code, err) == (0, "")
    assert out.startswith("layer ")
    assert "looks like: sm20" in out
    assert out.splitlines()[-1] == "wrote report.png"
    assert names(here) == ["report.png"]


def test_diagnose_a_file_for_programs(run, here):
    field = load("camera", size=16, align="corners")
    blueprint = SCHEMES["sm20"].blueprint((2, 1), width=8, depth=1)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    save_network("camera.uniphase", NetworkFile.of(network, field, blueprint=blueprint))
    code, out, err = run("diagnose", "camera", "--size", "16", "--network", "camera.uniphase", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert [layer["name"] for layer in report["layers"]] == ["input", "hidden 1", "output"]
    assert {finding["severity"] for finding in report["findings"]} <= {"ok", "warn", "bad"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "report.jpg"], "report.jpg: the suffix is '.jpg'; use .png"),
        (["-o", "a.png"], "a.png: exists; pass --force to replace it"),
        (["--scheme", "siren"], "there is no scheme 'siren'"),
        (["--network", "a.png"], "a.png: "),
        (["--network", "none.uniphase"], "none.uniphase: no such file"),
        (["--network", "b.uniphase", "--scheme", "sm20"], "scheme is 'sm20', but the network is that of b.uniphase"),
        (["--network", "b.uniphase", "--width", "7"], "width is 7, but the network is that of b.uniphase; leave out"),
        (["--seed", "-1"], "seed is -1; it must lie between 0 and"),
    ],
)
def test_what_cannot_be_diagnosed(run, here, arguments, message):
    (here / "a.png").write_text("mine")
    code, out, err = run("diagnose", "camera", "--size", "16", *arguments)
    assert (code, out) == (1, "")
    assert f"uniphase: {message}" in err
    assert (here / "a.png").read_text() == "mine"


# The laboratory.


def test_an_experiment_is_reproduced_resumed_and_reported(run, here):
    chosen = ["reproduce", "moments", "--only", "camera/gray", "--store", "lab"]
    code, out, err = run(*chosen, "--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith("to do   camera/gray\n")
    assert "0 of 1 runs are stored; the others take about 0:00:00 here" in out
    code, out, err = run(*chosen)
    assert (code, out) == (0, "moments: 1 runs computed; `uniphase report --store lab` shows them\n")
    assert err == "moments: 1 of 1 runs  camera/gray, step 1/1\n"
    assert run(*chosen)[1].startswith("moments: 0 runs computed")
    assert run(*chosen, "--dry-run")[1].startswith("stored  camera/gray\n")
    code, out, _ = run("report", "--store", "lab", "-o", "out")
    assert code == 0
    assert out == "wrote out/report.md, out/report.html, out/records.csv, out/records.parquet, out/records.jsonl\n"
    assert "| camera/gray | 6 | 6 |" in Path("out/report.md").read_text()


def test_an_interrupted_experiment_says_how_to_go_on(run, here, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("uniphase.lab.engine.reproduce", interrupt)
    code, _, err = run("reproduce", "all")
    assert (code, err) == (130, "uniphase: interrupted; the same command goes on\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "siren"], "there is no experiment 'siren'; the known ones are moments, theory"),
        (["reproduce", "moments", "--seeds", "0"], "seeds is 0; it must be at least 1"),
        (["reproduce", "moments", "--seeds", "0", "--dry-run"], "seeds is 0; it must be at least 1"),
        (["reproduce", "moments", "--only", "camera"], "only is 'camera', but no run has these words; --dry-run"),
        (["reproduce", "moments", "--address", "tcp://x"], "address is 'tcp://x', but the engine is 'serial'"),
        (["reproduce", "moments", "--store", "file"], "store is 'file', but that is a file; pass a directory"),
        (["reproduce", "moments", "--store", ""], "store is ''; pass a directory, '.' for the current one"),
        (["report", "--store", "file"], "store is 'file', but that is a file; pass a directory"),
        (["report", "--store", "none"], "none: no records; run `uniphase reproduce` first, or pass --store"),
    ],
)
def test_errors_of_the_laboratory_are_one_line(run, here, arguments, message):
    Path("file").write_text("mine")
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"uniphase: {message}")
    assert err.count("\n") == 1
