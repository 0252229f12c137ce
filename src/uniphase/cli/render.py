"""`uniphase render`: from a network's file to a picture, a sound or an array."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from . import terminal
from .options import Force, NetworkPath, Output

if TYPE_CHECKING:
    import numpy as np

    from ..signals.fields import Align, Extent, Sampling
    from ..storage.network_file import Domain, NetworkFile

Derivative = Literal["gradient", "laplacian"]
_PICTURES = (".png", ".tif", ".tiff")
_VIDEOS = (".gif", ".mp4")


def render(
    file: NetworkPath,
    /,
    *,
    size: int | None = None,
    scale: float | None = None,
    region: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    derivative: Derivative | None = None,
    samples: Literal["points", "averages"] | None = None,
    fps: float | None = None,
    slow: float | None = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Write the picture, video, sound or array that a network represents, at any resolution.

    For example:

        uniphase render photo.uniphase --size 4096
        uniphase render photo.uniphase --region -1:0,0:1 --scale 8
        uniphase render photo.uniphase --region 0:100px,200:400px --scale 8
        uniphase render photo.uniphase --derivative gradient -o edges.png
        uniphase render clip.uniphase --slow 4 --fps 60 -o slow.mp4

    Parameters
    ----------
    size
        Samples along the longest axis, of a video along the longer side of a frame. Default: as many as the signal
        had; scattered points need one.
    scale
        Samples in proportion to those of the signal, e.g. 4.
    region
        What to show, as low:high for each axis: of an image down first, then to the right. The longer axis runs from
        -1 to 1, and `uniphase info` prints the range of each; in a square image, -1:0,0:1 is the upper right quarter.
        Time in a sound runs from -100 to 100, in a video from -1 to 1. Or in pixels of what was fitted (samples of a
        sound, frames), as low:highpx: 0:100px,200:400px are the upper 100 rows, and 200 columns. Outside of these
        ranges the network extrapolates.
    derivative
        Of the values by the coordinates. A picture shows the norm of the gradient from black to white, and the
        Laplacian around gray; NPY has the numbers.
    samples
        Values at points, or averages over the cells of the samples. Default: what a camera would see, which is averages
        where the cells are larger than those that were fitted, points where they are smaller, and otherwise what was
        fitted.
    fps
        Frames per second of a video, which lasts as long as the one that was fitted. Default: as fitted.
    slow
        How many times slower a video plays, e.g. 4 for slow motion, with as many more frames.
    output
        Where to write: .png, .tif, .mp4, .gif, .wav, .npy or .npz. Default: the name of the file with the region and
        the size added, in the current directory. A picture has the bits per channel of the image that was fitted, as
        far as the format holds them; that of scattered points has their first coordinate to the right and the second
        upwards.
    """
    written = render_file(
        file,
        size=size,
        scale=scale,
        region=region,
        derivative=derivative,
        samples=samples,
        fps=fps,
        slow=slow,
        output=output,
        force=force,
    )
    print(f"wrote {written.path}, {written.size}")


class Rendered(NamedTuple):
    """A file that `render_file` wrote, the number of samples along each axis, and the same in words."""

    path: Path
    shape: tuple[int, ...]
    size: str


