"""Paths: files that cannot be read raise one clear error, and files are written whole or not at all."""

import contextlib
import hashlib
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

FilePath = str | os.PathLike[str]

# Tells this process from one before it that had the same number, as the only ones of two containers do.
_PROCESS = secrets.token_hex(4)


def suffix_of(path: FilePath) -> str:
    """The suffix of a path in lower case; that of a compressed file with the one before, as in `.nii.gz`."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    return "".join(suffixes if suffixes[-1:] == [".gz"] else suffixes[-1:])


def stem_of(path: FilePath) -> str:
    """The name of a file without the suffix of `suffix_of`."""
    name = Path(path).name
    return name[: len(name) - len(suffix_of(path))]


class WriteError(OSError):
    """A file could not be written: the disk is full, or the system refuses."""


@contextlib.contextmanager
def atomic_path(path: FilePath) -> Iterator[Path]:
    """A temporary path to write to, which is renamed to `path` at the end of the block.

    It lies in the same directory and has the same suffix. If the block fails, the temporary file is removed; an error
    of the system, such as a full disk, is raised as a `WriteError`. A file that was at `path` before is untouched
    until the new one is complete, even if the process is killed; what that leaves is removed by the next write.

    !!! example
        ```python
        with atomic_path("notes.txt") as temporary:
            temporary.write_text("all of it, or nothing")
        ```
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {path.parent}; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: a directory; pass the path of a file")
    remove_leftovers(path)
    temporary = path.with_name(f"{_beginning(path)}-{os.getpid()}-{_PROCESS}-{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise WriteError(error.errno, error.strerror or str(error), str(path)) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_leftovers(path: FilePath) -> None:
    """Remove temporary files for `path` of processes on this machine that were killed while they wrote it."""
    path = Path(path)
    for leftover in path.parent.glob(f"{_beginning(path)}-*"):
        pid, process = leftover.name.split("-")[2:4]
        if process != _PROCESS if int(pid) == os.getpid() else not _is_running(int(pid)):
            leftover.unlink(missing_ok=True)


def _beginning(path: Path) -> str:
    """How the names of temporary files for a path begin: of this machine, as processes of others cannot be seen."""
    place = f"{socket.gethostname()}/{path.name}".encode("utf-8", "surrogateescape")
    return f".uniphase-{hashlib.sha256(place).hexdigest()[:16]}"


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # where the same call would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        pass
    return True


@contextlib.contextmanager
def reading(path: FilePath, kind: str, fix: str) -> Iterator[None]:
    """Turn any error in the block into one line: the path, the kind of file expected, the reason, and the fix."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file")
    if os.path.isdir(path):
        raise ValueError(f"{path}: a directory, not {kind}; pass the path of a file")
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path}: an empty file, not {kind}; {fix}")
    with explaining(path, kind, fix):
        yield


@contextlib.contextmanager
def explaining(path: FilePath, kind: str, fix: str) -> Iterator[None]:
    """`reading`, for what is known to be there, or may be a directory."""
    try:
        yield
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ValueError(f"{path}: {error} If you trust the file, save it as NPY") from error
    except Exception as error:  # decoders raise almost anything on a damaged file
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: cannot be read as {kind} ({reason}); {fix}") from error
