"""Videos: MP4 and other containers by PyAV, and GIF animations by Pillow, as a `Grid` over time, row and column."""

import contextlib
import itertools
import math
import os
import warnings
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped, UInt8
from PIL import Image
from skimage import util

from .containers import declared_seconds, open_container, plain_errors, require_all
from .fields import Align, Extent, Grid, Medium, square_extents
from .images import Space, as_pixels, in_space
from .paths import FilePath, atomic_path, reading
from .pixels import open_image
from .sources import Extents, Source, cells_or_points, require_finite_floats, require_package, require_suffix

GIFS = (".gif",)
VIDEOS = (".avi", ".m4v", ".mkv", ".mov", ".mp4", ".webm")
WRITTEN_VIDEOS = (".gif", ".mp4")

# Browsers play a GIF whose frames last less than 2 hundredths of a second at a tenth of its speed.
_GIF_RATE = 50


def video(
    source: Source,
    *,
    size: int | None = None,
    space: Space | None = None,
    rate: int | float | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
) -> Grid:
    """A video as a grid of float32 values in [0, 1] with 1 or 3 channels, over the axes time, row and column.

    The frames per second are its `rate`, which tells a video from a volume. Frames are taken as evenly spaced in time;
    if they are not, a warning says so. Colours come at 8 bits. Frames that a camera marked as turned are turned
    upright. Sound and alpha are dropped with a warning: `audio` reads the sound.

    The frames are decoded one by one into a single array, which takes 4 bytes for every value.

    **Arguments:**

    - `source`: the path of an MP4, MOV, MKV, WebM or AVI file, which needs the extra `video`, or of a GIF; or an array
        of bytes of shape `(frames, height, width)` or `(frames, height, width, channels)`.
    - `size`: samples along the longer side of a frame after anti-aliased resizing; the number of frames stays. Default:
        as stored.
    - `space`: `"gray"`, `"rgb"` or `"lab"`, as for `image`. Default: gray or RGB, as stored.
    - `rate`: frames per second, for an array only.
    - `align`: as for `Grid`.
    - `extents`: as for `Grid`. Default: (-1, 1) in time for any duration, and square pixels by `square_extents`
        of a frame. A uniform-phase network does not depend on this choice.

    !!! example
        ```python
        clip = video("clip.mp4", size=16)
        clip.shape  # (8, 12, 16)
        clip.rate  # 10.0
        clip.extents  # ((-1.0, 1.0), (-0.75, 0.75), (-1.0, 1.0))
        ```
    """
    if space not in (None, "gray", "rgb", "lab"):
        raise ValueError(f"space is {space!r}; it must be 'gray', 'rgb' or 'lab'")
    if size is not None and size < 2:
        raise ValueError(f"size is {size}; it must be at least 2")
    notes: list[str] = []
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if rate is not None:
            raise ValueError(f"{name}: rate is {rate:g}, but a file has its own; leave rate out")
        values, shape, rate = _video_file(name, size, space, notes)
    else:
        rate = None if rate is None else float(rate)
        name, frames = "source", _array_frames(np.asanyarray(source), rate)
        values, shape = _filled(_empty(name, len(frames), frames[0], size, space), frames, space), frames.shape[1:3]
    for note in dict.fromkeys(notes):
        warnings.warn(f"{name}: {note}", stacklevel=2)
    return Grid(
        values,
        extents=((-1.0, 1.0), *square_extents(shape, align)) if extents is None else extents,
        align=align,
        medium=space or ("gray" if values.shape[-1] == 1 else "rgb"),
        rate=rate,
        value_range=None if space == "lab" else (0.0, 1.0),
        stored="uint8",
        sampling=cells_or_points(align),
    )


def video_shape(path: FilePath) -> tuple[int, int, int]:
    """The frames, the height and the width of a video as stored, from its first frame and the number of its packets."""
    path = os.fspath(path)
    with reading(path, "a video", _FIX), _opened(path, []) as clip:
        for first in clip.frames:
            return clip.at_most, *first.shape[:2]
        raise ValueError("it holds no frames")


