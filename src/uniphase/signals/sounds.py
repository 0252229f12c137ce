"""Sounds: files that libsndfile or PyAV opens and arrays of samples, as a `Grid` over time."""

import math
from pathlib import Path

import numpy as np
import soundfile
from jaxtyping import Shaped

from .containers import decode_sound
from .fields import Align, Grid
from .paths import FilePath, atomic_path, reading
from .sources import Extents, Source, require_finite_floats, require_package, require_suffix, resized, values_of

# Those that libsndfile opens; all others are left to PyAV.
_SNDFILES = (".aif", ".aiff", ".au", ".caf", ".flac", ".mp3", ".oga", ".ogg", ".opus", ".w64", ".wav")
SOUNDS = (*_SNDFILES, ".aac", ".m4a", ".mka", ".weba", ".wma")
WRITTEN_SOUNDS = (".flac", ".wav")


def audio(
    source: Source,
    *,
    rate: int | float | None = None,
    size: int | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
) -> Grid:
    """A sound as a grid of float32 values over time, with one channel per track.

    **Arguments:**

    - `source`: the path of a WAV, FLAC, MP3, OGG or other sound that libsndfile opens; with the extra `video`, that of
        an M4A or of a video, whose first sound is read; or an array of shape `(samples,)` or `(samples, channels)`.
        Samples of type int16 and int32 are scaled to [-1, 1), in an array as in a file.
    - `rate`: samples per second of an array, without which it cannot be written as a sound. A file has its own.
    - `size`: samples after anti-aliased resampling. Default: as stored.
    - `align`: as for `Grid`.
    - `extents`: as for `Grid`. Default: time spans (-100, 100), as in the paper and for the sounds of SIREN. A
        uniform-phase network does not depend on this choice, but the schemes with a fixed frequency do.

    !!! example
        ```python
        audio("speech.flac").extents  # ((-100.0, 100.0),)
        audio(np.sin(np.linspace(0, 1000, 8000)), rate=44100).rate  # 44100.0
        ```
    """
    rates = [] if rate is None else [float(rate)]
    name, values = values_of(source, lambda path: _audio_file(path, rates))
    if rates and not 0 < rates[0] < math.inf:
        raise ValueError(f"{name}: rate is {rate}; pass the samples per second, e.g. rate=44100")
    values = _as_samples(name, values)
    samples = len(values)
    if size is not None:
        values = resized(values, size)
    return Grid(
        values.astype(np.float32, copy=False),
        extents=(-100.0, 100.0) if extents is None else extents,
        align=align,
        medium="sound",
        rate=rates[0] * len(values) / samples if rates else None,
    )


def write_audio(path: FilePath, values: Shaped[np.ndarray, "*shape channels"], rate: float | None) -> None:
    """Write a sound with 16 bits per sample, as WAV or FLAC by the suffix of the path.

    **Arguments:**

    - `path`: where to.
    - `values`: floats of shape `(samples, channels)`; values outside [-1, 1] are clipped.
    - `rate`: samples per second, as `Grid.rate`; the file holds it as a whole number.

    !!! example
        ```python
        sound = audio("speech.flac")
        write_audio("speech.wav", sound.values, sound.rate)
        ```
    """
    require_suffix(path, WRITTEN_SOUNDS)
    if values.ndim != 2:
        raise ValueError(
            f"{path}: values has shape {values.shape}, but a sound is (samples, channels); write the values as NPY"
        )
    require_finite_floats(path, values, "floats in [-1, 1]")
    if rate is None or not rate >= 1:
        raise ValueError(f"{path}: rate is {rate}; pass the samples per second, e.g. rate=44100")
    with atomic_path(path) as temporary:
        soundfile.write(temporary, np.clip(values, -1, 1), round(rate), subtype="PCM_16")


def _audio_file(path: str, rates: list[float]) -> np.ndarray:
    """The samples, as floats. Their number per second is added to `rates`, which must not have one yet."""
    if rates:
        raise ValueError(f"{path}: rate is {rates[0]:g}, but a file has its own; leave rate out")
    contained = Path(path).suffix.lower() not in _SNDFILES
    if contained:
        require_package("av", "video", path)
    with reading(path, "a sound", "get a whole copy, or convert it to WAV or FLAC"):
        if contained:
            values, rate = decode_sound(path)
            rates.append(rate)
            return values
        with soundfile.SoundFile(path) as file:
            values = file.read(dtype="float32", always_2d=True)
            rates.append(float(file.samplerate))
        if len(values) == 0 or len(values) < file.frames:
            raise ValueError(f"it holds {len(values)} samples of {file.frames}")
    return values


def _as_samples(name: str, values: np.ndarray) -> np.ndarray:
    if values.ndim not in (1, 2):
        raise ValueError(f"{name}: the shape is {values.shape}, but a sound is (samples,) or (samples, channels)")
    if values.dtype in (np.int16, np.int32):
        values = values / -float(np.iinfo(values.dtype).min)
    if values.dtype.kind != "f":
        raise ValueError(f"{name}: the dtype is {values.dtype}; pass the samples as float32 in [-1, 1]")
    return values[:, None] if values.ndim == 1 else values
