"""Scans: NIfTI files, as a `Grid` in millimetres."""

import logging
import math
import os
from typing import Any

import numpy as np

from .fields import Align, Extent, Grid
from .images import read_mask
from .paths import FilePath, reading
from .pixels import log_handlers
from .sources import Extents, Source, cells_or_points, masked, require_package, resized

SCANS = (".nii", ".nii.gz")

_MILLIMETRES = {"unknown": 1.0, "mm": 1.0, "meter": 1e3, "micron": 1e-3}
_SECONDS = {"unknown": 1.0, "sec": 1.0, "msec": 1e-3, "usec": 1e-6}
# How much smaller gzip can make a file, at the very most.
_COMPRESSION = 1032
_FIX = "get a whole copy, or save its array with numpy.save"


def scan(
    source: FilePath,
    *,
    size: int | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
    mask: Source | None = None,
) -> Grid:
    """A NIfTI file as a grid over the axes of its array, in millimetres. It needs the extra `scans`.

    The values have the scaling of the file applied, and a voxel is an average over its box. A fourth axis is time, in
    seconds, and a fifth holds the channels. Axes with a single sample are dropped. Without a scaling and compression,
    the values stay on the disk, memory-mapped.

    **Arguments:**

    - `source`: the path of a `.nii` or `.nii.gz` file.
    - `size`: samples along the longest axis after anti-aliased resizing, which loads the array. Default: as stored.
    - `align`: as for `Grid`.
    - `extents`: as for `Grid`. Default: the size of a voxel times the number of voxels along each axis, centred at 0;
        time starts at 0. The position and the orientation of the patient are not used.
    - `mask`: as for `array`, of the shape of the grid.

    !!! example
        ```python
        brain = scan("brain.nii.gz")
        brain.extents  # ((-8.0, 8.0), (-8.0, 8.0), (-9.0, 9.0))
        ```
    """
    path = os.fspath(source)
    nibabel = require_package("nibabel", "scans", path)
    with reading(path, "a NIfTI file", _FIX):
        values, header = _values(nibabel, path)
    kept = [axis for axis, n in enumerate(values.shape[:-1]) if n > 1]
    if extents is None:
        steps = _steps(path, header, values.ndim - 1)
        extents = [_extent(axis, values.shape[axis], steps[axis], align) for axis in kept]
    values = values.reshape(*(values.shape[axis] for axis in kept), values.shape[-1])
    stored = values.dtype.name if header.get_data_dtype().kind == values.dtype.kind else None
    if mask is not None:
        values = masked(path, values, read_mask(mask))
    if size is not None:
        values = resized(values.astype(np.promote_types(values.dtype, np.float32)), size)
    return Grid(values, extents=extents, align=align, stored=stored, sampling=cells_or_points(align))


def _values(nibabel: Any, path: str) -> tuple[np.ndarray, Any]:
    """The array with the channels in the last of its axes, and the header as it is in the file."""
    # What is wrong with a header would go to the terminal, by nibabel's handler or, without that, by Python's own.
    quiet = {nibabel.imageglobals.logger.name: logging.NullHandler()}
    with nibabel.imageglobals.LoggingOutputSuppressor(), log_handlers(quiet):
        image = nibabel.load(path, mmap="r")
    with nibabel.openers.ImageOpener(path) as stream:  # `load` replaces voxel sizes of 0 by 1
        header = type(image.header).from_fileobj(stream, check=False)
    kind = header.get_data_dtype()
    if kind.kind not in "biuf":
        raise ValueError(f"its values are {'colours' if kind.fields else kind}, not real numbers")
    _require_bytes(path, kind.itemsize * math.prod(map(int, image.shape)))
    values = np.asanyarray(image.dataobj)
    if values.dtype == np.float64 and kind != np.float64:  # scaled
        values = values.astype(np.float32)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.ndim > 5:
        raise ValueError(f"its shape is {values.shape}, of more than 5 axes")
    return (values if values.ndim == 5 else values[..., None]), header


def _require_bytes(path: str, declared: int) -> None:
    """Raise an error if the file is too small for what its header declares, which would be set aside in memory."""
    most = os.path.getsize(path) * (_COMPRESSION if path.lower().endswith(".gz") else 1)
    if declared > most:
        raise ValueError(f"its header declares {declared:,} bytes, which it cannot hold")


def _steps(path: str, header: Any, axes: int) -> np.ndarray:
    """The distance between samples along each axis, in millimetres and seconds."""
    steps = np.asarray(header["pixdim"][1 : axes + 1], np.float64)
    if header["sform_code"] > 0:
        columns = np.stack([header[f"srow_{axis}"][:3] for axis in "xyz"]).astype(np.float64)
        steps[:3] = np.linalg.norm(columns, axis=0)[:axes]
    try:
        space, time = header.get_xyzt_units()
    except KeyError:  # a code that means nothing
        space = time = "unknown"
    units = np.array([_MILLIMETRES.get(space, 1.0)] * 3 + [_SECONDS.get(time, 1.0)])[:axes]
    long = np.array(header["dim"][1 : axes + 1]) > 1
    if not (np.isfinite(steps) & (steps > 0))[long].all():
        sizes = ", ".join(f"{step:g}" for step in steps)
        raise ValueError(
            f"{path}: it has no valid voxel sizes ({sizes}); correct pixdim in its header, or pass extents, or save "
            "its array with numpy.save"
        )
    return steps * units


def _extent(axis: int, n: int, step: float, align: Align) -> Extent:
    length = step * (n if align == "centers" else n - 1)
    return (0.0, length) if axis == 3 else (-length / 2, length / 2)