def frames_in_gif(path: FilePath) -> int:
    """The number of frames of a GIF."""
    with reading(path, "a GIF", _FIX), open_image(os.fspath(path)) as file:
        return getattr(file, "n_frames", 1)


def write_video(
    path: FilePath,
    values: Shaped[np.ndarray, "*shape channels"],
    rate: float | None,
    *,
    medium: Medium | None = None,
    value_range: Extent = (0.0, 1.0),
) -> None:
    """Write a video, without sound, as MP4 or GIF by the suffix of the path.

    MP4 is H.264, or MPEG-4 where PyAV comes without an encoder for it. Both have even sizes: a last row or column is
    repeated where it takes one, with a warning. A GIF has 256 colours in each frame, and at most 50 frames per second;
    frames that are equal become one that lasts longer.

    **Arguments:**

    - `path`: where to. MP4 needs the extra `video`.
    - `values`: floats of shape `(frames, height, width, channels)` with 1 or 3 channels.
    - `rate`: frames per second, as `Grid.rate`.
    - `medium`: `"lab"` is converted to RGB; any other is written as it is.
    - `value_range`: what becomes black and white; what lies outside is clipped.

    !!! example
        ```python
        clip = video("clip.mp4")
        write_video("half-speed.gif", clip.values, clip.rate / 2)
        ```
    """
    require_suffix(path, WRITTEN_VIDEOS)
    if values.ndim != 4 or values.shape[-1] not in ((3,) if medium == "lab" else (1, 3)) or values.size == 0:
        raise ValueError(
            f"{path}: values has shape {values.shape} and medium is {medium!r}, but a video is (frames, height, width, "
            "channels) with 3 channels, or 1 if it is gray; write the values as NPY"
        )
    require_finite_floats(path, values, "floats in [0, 1]")
    require_rate(path, rate)
    assert rate is not None
    frames = (as_pixels(frame, medium, value_range) for frame in values)
    (_write_gif if Path(path).suffix.lower() in GIFS else _write_mp4)(path, frames, rate)


def require_rate(path: FilePath, rate: float | None) -> None:
    """Raise an error if a video cannot be written to this path at this frame rate."""
    if rate is None or not 0 < rate < math.inf:
        raise ValueError(f"{path}: rate is {rate}; pass the frames per second, e.g. rate=25")
    if Path(path).suffix.lower() not in GIFS:
        require_package("av", "video", path)
    elif rate > _GIF_RATE:
        raise ValueError(f"{path}: {rate:g} frames per second, but a GIF has at most {_GIF_RATE}; take fewer, or MP4")


class _Clip(NamedTuple):
    """What a file holds: its frames as bytes of shape (height, width, channels), at most how many, and how fast."""

    frames: Iterable[np.ndarray]
    at_most: int
    rate: float


_FIX = "get a whole copy, or convert it to MP4 or GIF"


def _video_file(
    path: str, size: int | None, space: Space | None, notes: list[str]
) -> tuple[np.ndarray, tuple[int, int], float]:
    """The values of a file, the height and the width of its frames before they were resized, and its rate."""
    if Path(path).suffix.lower() not in GIFS:
        require_package("av", "video", path)
    with contextlib.ExitStack() as stack:
        with reading(path, "a video", _FIX):
            clip = stack.enter_context(_opened(path, notes))
            frames = iter(clip.frames)
            first = next(frames, None)
            if first is None:
                raise ValueError("it holds no frames")
        values = _empty(path, clip.at_most, first, size, space)
        with reading(path, "a video", _FIX):
            return _filled(values, itertools.chain([first], frames), space), first.shape[:2], clip.rate


