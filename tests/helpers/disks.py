"""A disk that is full: the calls by which a file is written, and how each fails."""

import errno
import os
from pathlib import Path


def _full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def _half_written(path, data):
    with path.open("wb") as stream:
        stream.write(data[: len(data) // 2])
    _full()


FULL_DISK = [(os, "replace", _full), (os, "fsync", _full), (Path, "write_bytes", _half_written)]
