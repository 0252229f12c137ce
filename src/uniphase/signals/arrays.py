"""Arrays: NPY, NPZ and Zarr files and NumPy arrays with any number of axes, as a `Grid`."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from .fields import Align, Grid, Medium
from .images import image, read_mask
from .paths import FilePath, atomic_path, reading
from .pixels import TIFFS
from .scans import SCANS, scan
from .sources import Extents, Source, as_type, cells_or_points, given_or_square, masked, resized, values_of
from .stores import STORES, open_store

ARRAYS = (".npy",)
WRITTEN_ARRAYS = (".npy", ".npz")


def array(
    source: Source,
    *,
    array: str | None = None,
    axes: int | None = None,
    size: int | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
    mask: Source | None = None,
) -> Grid:
    """An array as a grid. Its numbers and their type are kept, and a file stays on the disk, memory-mapped.

    **Arguments:**

    - `source`: the path of an NPY or NPZ file or of a Zarr directory, or an array. Zarr needs the extra `zarr`, and is
        copied to a temporary file on the disk, in bounded memory.
    - `array`: the name of the array in an NPZ or Zarr file that holds several; in nested groups of Zarr, its path.
    - `axes`: the number of coordinate axes; an array with one axis more holds its channels in the last. Default: the
        last axis is the channels if there are at least two axes and it has at most 4 entries, otherwise there is a
        single channel.
    - `size`: samples along the longest axis after anti-aliased resizing, which loads the array and turns integers
        into floats, unscaled. Default: as stored.
    - `align`: as for `Grid`.
    - `extents`: as for `Grid`. Default: equal spacing along all axes, by `square_extents` of the array as stored.
    - `mask`: an array or an image of the same shape, true or white where samples are missing. They become NaN, as those
        that are NaN already, and are neither fitted nor counted.

    !!! example
        ```python
        array(np.zeros((64, 64, 3))).in_size  # 2
        array(np.zeros((64, 64, 3)), axes=3).in_size  # 3
        array(np.zeros((64, 256))).extents  # ((-0.25, 0.25), (-1.0, 1.0))
        ```
    """
    name, values = values_of(source, lambda path: _array_file(path, array))
    if axes is None:
        axes = values.ndim - 1 if values.ndim >= 2 and values.shape[-1] <= 4 else values.ndim
    if axes < 1 or values.ndim not in (axes, axes + 1):
        raise ValueError(
            f"{name}: axes is {axes}, but the shape is {values.shape}; set axes to the number of axes, not counting "
            "one for the channels"
        )
    if values.ndim == axes:
        values = values[..., None]
    shape, kind = values.shape[:-1], values.dtype
    if mask is not None:
        values = masked(name, values, read_mask(mask))
    if size is not None:
        values = resized(values.astype(np.promote_types(kind, np.float32)), size)
    return Grid(values, extents=given_or_square(extents, shape, align), align=align, stored=kind.name)


def volume(
    source: Source,
    *,
    size: int | None = None,
    align: Align = "centers",
    extents: Extents | None = None,
    mask: Source | None = None,
) -> Grid:
    """A grid with three coordinate axes: an array, as by `array`, a NIfTI file, as by `scan`, or a TIFF stack.

    A voxel is an average over its box, which the grid's `sampling` says, unless samples are aligned to corners.

    **Arguments:**

    - `source`: the path of an NPY, NPZ, Zarr or NIfTI file or of a TIFF with several pages, or an array.
    - `size`, `align`, `extents`, `mask`: as for `array`.

    !!! example
        ```python
        volume(np.zeros((16, 32, 32))).extents  # ((-0.5, 0.5), (-1.0, 1.0), (-1.0, 1.0))
        ```
    """
    read = _volume_reader(source) if isinstance(source, str | os.PathLike) else None
    if read is not None:
        grid = read(source, size=size, align=align, extents=extents, mask=mask)
        if grid.in_size != 3:
            raise ValueError(f"{source}: the shape is {grid.shape}, not that of a volume; read it with load")
        return grid
    grid = array(source, axes=3, size=size, align=align, extents=extents, mask=mask)
    return replace(grid, sampling=cells_or_points(align))


def write_array(
    path: FilePath, values: Shaped[np.ndarray, "..."], *, medium: Medium | None = None, stored: str | None = None
) -> None:
    """Write an array as NPY, or as the array `values` of an NPZ file.

    **Arguments:**

    - `path`: where to.
    - `values`: the array.
    - `medium`, `stored`: of the `Grid` that the values are like. Those of an array (whose medium is `None`) are written
        in the type `stored`, integers rounded and clipped to its range; those of an image or a sound, which are scaled
        as the grid has them, in their own type.

    !!! example
        ```python
        write_array("values.npy", field.values)
        ```
    """
    if medium is None and stored is not None:
        values = as_type(values, stored)
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        if temporary.suffix.lower() == ".npz":
            np.savez(stream, values=values)
        else:
            np.save(stream, values, allow_pickle=False)


def _volume_reader(path: FilePath) -> Callable[..., Grid] | None:
    """The function that reads a volume from a file, if that is not `array`."""
    if Path(path).suffix.lower() in TIFFS:
        return image
    return scan if os.fspath(path).lower().endswith(SCANS) else None


def _array_file(path: str, array: str | None) -> np.ndarray:
    if Path(path).suffix.lower() in STORES:
        return open_store(path, array)
    if array is not None:
        raise ValueError(f"{path}: array is {array!r}, but the file is a single array; leave array out")
    with reading(path, "an NPY array", "save an array of real numbers with numpy.save"):
        values = np.lib.format.open_memmap(path, mode="r")
        if values.dtype.kind not in "biuf":
            raise ValueError(f"its dtype is {values.dtype}")
    return values