def _empty(
    name: str, count: int, first: UInt8[np.ndarray, "height width channels"], size: int | None, space: Space | None
) -> Float32[np.ndarray, "frames new_height new_width new_channels"]:
    """Space for all frames of a video, by the first of them."""
    height, width, channels = first.shape
    scale = 1.0 if size is None else size / max(height, width)
    shape = (count, round(height * scale), round(width * scale), {None: channels, "gray": 1}.get(space, 3))
    if min(shape[1:3]) < 2:
        raise ValueError(f"{name}: size is {size}, which makes its frames {shape[2]} × {shape[1]}; pass a larger one")
    needed, there = 4 * math.prod(shape), _memory()
    if there is not None and needed > there:
        raise ValueError(
            f"{name}: {count} frames of {shape[2]} × {shape[1]} take {needed / 1e9:.1f} GB, but this machine has "
            f"{there / 1e9:.1f} GB; pass a smaller size, or a part of the video"
        )
    return np.empty(shape, np.float32)


def _filled(values: np.ndarray, frames: Iterable[np.ndarray], space: Space | None) -> np.ndarray:
    """The frames, resized and in a colour space, in `values`, or in a larger array if there are more."""
    count, stored = 0, None
    for frame in frames:
        stored = frame.shape if stored is None else stored
        if frame.shape != stored:
            raise ValueError(f"its frames differ in size: {stored} and {frame.shape}")
        if count == len(values):  # a packet may hold several frames
            values = np.concatenate([values, np.empty_like(values)])
        values[count] = in_space(util.img_as_float32(_resized(frame, *values.shape[1:3])), space)
        count += 1
    if count < 2:
        raise ValueError("it holds a single frame, which is an image")
    return values[:count]


def _resized(frame: UInt8[np.ndarray, "height width channels"], height: int, width: int) -> np.ndarray:
    if frame.shape[:2] == (height, width):
        return frame
    picture = Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame)
    return np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS)).reshape(height, width, -1)


