"""Containers: MP4, Matroska and others that hold videos and sounds, opened with PyAV."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from .paths import FilePath
from .sources import require_package

# What FFmpeg may take a file for, whatever its suffix. A playlist would have it read other files.
_READ = {
    "format_whitelist": "aac,asf,avi,flac,flv,m4v,matroska,mov,mp3,mpeg,mpegts,ogg,wav,webm",
    "protocol_whitelist": "file",
}


@contextlib.contextmanager
def open_container(path: FilePath, mode: str = "r") -> Iterator[Any]:
    """An open container of PyAV, with `plain_errors`."""
    av = require_package("av", "video", path)
    with plain_errors(), av.open(os.fspath(path), mode, options=_READ if mode == "r" else {}) as container:
        yield container


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of PyAV into a `ValueError` with the reason alone, except for those of the system."""
    from av.error import FFmpegError

    try:
        yield
    except FFmpegError as error:
        if isinstance(error, OSError):
            raise
        raise ValueError(error.strerror or str(error)) from error


def decode_sound(path: FilePath) -> tuple[Float[np.ndarray, "samples channels"], float]:
    """The samples of the first sound in a container, as float32, and their number per second."""
    av = require_package("av", "video", path)
    with open_container(path) as container:
        if not container.streams.audio:
            raise ValueError("it holds no sound")
        stream = container.streams.audio[0]
        resampler = av.AudioResampler(format="fltp")  # planes of float32, with the channels and the rate of the file
        decoded = [part for frame in container.decode(stream) for part in resampler.resample(frame)]
        planes = [part.to_ndarray() for part in (*decoded, *resampler.resample(None))]
        rate, declared = float(stream.rate), declared_seconds(container, stream)
    if not planes:
        raise ValueError("it holds no samples")
    values = np.concatenate(planes, axis=1).T
    require_all(len(values) / rate, declared, 0.1)  # codecs work in blocks of up to a tenth of a second
    return values if declared is None else values[: round(declared * rate)], rate  # the last block is padded


def declared_seconds(container: Any, stream: Any) -> float | None:
    """How long a container says that a stream is, unless that is an estimate."""
    if stream.duration is None and len(container.streams) == 1 and container.duration is not None:
        return container.duration / 1e6
    return float(stream.duration * stream.time_base) if stream.duration is not None and stream.frames else None


def require_all(seconds: float, declared: float | None, slack: float) -> None:
    """Raise an error if a stream is shorter than its container declares, as one that was cut off is.

    **Arguments:**

    - `seconds`, `declared`: how long it is, and should be.
    - `slack`: seconds by which these may differ in a whole file, beside a hundredth.
    """
    if declared is not None and seconds < 0.99 * declared - slack:
        raise ValueError(f"it breaks off after {seconds:.1f} of {declared:.1f} seconds")
