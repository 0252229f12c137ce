import errno
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from uniphase.signals.files import read, write
from uniphase.signals.paths import WriteError, atomic_path, remove_leftovers, stem_of, suffix_of


@pytest.mark.parametrize("name", ["a.png", "a.wav", "a.npy"])
def test_missing_file(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(tmp_path / name))}: no such file$"):
        read(tmp_path / name)


def test_forbidden_file(tmp_path, monkeypatch):
    """Permissions do not bind every user, so the refusal is played."""

    def refuse(path, **options):
        raise PermissionError(13, "Permission denied", str(path))

    np.save(tmp_path / "a.npy", np.zeros(9))
    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        read(tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.png", "a.wav", "a.npy"])
@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, name, step):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / name).write_text("before")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(WriteError, match="No space left"):
        write(tmp_path / name, np.zeros((9, 1) if name == "a.wav" else (2, 3, 1)), rate=8000.0)
    assert (tmp_path / name).read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    def interrupted():
        with atomic_path(tmp_path / "a.txt") as temporary:
            assert (temporary.parent, temporary.suffix) == (tmp_path, ".txt")
            temporary.write_text("half of")
            raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "a.txt").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_written_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write(tmp_path / "a.npy", np.zeros((2, 1)))
    assert (tmp_path / "a.npy").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"b/a.npy: there is no directory .*b; make it first"):
        write(tmp_path / "b" / "a.npy", np.zeros((2, 1)))
    with pytest.raises(IsADirectoryError, match="a directory; pass the path of a file"), atomic_path(tmp_path):
        pass


@pytest.mark.parametrize(
    ("path", "stem", "suffix"),
    [
        ("a/b.png", "b", ".png"),
        ("a/B.c.NII.gz", "B.c", ".nii.gz"),
        ("a.zarr/", "a", ".zarr"),
        ("a/camera", "camera", ""),
    ],
)
def test_stems_and_suffixes(path, stem, suffix):
    assert (stem_of(path), suffix_of(path)) == (stem, suffix)


def test_the_next_write_removes_what_a_kill_left(tmp_path):
    """But not what another process is still writing."""
    script = (
        "import os, signal, sys; from uniphase.signals.paths import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    for name in ("a.txt", "b.txt"):
        subprocess.run([sys.executable, "-c", script, str(tmp_path / name)], check=False)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["half", "half"]
    with atomic_path(tmp_path / "a.txt") as outer, atomic_path(tmp_path / "a.txt") as inner:
        outer.write_text("1")
        inner.write_text("2")
    assert (tmp_path / "a.txt").read_text() == "1"
    assert len(list(tmp_path.iterdir())) == 2  # with what was left of b.txt
    remove_leftovers(tmp_path / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="processes are not looked for elsewhere")
def test_a_process_that_runs_keeps_its_temporary_file(tmp_path):
    with atomic_path(tmp_path / "a.txt") as mine:
        mine.touch()
        start, _, _, token = mine.name.rsplit("-", 3)
        other = tmp_path / f"{start}-{os.getppid()}-0000-{token}"
        other.touch()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [other.name, "a.txt"]
