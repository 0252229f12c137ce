import json
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from helpers.small import TINY_ARGUMENTS, names, write_sound
from uniphase.cli.fits import Settings, fit_signals
from uniphase.cli.options import Options
from uniphase.jax.files import load_network

HEADER = ["signal", "samples", "parameters", "train SNR dB", "PSNR dB", "SSIM", "seconds", "file"]


@pytest.fixture(autouse=True)
def photos(here) -> list[str]:
    """Three small images, and a file that is none."""
    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png", "c.png"):
        Image.fromarray(rng.integers(0, 255, (16, 16), dtype=np.uint8)).save(name)
    Path("text.png").write_text("not an image")
    return ["a.png", "b.png", "c.png"]


def cells(table: str) -> list[list[str]]:
    """The rows of a table, whose columns start where those of the header do."""
    header, *rows = table.splitlines()
    starts = [header.index(name) for name in HEADER]
    ends = [*starts[1:], None]
    return [[row[start:end].strip() for start, end in zip(starts, ends, strict=True)] for row in rows]


def written(*stems: str) -> list[str]:
    return [f"{stem}.{suffix}" for stem in stems for suffix in ("fit.png", "uniphase")]


def interrupt_at(monkeypatch, call: int) -> None:
    """Ctrl-C when progress is shown for the n-th time: twice in a fit of 20 steps, after 10 and after 20."""
    seen = []

    def cells_or_interrupt(progress, after):
        seen.append(progress)
        if len(seen) == call:
            signal.raise_signal(signal.SIGINT)
        return {}

    monkeypatch.setattr("uniphase.cli.terminal.progress_cells", cells_or_interrupt)


