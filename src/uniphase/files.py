"""Files: images, sounds and arrays, read as a `Grid` and written from values.

This is the only module that opens a user's signal. A file that is not what it claims to be raises one line that starts
with its path, and whatever is left out of a file (alpha, further frames) is said in a warning. A file is written whole
or not at all.
"""

import contextlib
import os
import secrets
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile
from jaxtyping import Shaped
from numpy.typing import ArrayLike
from PIL import Image
from skimage import color, transform, util

from .fields import Align, Grid, Medium
from .pixels import decode

Space = Literal["gray", "rgb", "lab"]
FilePath = str | os.PathLike[str]
Source = FilePath | ArrayLike

_IMAGES = (".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".tga", ".tif", ".tiff", ".webp")
_SOUNDS = (".aif", ".aiff", ".au", ".caf", ".flac", ".mp3", ".ogg", ".opus", ".w64", ".wav")
_ARRAYS = (".npy",)
_WRITTEN_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_WRITTEN_SOUNDS = (".flac", ".wav")


def read(
    path: FilePath,
    *,
    size: int | None = None,
    space: Space | None = None,
    align: Align = "centers",
    axes: int | None = None,
) -> Grid:
    """Read a file with `image`, `audio` or `array`, by its suffix.

    **Arguments:** those of the three functions; `space` is for images only and `axes` for arrays only.

    !!! example
        ```python
        read("photo.jpg", size=256, space="lab")
        read("density.npy", axes=3)
        ```
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _IMAGES + _SOUNDS + _ARRAYS:
        known = " ".join(_IMAGES + _SOUNDS + _ARRAYS)
        raise ValueError(f"{path}: the suffix {suffix!r} is not known; convert the file to one of {known}")
    if space is not None and suffix not in _IMAGES:
        raise ValueError(f"{path}: space is {space!r}, but only images have a colour space; leave space out")
    if axes is not None and suffix not in _ARRAYS:
        raise ValueError(f"{path}: axes is {axes}, but only arrays have a choice of axes; leave axes out")
    if suffix in _IMAGES:
        return image(path, size=size, space=space, align=align)
    if suffix in _SOUNDS:
        return audio(path, size=size, align=align)
    return array(path, axes=axes, size=size, align=align)


def image(source: Source, *, size: int | None = None, space: Space | None = None, align: Align = "centers") -> Grid:
    """An image as a grid of float32 values with 1 or 3 channels; axis 0 runs down the rows.

    Integers are scaled to [0, 1] by the largest value of their type; floats are kept. PNG and TIFF keep 16 bits per
    channel; colours in other formats come at the 8 bits that Pillow gives. The EXIF orientation is applied, colour
    profiles are not. Alpha and all frames but the first are dropped, with a warning.

    **Arguments:**

    - `source`: the path of a PNG, JPEG, TIFF, WebP or other image that Pillow opens, or an array of shape
        `(height, width)` or `(height, width, channels)`, where 2 or 4 channels are gray or RGB with alpha.
    - `size`: samples along the longer axis after anti-aliased resizing by `skimage.transform.resize`, which comes
        before any colour conversion. Default: as stored.
    - `space`: `"gray"`, `"rgb"` or `"lab"` (CIELAB of sRGB). Default: gray or RGB, as stored.
    - `align`: as for `Grid`.

    !!! example
        ```python
        image("photo.jpg", size=256, space="lab").shape  # (192, 256)
        ```
    """
    if space not in (None, "gray", "rgb", "lab"):
        raise ValueError(f"space is {space!r}; it must be 'gray', 'rgb' or 'lab'")
    dropped = []
    name, values = _values(source, lambda path: _image_file(path, dropped))
    values = _as_channels(name, values)
    if values.shape[-1] in (2, 4):
        if not _opaque(values[..., -1]):
            dropped.append("its alpha channel")
        values = values[..., :-1]
    for what in dropped:
        warnings.warn(f"{name}: dropped {what}", stacklevel=2)
    values = util.img_as_float32(values) if size is None else _resized(values, size)
    values = _in_space(values, space)
    medium = space or ("gray" if values.shape[-1] == 1 else "rgb")
    return Grid(values.astype(np.float32, copy=False), align=align, medium=medium)


def audio(source: Source, *, size: int | None = None, align: Align = "centers") -> Grid:
    """A sound as a grid of float32 values over time, with one channel per track.

    Time spans (-100, 100), as for the sounds of SIREN. A uniform-phase network does not depend on this choice, but
    the schemes with a fixed frequency do.

    **Arguments:**

    - `source`: the path of a WAV, FLAC or other sound that libsndfile opens, or an array of shape `(samples,)` or
        `(samples, channels)`. Samples of type int16 and int32 are scaled to [-1, 1), in an array as in a file.
    - `size`: samples after anti-aliased resampling. Default: as stored.
    - `align`: as for `Grid`.

    !!! example
        ```python
        audio("speech.flac").extents  # ((-100.0, 100.0),)
        ```
    """
    rates: list[float] = []
    name, values = _values(source, lambda path: _audio_file(path, rates))
    values = _as_samples(name, values)
    samples = len(values)
    if size is not None:
        values = _resized(values, size)
    rate = rates[0] * len(values) / samples if rates else None
    values = values.astype(np.float32, copy=False)
    return Grid(values, extents=(-100.0, 100.0), align=align, medium="sound", rate=rate)


def array(source: Source, *, axes: int | None = None, size: int | None = None, align: Align = "centers") -> Grid:
    """An array as a grid. Its numbers and their type are kept, and a file stays on the disk, memory-mapped.

    **Arguments:**

    - `source`: the path of an NPY file, or an array.
    - `axes`: the number of coordinate axes; an array with one axis more holds its channels in the last. Default: the
        last axis is the channels if there are at least two axes and it has at most 4 entries, otherwise there is a
        single channel.
    - `size`: samples along the longest axis after anti-aliased resizing, which loads the array and turns integers
        into floats, unscaled. Default: as stored.
    - `align`: as for `Grid`.

    !!! example
        ```python
        array(np.zeros((64, 64, 3))).in_size  # 2
        array(np.zeros((64, 64, 3)), axes=3).in_size  # 3
        ```
    """
    name, values = _values(source, _array_file)
    if axes is None:
        axes = values.ndim - 1 if values.ndim >= 2 and values.shape[-1] <= 4 else values.ndim
    if axes < 1 or values.ndim not in (axes, axes + 1):
        raise ValueError(
            f"{name}: axes is {axes}, but the shape is {values.shape}; set axes to the number of axes, not counting "
            "one for the channels"
        )
    if values.ndim == axes:
        values = values[..., None]
    if size is not None:
        values = _resized(values.astype(np.promote_types(values.dtype, np.float32)), size)
    return Grid(values, align=align)


def volume(source: Source, *, size: int | None = None, align: Align = "centers") -> Grid:
    """`array` with three coordinate axes."""
    return array(source, axes=3, size=size, align=align)


def write(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    *,
    medium: Medium | None = None,
    rate: float | None = None,
) -> None:
    """Write values with `write_image`, `write_audio` or `write_array`, by the suffix of the path.

    **Arguments:** those of the three functions; `medium` is for images only and `rate` for sounds only.

    !!! example
        ```python
        write("half.png", 0.5 * field.values, medium=field.medium)
        ```
    """
    _require_suffix(path, _WRITTEN_IMAGES + _WRITTEN_SOUNDS + _ARRAYS)
    suffix = Path(path).suffix.lower()
    if suffix in _WRITTEN_IMAGES:
        write_image(path, values, medium)
    elif suffix in _WRITTEN_SOUNDS:
        write_audio(path, values, rate)
    else:
        write_array(path, values)


def write_image(path: FilePath, values: Shaped[np.ndarray, "*shape channels"], medium: Medium | None = None) -> None:
    """Write an image with 8 bits per channel, as PNG, JPEG, WebP or TIFF by the suffix of the path.

    **Arguments:**

    - `path`: where to.
    - `values`: floats of shape `(height, width, channels)` with 1 or 3 channels; what lies outside [0, 1] is clipped.
    - `medium`: `"lab"` is converted to RGB; anything else is written as it is.

    !!! example
        ```python
        write_image("photo.png", image("photo.jpg", space="lab").values, "lab")
        ```
    """
    _require_suffix(path, _WRITTEN_IMAGES)
    if values.ndim != 3 or values.shape[-1] not in ((3,) if medium == "lab" else (1, 3)):
        raise ValueError(
            f"{path}: values has shape {values.shape} and medium is {medium!r}, but an image is (height, width, "
            "channels) with 3 channels, or 1 if it is gray; write the values as NPY"
        )
    _require_finite_floats(path, values, "floats in [0, 1]")
    if medium == "lab":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # clipped, as all the rest
            values = color.lab2rgb(values)
    pixels = np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8)
    with atomic_path(path) as temporary:
        Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(temporary, quality=95)


def write_audio(path: FilePath, values: Shaped[np.ndarray, "*shape channels"], rate: float | None) -> None:
    """Write a sound with 16 bits per sample, as WAV or FLAC by the suffix of the path.

    **Arguments:**

    - `path`: where to.
    - `values`: floats of shape `(samples, channels)`; what lies outside [-1, 1] is clipped.
    - `rate`: samples per second, as `Grid.rate`; the file holds it as a whole number.

    !!! example
        ```python
        sound = audio("speech.flac")
        write_audio("speech.wav", sound.values, sound.rate)
        ```
    """
    _require_suffix(path, _WRITTEN_SOUNDS)
    if values.ndim != 2:
        raise ValueError(
            f"{path}: values has shape {values.shape}, but a sound is (samples, channels); write the values as NPY"
        )
    _require_finite_floats(path, values, "floats in [-1, 1]")
    if rate is None or not rate >= 1:
        raise ValueError(f"{path}: rate is {rate}; pass the samples per second, e.g. rate=44100")
    with atomic_path(path) as temporary:
        soundfile.write(temporary, np.clip(values, -1, 1), round(rate), subtype="PCM_16")


def write_array(path: FilePath, values: Shaped[np.ndarray, "..."]) -> None:
    """Write an array as NPY, in its own type.

    !!! example
        ```python
        write_array("values.npy", field.values)
        ```
    """
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, values, allow_pickle=False)


@contextlib.contextmanager
def atomic_path(path: FilePath) -> Iterator[Path]:
    """A temporary path to write to, which takes the name `path` at the end of the block.

    It lies in the same directory and has the same suffix. If the block fails, or the disk is full, the temporary file
    is removed. What was at `path` before is untouched until the new file is whole, even if the process is killed.

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
    temporary = path.with_name(f".uniphase-{secrets.token_hex(8)}{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _require_suffix(path: FilePath, known: tuple[str, ...]) -> None:
    suffix = Path(path).suffix
    if suffix.lower() not in known:
        raise ValueError(f"{path}: the suffix is {suffix!r}; use one of {' '.join(known)}")


def _require_finite_floats(path: FilePath, values: np.ndarray, wanted: str) -> None:
    if values.dtype.kind != "f":
        raise ValueError(f"{path}: values has dtype {values.dtype}; pass {wanted}, or write the values as NPY")
    bad = values.size - np.count_nonzero(np.isfinite(values))
    if bad:
        raise ValueError(
            f"{path}: values has {bad} NaN or infinite entries of {values.size}; replace them (np.nan_to_num), or "
            "write the values as NPY"
        )


def _values(source: Source, read_file: Callable[[str], np.ndarray]) -> tuple[str, np.ndarray]:
    """The values of a file or an array, with a name for messages about them."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return path, read_file(path)
    return "source", np.asanyarray(source)


@contextlib.contextmanager
def reading(path: FilePath, kind: str, fix: str) -> Iterator[None]:
    """Whatever goes wrong within is raised as one line: the path, what the file is not, why, and the fix."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file")
    if os.path.isdir(path):
        raise ValueError(f"{path}: a directory, not {kind}; pass the path of a file")
    if os.path.getsize(path) == 0:
        raise ValueError(f"{path}: an empty file, not {kind}; {fix}")
    try:
        yield
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise ValueError(f"{path}: {error} If you trust the file, save it as NPY") from error
    except Exception as error:  # decoders raise almost anything on a damaged file
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: cannot be read as {kind} ({reason}); {fix}") from error


def _image_file(path: str, dropped: list[str]) -> np.ndarray:
    with reading(path, "an image", "get a whole copy, or convert it to a gray or RGB PNG or TIFF"):
        return decode(path, dropped)


def _as_channels(name: str, values: np.ndarray) -> np.ndarray:
    values = values[..., None] if values.ndim == 2 else values
    if values.ndim != 3 or not 1 <= values.shape[-1] <= 4:
        raise ValueError(
            f"{name}: the shape is {values.shape}, but an image is (height, width) or (height, width, channels) with "
            "at most 4 channels; read it with array"
        )
    if values.dtype.kind not in "biuf" or (values.dtype.kind in "iu" and values.dtype.itemsize == 8):
        raise ValueError(f"{name}: the dtype is {values.dtype}, which is not one of pixels; make it uint8 or float32")
    return util.img_as_ubyte(values) if values.dtype == bool else values


def _opaque(alpha: np.ndarray) -> bool:
    return bool((alpha >= (1.0 if alpha.dtype.kind == "f" else np.iinfo(alpha.dtype).max)).all())


def _in_space(values: np.ndarray, space: Space | None) -> np.ndarray:
    if space == "gray" and values.shape[-1] == 3:
        return color.rgb2gray(values)[..., None]
    if space in ("rgb", "lab") and values.shape[-1] == 1:
        values = np.repeat(values, 3, axis=-1)
    return color.rgb2lab(values) if space == "lab" else values


def _audio_file(path: str, rates: list[float]) -> np.ndarray:
    """The samples, as floats. Their number per second is added to `rates`."""
    with reading(path, "a sound", "get a whole copy, or convert it to WAV or FLAC"):
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


def _array_file(path: str) -> np.ndarray:
    with reading(path, "an NPY array", "save an array of real numbers with numpy.save"):
        values = np.lib.format.open_memmap(path, mode="r")
        if values.dtype.kind not in "biuf":
            raise ValueError(f"its dtype is {values.dtype}")
    return values


def _resized(values: np.ndarray, size: int) -> np.ndarray:
    if size < 2:
        raise ValueError(f"size is {size}; it must be at least 2")
    old = values.shape[:-1]
    new = tuple(round(n * size / max(old)) for n in old)
    if min(new) < 2:
        raise ValueError(f"size is {size}, which makes {old} samples {new}; pass a size that leaves 2 along each axis")
    return np.asarray(transform.resize(values, new, anti_aliasing=True))
