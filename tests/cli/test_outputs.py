import numpy as np
import pytest
import soundfile
from PIL import Image

from helpers.small import TINY, TINY_ARGUMENTS, TINY_SOUND, names, write_sound
from uniphase.cli.display import Watcher
from uniphase.cli.fit import prepare, run as run_job
from uniphase.cli.options import Options


def full_disk(_):
    raise OSError(28, "No space left on device")


def test_the_input_is_never_replaced(here):
    Image.fromarray(np.eye(8, dtype=np.uint8)).save("b.fit.png")
    with pytest.raises(FileExistsError, match="would replace the file that is read; pass another --output"):
        prepare("b.fit.png", Options(), output="b.uniphase", force=True)
    write_sound(here / "a.wav")
    before = (here / "a.wav").read_bytes()
    run_job(prepare("a.wav", Options(**TINY_SOUND)))
    assert (here / "a.wav").read_bytes() == before
    assert names(here) == ["a.fit.png", "a.fit.wav", "a.uniphase", "a.wav", "b.fit.png"]


def test_a_disk_that_is_full_leaves_what_was_there(here, monkeypatch):
    job = prepare("camera", Options(**TINY))
    monkeypatch.setattr("os.fsync", full_disk)
    message = r"camera.uniphase: cannot be written \(No space left on device\); fix that, then continue with --resume"
    with pytest.raises(OSError, match=message):
        run_job(job)
    assert names(here) == []
    with pytest.raises(OSError, match=message):
        run_job(job, checkpoint_seconds=0.0)
    assert names(here) == []


def test_a_full_disk_is_one_line(run, here, monkeypatch):
    monkeypatch.setattr("os.fsync", full_disk)
    code, _, err = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS, "--json")
    reason = "cannot be written (No space left on device); fix that, then continue with --resume"
    assert (code, err) == (1, f"uniphase: camera.uniphase: {reason}\n")
    assert names(here) == []


def test_a_file_system_that_refuses_is_found_before_training(run, monkeypatch):
    refuse = lambda **_: (_ for _ in ()).throw(PermissionError(13, "Permission denied"))  # noqa: E731
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("uniphase.training.fit.fit", None)
    code, out, err = run("fit", "camera", "--size", "16", *TINY_ARGUMENTS)
    reason = "cannot be written (Permission denied); fix that, or pass another --output"
    assert (code, out, err) == (1, "", f"uniphase: camera.uniphase: {reason}\n")


def test_only_errors_of_writing_are_reported_as_such(here):
    """Not those of a callback, or of a signal that is read from a disk."""

    class Failing(Watcher):
        def progress(self, progress):
            raise OSError(5, "Input/output error", "signal.npy")

    with pytest.raises(OSError, match=r"^\[Errno 5\] Input/output error: 'signal.npy'$"):
        run_job(prepare("camera", Options(**TINY)), watcher=Failing())
    assert names(here) == []


def test_a_sound_that_cannot_be_written(here, monkeypatch):
    write_sound(here / "a.wav")
    job = prepare("a.wav", Options(**TINY_SOUND))

    def fail(*_, **__):
        raise soundfile.SoundFileRuntimeError("System error.")

    monkeypatch.setattr("soundfile.write", fail)
    with pytest.raises(OSError, match=r"a.uniphase: cannot be written \(System error\.\)"):
        run_job(job)


def test_two_fits_do_not_write_one_output(run, here):
    """Nor does one take away the state of the other."""
    endings, arguments = [], ("camera", "--size", "16", *TINY_ARGUMENTS, "-o", "a.uniphase", "--json")

    class Impatient(Watcher):
        def progress(self, progress):
            if not endings:
                several = ("camera", "brick", *arguments[1:-3], "-o", str(here), "--json")
                endings.extend(run("fit", *arguments, *more) for more in ((), ("--resume",), ("--force",)))
                endings.append(run("fit", *several))

    run_job(prepare("camera", Options(**TINY), output="a.uniphase"), watcher=Impatient(), checkpoint_seconds=0.0)
    words = "uniphase: a.uniphase: another fit is writing it; wait for that, or pass another --output\n"
    assert endings[:3] == [(1, "", words)] * 3
    assert endings[3][0] == 0  # other outputs in the same directory
    results = [f"{name}{suffix}" for name in ("a", "brick", "camera") for suffix in (".fit.png", ".uniphase")]
    assert names(here) == sorted(results)


def test_what_was_written_since_a_fit_was_prepared_is_kept(here):
    first, second = (prepare("camera", Options(**TINY), seed=seed) for seed in (0, 1))
    run_job(first)
    before = (here / "camera.uniphase").read_bytes()
    with pytest.raises(FileExistsError, match=r"exists; pass --force to replace it, or another --output"):
        run_job(second)
    assert (here / "camera.uniphase").read_bytes() == before