@pytest.fixture
def interrupts():
    """Interrupts raise `KeyboardInterrupt`, although shells may have them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_several_signals_are_one_table(run, photos, here):
    write_sound(here / "song.wav")
    adam = ["--optimizer", "adam"]  # compiled in half the time
    code, out, err = run("fit", *photos[:2], "song.wav", *TINY_ARGUMENTS, *adam)
    assert code == 0
    rows = cells(out)
    for row, name, samples in zip(rows, ("a", "b", "song"), ("16 × 16", "16 × 16", "300"), strict=True):
        saved = load_network(f"{name}.uniphase")
        assert saved.metrics is not None
        numbers = [f"{saved.metrics[key]:.4g}" for key in ("snr_db", "psnr_db", "ssim")]
        assert row[0] == ("song.wav" if name == "song" else f"{name}.png")
        assert row[1:6] == [samples, f"{saved.blueprint.parameters:,}", *numbers]
        assert row[6:] == [f"{saved.training['seconds']:.1f}", f"{name}.uniphase"]
    headings = [line for line in err.splitlines() if line.startswith("[")]
    assert headings == ["[1/3] a.png", "[2/3] b.png", "[3/3] song.wav"]
    assert names(here) == sorted([*photos, "song.wav", "text.png", *written("a", "b", "song"), "song.fit.wav"])


def test_each_is_fitted_as_if_it_were_alone(run, here):
    (here / "many").mkdir()
    options = [*TINY_ARGUMENTS, "--seed", "1", "--json"]
    code, out, err = run("fit", "a.png", "b.png", *options, "-o", "many/")
    assert (code, err, out.count("\n")) == (0, "", 1)
    report = json.loads(out)
    assert (list(report), report["failed"]) == (["fits", "failed"], [])
    for name, found in zip(("a", "b"), report["fits"], strict=True):
        _, out, _ = run("fit", f"{name}.png", *options)
        alone = json.loads(out)
        changed = {"output": f"many/{name}.uniphase", "seconds": found["seconds"]}
        assert found == {"signal": f"{name}.png", **alone, **changed, "done_already": False}
        ours, theirs = load_file(f"many/{name}.uniphase"), load_file(f"{name}.uniphase")
        assert all(ours[key].tobytes() == theirs[key].tobytes() for key in theirs | ours)
    assert names(here / "many") == written("a", "b")


def test_one_signal_may_name_a_directory_too(run, here):
    (here / "one").mkdir()
    code, out, _ = run("fit", "a.png", *TINY_ARGUMENTS, "-o", "one", "--json")
    assert (code, json.loads(out)["output"]) == (0, "one/a.uniphase")
    assert names(here / "one") == written("a")


def test_one_that_fails_does_not_end_the_others(run, here):
    (here / "there.npy").touch()
    (here / "there.uniphase").write_text("mine")
    signals = ["text.png", "a.png", "there.npy", "nothing.png", "b.png"]
    code, out, err = run("fit", *signals, *TINY_ARGUMENTS)
    assert code == 1
    rows = cells(out)
    assert [row[0] for row in rows] == signals
    assert [row[-1] for row in rows if not row[-1].startswith("failed: ")] == ["a.uniphase", "b.uniphase"]
    assert rows[0][1:-1] == ["—"] * 6
    assert rows[0][-1].startswith("failed: cannot be read as an image")
    assert rows[2][-1].startswith("failed: there.uniphase: exists; pass --force")
    assert rows[3][-1].startswith("failed: no such file, nor one of the signals camera")
    lines = err.splitlines()
    # What can be known comes before the first fit.
    assert lines[0].startswith("uniphase: there.npy: there.uniphase: exists")
    assert lines[1].startswith("uniphase: nothing.png: no such file")
    assert lines[2] == "[1/5] text.png"
    assert lines[3].startswith("uniphase: text.png: cannot be read as an image")
    assert lines[4] == "[2/5] a.png"
    assert [line for line in lines if line.startswith("[")][-1] == "[5/5] b.png"
    assert Path("there.uniphase").read_text() == "mine"


def test_failures_in_json(run):
    code, out, err = run("fit", "text.png", "nothing.png", *TINY_ARGUMENTS, "--json")
    report = json.loads(out)
    assert (code, report["fits"], err.count("\n")) == (1, [], 2)
    assert [failed["signal"] for failed in report["failed"]] == ["text.png", "nothing.png"]
    for failed in report["failed"]:
        assert f"uniphase: {failed['signal']}: {failed['reason']}\n" in err


def test_only_errors_that_a_user_can_fix_are_taken_for_failures(run, monkeypatch):
    errors = [MemoryError(), RuntimeError("Out of memory\nallocating"), ValueError("two\nlines")]

    def fail(*_, **__):
        raise errors.pop(0)

    monkeypatch.setattr("uniphase.cli.subjects.load", fail)
    code, out, _ = run("fit", "a.png", "b.png", "c.png", "--json")
    reasons = [failed["reason"] for failed in json.loads(out)["failed"]]
    assert (code, reasons[2]) == (1, "two lines")
    assert reasons[0] == "out of memory; pass a smaller --size"
    assert reasons[1] == "out of memory; pass a smaller --width, --batch or --size"
    for error in (RuntimeError("a mistake of ours"), BrokenPipeError()):
        errors.append(error)
        with pytest.raises(type(error)):
            fit_signals(["a.png", "b.png"], Settings(Options()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x/a.png", "a.png"], "x/a.png and a.png would both be written to a.uniphase; rename one, or"),
        (["a.png", "b.png", "a.jpg"], "a.png and a.jpg would both be written to a.uniphase"),
        (["a.png", "a.png"], "a.png and a.png would both be written to a.uniphase"),
        (["a.png", "b.png", "-o", "x.uniphase"], "output is x.uniphase, but there are 2 signals; leave it out"),
        (
            ["a.png", "b.png", "-o", "none/"],
            "output is none/, but there are 2 signals; leave it out, or pass",
        ),
        (["a.png", "b.png", "--scheme", "wavelet"], "there is no scheme 'wavelet'"),
        (["a.png", "b.png", "--omega", "30"], "omega is 30, but uniform-phase has none"),
        (["a.png", "b.png", "--seed", "-1"], "seed is -1; it must lie between"),
    ],
)
def test_what_is_wrong_with_all_is_one_line_before_any_work(run, here, arguments, message):
    before = names(here)
    code, out, err = run("fit", *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(here) == before


def test_an_interrupt_in_the_second_of_three_and_the_way_on(run, photos, here, monkeypatch, interrupts):
    """The finished one is left as it is, the interrupted one continues, the third follows: to the same bits."""
    (here / "whole").mkdir()
    run("fit", *photos, *TINY_ARGUMENTS, "-o", "whole", "--json")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        code, out, err = run("fit", *photos, *TINY_ARGUMENTS)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "uniphase: interrupted; the same command with --resume continues the fits"
    assert "Traceback" not in err
    assert names(here) == sorted([*photos, *written("a"), "b.uniphase.part", "text.png", "whole"])
    first = Path("a.uniphase").read_bytes(), Path("a.uniphase").stat().st_mtime_ns
    seen = []
    monkeypatch.setattr("uniphase.cli.terminal.progress_cells", lambda progress, _: seen.append(progress.step) or {})

    shell = [*photos, "a.fit.png"]  # what *.png has become
    code, out, err = run("fit", *shell, *TINY_ARGUMENTS, "--resume")
    assert code == 0
    assert [row[-1] for row in cells(out)] == ["a.uniphase (done already)", "b.uniphase", "c.uniphase"]
    notes = [line for line in err.splitlines() if line.startswith("uniphase")]
    assert notes == ["uniphase: note: left out a.fit.png: written by fits of the other signals"]
    assert seen == [20, 10, 20]  # the second goes on after its first 10 steps
    assert (Path("a.uniphase").read_bytes(), Path("a.uniphase").stat().st_mtime_ns) == first
    assert names(here) == sorted([*photos, *written("a", "b", "c"), "text.png", "whole"])
    for name in ("a", "b", "c"):
        ours, theirs = load_file(f"{name}.uniphase"), load_file(f"whole/{name}.uniphase")
        assert all(ours[key].tobytes() == theirs[key].tobytes() for key in theirs | ours)


def resumed(run, *arguments: str) -> tuple[int, list[bool], list[str]]:
    """The exit code of a resumed fit of two images, which of them were done already, and the reasons of the others."""
    code, out, _ = run("fit", *arguments, "--resume", "--json")
    report = json.loads(out)
    return code, [fit["done_already"] for fit in report["fits"]], [failed["reason"] for failed in report["failed"]]


def test_done_already_is_what_the_same_command_has_made(run, photos, here):
    two, same = photos[:2], [*photos[:2], *TINY_ARGUMENTS]
    run("fit", *same, "--json")
    assert resumed(run, *same) == (0, [True, True], [])
    assert resumed(run, str(here / "a.png"), "b.png", *TINY_ARGUMENTS) == (0, [True, True], [])  # by another path
    for change, what in (
        (["--seed", "1"], "seed"),
        (["--lr", "0.01"], "options"),
        (["--target-db", "1", "--scheme", "siren"], "scheme, options"),
    ):
        code, _, reasons = resumed(run, *same, *change)
        assert (code, len(reasons)) == (1, 2)
        assert reasons[0].startswith(f"a.uniphase: exists, but from another {what}; pass --force to replace it")
    Image.open("a.png").rotate(180).save("a.png")
    Path("b.uniphase").write_text("mine")
    code, _, reasons = resumed(run, *same)
    assert (code, len(reasons)) == (1, 2)
    assert reasons[0].startswith("a.uniphase: exists, but from another signal; pass")
    assert reasons[1].startswith("b.uniphase: exists, but from another signal, scheme, seed, options; pass")
    assert Path("b.uniphase").read_text() == "mine"
    assert resumed(run, *same, "--force") == (0, [False, False], [])
    assert resumed(run, *same) == (0, [True, True], [])
    assert names(here) == sorted([*photos, "text.png", *written(*(name[0] for name in two))])


def test_a_signal_by_name_is_known_by_its_name(run, here):
    arguments = ["camera", "a.png", "--size", "16", "--eval-size", "16", *TINY_ARGUMENTS]
    run("fit", *arguments, "--json")
    assert resumed(run, *arguments) == (0, [True, True], [])
    Image.new("L", (16, 16)).save("camera.png")
    code, done, reasons = resumed(run, "camera.png", *arguments[1:])
    assert (code, done, reasons[0].partition(";")[0]) == (1, [True], "camera.uniphase: exists, but from another signal")


def test_files_of_fits_are_told_from_signals(run, photos):
    run("fit", *photos[:2], *TINY_ARGUMENTS, "--json")
    everything = ["a.uniphase", "a.fit.png", "a.png", "b.png", "b.uniphase"]
    assert resumed(run, *everything, *TINY_ARGUMENTS) == (0, [True, True], [])
    code, done, reasons = resumed(run, "a.uniphase", "b.png", *TINY_ARGUMENTS)  # nobody's here
    assert (code, done, len(reasons)) == (1, [True], 1)


def test_what_is_noted_of_one_signal_is_noted_of_the_next(run, monkeypatch):
    def fail(*_, **__):
        warnings.warn("a frame is left out", stacklevel=1)
        raise ValueError("damaged")

    monkeypatch.setattr("uniphase.cli.subjects.load", fail)
    code, _, err = run("fit", "a.png", "b.png")
    assert (code, err.count("uniphase: note: a frame is left out\n")) == (1, 2)