def render_file(
    path: str,
    *,
    size: int | None = None,
    scale: float | None = None,
    region: str | None = None,
    derivative: Derivative | None = None,
    samples: "Sampling | None" = None,
    fps: float | None = None,
    slow: float | None = None,
    output: str | None = None,
    force: bool = False,
) -> Rendered:
    """Evaluate the network of a `.uniphase` file on a grid, and write the values as a picture, video, sound or array.

    In a picture of a derivative, white is the 99.5th percentile of its absolute values: the gradient of all channels
    together is gray, and the Laplacian of each channel lies around a medium gray.

    **Arguments:**

    - `path`: the file.
    - `size`, `scale`: samples along the longest axis, or in proportion to the field that was fitted. Default: as many
        as that had. Of a video these are the sides of a frame.
    - `region`: `low:high` for each axis, separated by commas, in the units of the extents, or `low:highpx` in samples
        of the fitted field. Default: the whole domain.
    - `derivative`: as for `render`.
    - `fps`, `slow`: of a video, the frames per second of the file, and how many times slower it plays.
    - `samples`: values at points, or averages over cells. Default: by `camera_nodes`.
    - `output`: where to write, with the suffix .png, .tif, .mp4, .gif, .wav, .npy or .npz. Default: a name with the
        region and the size in it, in the current directory.
    - `force`: whether an existing file may be replaced.

    !!! example
        ```python
        run(prepare("camera", Options(size=16, steps=20)))
        render_file("camera.uniphase", size=64, region="-1:0,-1:0").shape  # (64, 64)
        ```
    """
    from ..jax.files import load_network
    from ..jax.render import render_domain
    from .outputs import require_writable, writing

    content = load_network(path)
    domain = content.domain
    if domain.shape is None and size is None:
        raise ValueError(f"{path}: fitted to scattered points, which have no size; pass --size")
    whole = Region(domain.extents, _fitted_samples(domain, domain.extents))
    spans, fitted = whole if region is None else _parse_region(region, domain)
    if _is_video(content):
        rate, factor = _frame_rate(content, fps, slow)
        frames = _render_shape(fitted[:1], domain.align, None, factor)
        shape = (*frames, *_render_shape(fitted[1:], domain.align, size, scale))
    else:
        _require_no_video_options(path, fps=fps, slow=slow)
        shape = _render_shape(fitted, domain.align, size, scale)
        rate = None if content.rate is None else content.rate * shape[0] / fitted[0]
    target = Path(_default_name(path, content, shape, derivative, region) if output is None else output)
    _require_format(target, content, derivative, rate)
    require_writable([target], path, replace=force)
    average = None if samples is None else samples == "averages"
    values = render_domain(content.network, domain, shape, region=spans, derivative=derivative, average=average)
    with writing(target):
        _write(target, values, content, derivative, rate)
    return Rendered(target, shape, terminal.sized(shape, content.medium, rate))


def _is_video(content: "NetworkFile[Any]") -> bool:
    return content.rate is not None and len(content.domain.extents) == 3


def _frame_rate(content: "NetworkFile[Any]", fps: float | None, slow: float | None) -> tuple[float, float]:
    """The frames per second of a video that is rendered, and how many there are for each that was fitted."""
    for name, value in (("fps", fps), ("slow", slow)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value:g}; it must be positive")
    rate = content.rate if fps is None else fps
    assert rate is not None
    assert content.rate is not None
    return rate, (1.0 if slow is None else slow) * rate / content.rate


