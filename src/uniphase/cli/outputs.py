"""Files that are written: that they can be, before any work is done for them, and what is said if they cannot."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from soundfile import SoundFileError


def require_writable(paths: Sequence[Path], source: str, *, replace: bool) -> None:
    """See that files can be written, that nothing is lost by it, and that the source is none of them."""
    directory = paths[0].parent
    if not directory.is_dir():
        raise FileNotFoundError(f"{paths[0]}: there is no directory {directory}; make it first")
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"{path}: a directory; pass the path of a file")
        if not path.exists():
            continue
        if Path(source).exists() and path.samefile(source):
            raise FileExistsError(f"{path}: would replace what is read; pass another --output")
        if not replace:
            raise FileExistsError(f"{path}: exists; pass --force to replace it, or another --output")
    with writing(paths[0]), tempfile.TemporaryFile(dir=directory):
        pass


@contextlib.contextmanager
def writing(path: Path, fix: str = "make room, or pass another --output") -> Iterator[None]:
    """What the system refuses to write is said with the path that the user knows."""
    try:
        yield
    except (OSError, SoundFileError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(f"{path}: cannot be written ({reason}); {fix}") from error
