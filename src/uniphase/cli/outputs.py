"""Files that a command writes: check before any work that they can be written, and report if they cannot."""

import contextlib
import getpass
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..signals.paths import WriteError


def require_writable(paths: Sequence[Path], source: str, *, replace: bool) -> None:
    """Raise an error if one of the files cannot be written, would be lost without `replace`, or is the source."""
    directory = paths[0].parent
    if not directory.is_dir():
        raise FileNotFoundError(f"{paths[0]}: there is no directory {directory}; make it first")
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"{path}: a directory; pass the path of a file")
        if not path.exists():
            continue
        if Path(source).exists() and path.samefile(source):
            raise FileExistsError(f"{path}: would replace the file that is read; pass another --output")
        if not replace:
            raise FileExistsError(f"{path}: exists; pass --force to replace it, or another --output")
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise cannot_write(paths[0], error) from error


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Raise an error if another process of this user on this machine is in such a block for the same file."""
    from filelock import FileLock, Timeout

    # In the directory for temporary files: a lock that is deleted while somebody opens it locks nothing.
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    lock = FileLock(Path(tempfile.gettempdir(), f"uniphase-{getpass.getuser()}-{place}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise FileExistsError(f"{path}: another fit is writing it; wait for that, or pass another --output") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def writing(path: Path, fix: str = "fix that, or pass another --output") -> Iterator[None]:
    """Report a failed write under the name of `path`, which the user knows. Any other error passes as it is."""
    from soundfile import SoundFileError

    try:
        yield
    except (WriteError, SoundFileError) as error:
        raise cannot_write(path, error, fix) from error


def cannot_write(path: Path, error: Exception, fix: str = "fix that, or pass another --output") -> OSError:
    """The error for a file that cannot be written."""
    reason = getattr(error, "strerror", None) or error
    return OSError(f"{path}: cannot be written ({reason}); {fix}")