def _require_no_video_options(path: str, **options: float | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{path}: {name} is {value:g}, but the network is not that of a video; leave {name} out")


class Region(NamedTuple):
    """What is shown: the interval along each axis, and how many samples of the fitted field lie in it."""

    spans: "tuple[Extent, ...]"
    fitted: Sequence[float]


def _parse_region(text: str, domain: "Domain") -> Region:
    parts, axes = text.split(","), len(domain.extents)
    pixels = [part.endswith("px") for part in parts]
    if domain.shape is None and any(pixels):
        raise ValueError(f"region is {text!r}, but scattered points have no pixels; pass it in their coordinates")
    with contextlib.suppress(ValueError):
        spans = [_interval(part.removesuffix("px")) for part in parts]
        if len(spans) == axes:
            return _in_units(domain, spans, pixels)
    units, samples = (",".join([example] * axes) for example in ("-0.5:0.5", "0:100px"))
    raise ValueError(
        f"region is {text!r}; pass low:high for each of {axes} axes, low first, e.g. {units} or, in pixels, {samples}"
    )


def _interval(text: str) -> "Extent":
    low, high = map(float, text.split(":"))
    if not -math.inf < low < high < math.inf:
        raise ValueError("low is not below high")
    return low, high


def _in_units(domain: "Domain", spans: "Sequence[Extent]", pixels: Sequence[bool]) -> Region:
    """A region in the units of the extents, from one that is given in samples along some of the axes."""
    if domain.shape is None:
        return Region(tuple(spans), _fitted_samples(domain, spans))
    found, corners = list(spans), domain.align == "corners"
    for i, (first, last) in enumerate(spans):
        if pixels[i]:
            low, high = domain.extents[i]
            step = (high - low) / (domain.shape[i] - corners)
            # From the first sample to the last if these lie at the corners, otherwise from border to border.
            found[i] = low + first * step, low + (last - corners) * step
    fitted = list(_fitted_samples(domain, found))
    for i, (first, last) in enumerate(spans):
        fitted[i] = last - first if pixels[i] else fitted[i]
    return Region(tuple(found), fitted)


def _fitted_samples(domain: "Domain", spans: "Sequence[Extent]") -> Sequence[float]:
    """How many samples of the fitted field lie within the spans; of scattered points, one for each unit of length."""
    return [high - low for low, high in spans] if domain.shape is None else domain.samples_within(spans)


def _render_shape(fitted: Sequence[float], align: "Align", size: int | None, scale: float | None) -> tuple[int, ...]:
    if size is not None and scale is not None:
        raise ValueError(f"size is {size} and scale is {scale}; pass one of them")
    for name, value in (("size", size), ("scale", scale)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; it must be positive")
    factor = (1.0 if scale is None else scale) if size is None else size / max(fitted)
    return tuple(max(2 if align == "corners" else 1, round(n * factor)) for n in fitted)


def _default_name(
    path: str, content: "NetworkFile[Any]", shape: tuple[int, ...], derivative: Derivative | None, region: str | None
) -> str:
    from ..signals.pixels import holds

    name = Path(path).stem
    if region is not None:  # in characters that every system takes
        name += "-" + region.replace(" ", "").replace(":", "to").replace(",", "_")
    suffix = {"sound": ".wav", None: ".npy"}.get(content.medium, ".png")
    if _is_video(content):
        suffix = ".mp4"
    elif suffix == ".png" and (len(shape) != 2 or not holds(".png", content.stored or "uint8")):
        suffix = ".tif"
    if derivative is not None:
        name, suffix = f"{name}-{derivative}", {".wav": ".npy", ".tif": ".npy", ".mp4": ".npy"}.get(suffix, suffix)
    as_seen = (suffix in _PICTURES and len(shape) == 2) or suffix in _VIDEOS
    size = "x".join(map(str, reversed(shape) if as_seen else shape))
    return f"{name}-{size}{suffix}"


def _require_format(path: Path, content: "NetworkFile[Any]", derivative: Derivative | None, rate: float | None) -> None:
    from ..signals.videos import require_rate

    suffix, axes, channels = path.suffix.lower(), len(content.domain.extents), content.blueprint.out_size
    if suffix not in (*_PICTURES, *_VIDEOS, ".wav", ".npy", ".npz"):
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, .tif, .mp4, .gif, .wav, .npy or .npz")
    if suffix in _VIDEOS:
        if not _is_video(content) or derivative is not None:
            what = f"the {derivative}" if derivative else "the field"
            raise ValueError(f"{path}: {what} is not a video; write {'.png or .npy' if axes == 2 else '.npy'}")
        require_rate(path, rate)
    if suffix in _PICTURES and axes not in ((2, 3) if suffix != ".png" and derivative is None else (2,)):
        raise ValueError(f"{path}: a picture has 2 axes, but the network has {axes}; write .npy")
    if suffix in _PICTURES and derivative != "gradient" and channels not in (1, 3):
        raise ValueError(f"{path}: a picture has 1 or 3 channels, but the network has {channels}; write .npy")
    if suffix == ".wav" and (content.medium != "sound" or derivative is not None):
        what = f"the {derivative}" if derivative else "the field"
        raise ValueError(f"{path}: {what} is not a sound; write {'.png or .npy' if axes == 2 else '.npy'}")


def _write(
    path: Path, values: "np.ndarray", content: "NetworkFile[Any]", derivative: Derivative | None, rate: float | None
) -> None:
    from ..signals import files

    known: dict[str, Any] = {}
    if derivative is None:
        known = {"medium": content.medium, "stored": content.stored, "value_range": content.value_range, "rate": rate}
    elif path.suffix.lower() in _PICTURES:
        values = _derivative_picture(values, derivative)
    if content.domain.shape is None and path.suffix.lower() in _PICTURES:
        values = values.swapaxes(0, 1)[::-1]  # as a map: the first coordinate to the right, the second upwards
    files.write(path, values, **known)


def _derivative_picture(values: "np.ndarray", derivative: Derivative) -> "np.ndarray":
    import numpy as np

    if derivative == "gradient":
        values = np.linalg.norm(values, axis=(-2, -1))[..., None]
        return values / (np.percentile(values, 99.5) or 1.0)
    return 0.5 + 0.5 * values / (np.percentile(np.abs(values), 99.5) or 1.0)