def _memory() -> int | None:
    """The bytes of memory of this machine, where the system tells."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _array_frames(values: np.ndarray, rate: float | None) -> np.ndarray:
    values = values[..., None] if values.ndim == 3 else values
    if values.ndim != 4 or values.shape[-1] not in (1, 3) or values.dtype != np.uint8 or len(values) < 2:
        raise ValueError(
            f"source: the shape is {values.shape} and the dtype is {values.dtype}, but a video is (frames, height, "
            "width) or (frames, height, width, 3) of uint8 with at least 2 frames; for other values make a Grid"
        )
    if rate is None or not 0 < rate < math.inf:
        raise ValueError(f"source: rate is {rate}; pass the frames per second, e.g. rate=25")
    return values


def _opened(path: str, notes: list[str]) -> contextlib.AbstractContextManager[_Clip]:
    """A file for decoding. What the caller should warn of is added to `notes`."""
    return (_gif_clip if Path(path).suffix.lower() in GIFS else _container_clip)(path, notes)


@contextlib.contextmanager
def _gif_clip(path: str, notes: list[str]) -> Iterator[_Clip]:
    with open_image(path) as file:
        count = getattr(file, "n_frames", 1)
        seconds = []
        for k in range(count):
            file.seek(k)
            seconds.append(file.info.get("duration", 0) / 1000)
        # The last frame of many animations lasts longer; a frame without a duration is shown for a tenth of a second.
        rate = (count - 1 or 1) / (sum(seconds[:-1]) or 0.1 * (count - 1 or 1))
        if max(seconds[:-1], default=0) - min(seconds[:-1], default=0) > 0.015:  # durations are rounded to 0.01
            notes.append("its frames last differently long, and are taken as evenly spaced in time")
        yield _Clip(_gif_frames(file, count, notes), count, rate)


def _gif_frames(file: Image.Image, count: int, notes: list[str]) -> Iterator[np.ndarray]:
    for k in range(count):
        file.seek(k)
        frame = np.asarray(file.convert("RGBA"))
        if frame[..., 3].min() < 255:
            notes.append("dropped its alpha channel")
        yield frame[..., :3]


@contextlib.contextmanager
def _container_clip(path: str, notes: list[str]) -> Iterator[_Clip]:
    with open_container(path) as container:
        stream = _video_stream(container)
        count = sum(1 for packet in container.demux(stream) if packet.size)
    if count == 0:
        raise ValueError("it holds no frames")
    with open_container(path) as container:
        stream = _video_stream(container)
        stream.thread_type = "AUTO"
        if container.streams.audio:
            notes.append("dropped its sound")
        rate = float(stream.average_rate or stream.guessed_rate or 0)
        if not rate > 0:
            raise ValueError("its frame rate is not known")
        yield _Clip(_container_frames(container, stream, rate, notes), count, rate)


def _video_stream(container: Any) -> Any:
    if not container.streams.video:
        raise ValueError("it holds no video")
    return container.streams.video[0]


def _container_frames(container: Any, stream: Any, rate: float, notes: list[str]) -> Iterator[np.ndarray]:
    layout = stream.codec_context.format
    alpha = layout is not None and any(part.is_alpha for part in layout.components)
    gray = stream.codec_context.pix_fmt.startswith("gray")
    times = []
    with plain_errors():
        for frame in container.decode(stream):
            times.append(frame.time)
            pixels = frame.to_ndarray(format="rgba" if alpha else "gray" if gray else "rgb24")
            if alpha and pixels[..., 3].min() < 255:
                notes.append("dropped its alpha channel")
            pixels = pixels[..., None] if gray and not alpha else pixels[..., :3]
            yield np.rot90(pixels, round(frame.rotation / 90))  # both count counterclockwise
    if None in times or len(times) < 2:
        return
    times.sort()  # AVI gives them in the order in which frames were coded
    require_all(times[-1] - times[0] + 1 / rate, declared_seconds(container, stream), 2 / rate)
    if np.abs(np.diff(times) * rate - 1).max() > 0.75:
        notes.append("its frames last differently long, and are taken as evenly spaced in time")


def _write_gif(path: FilePath, frames: Iterable[np.ndarray], rate: float) -> None:
    pictures = [Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame).quantize() for frame in frames]
    # Durations are whole hundredths of a second, whose rounding must not add up.
    ends = [round(100 * (k + 1) / rate) for k in range(len(pictures))]
    durations = [10 * (end - start) for start, end in itertools.pairwise([0, *ends])]
    with atomic_path(path) as temporary:
        pictures[0].save(temporary, save_all=True, append_images=pictures[1:], duration=durations, loop=0)


def _write_mp4(path: FilePath, frames: Iterable[np.ndarray], rate: float) -> None:
    av = require_package("av", "video", path)
    codec, options = (
        ("libx264", {"crf": "16"}) if "libx264" in av.codecs_available else ("mpeg4", {"qmin": "1", "qmax": "2"})
    )
    with atomic_path(path) as temporary, open_container(temporary, "w") as container:
        stream = container.add_stream(codec, rate=Fraction(rate).limit_denominator(10_000), options=options)
        stream.pix_fmt = "yuv420p"
        # The matrix that PyAV converts by; players take another one for large frames if the file does not say.
        stream.codec_context.colorspace = av.video.reformatter.Colorspace.ITU601.value
        stream.codec_context.color_range = av.video.reformatter.ColorRange.MPEG.value
        for k, frame in enumerate(frames):
            even = np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")
            if k == 0:
                stream.height, stream.width = even.shape[:2]
                if even.shape != frame.shape:
                    size = f"{even.shape[1]} × {even.shape[0]}"
                    warnings.warn(f"{path}: its frames are {size}, as MP4 has even sizes", stacklevel=3)
            picture = av.VideoFrame.from_ndarray(np.repeat(even, 4 - even.shape[2], axis=2)[..., :3], format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
