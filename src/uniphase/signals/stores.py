"""Stores: files that hold several arrays by name, NPZ and Zarr."""

import contextlib
import itertools
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from .paths import explaining, reading
from .sources import require_package

STORES = (".npz", ".zarr")

# Numbers of a Zarr array that are in memory at once, or a chunk if that has more.
_BLOCK = 1 << 22


def open_store(path: str, name: str | None) -> Shaped[np.ndarray, "..."]:
    """An array of a store: the one of this name, or the only one.

    An array of an NPZ file is loaded. One of a Zarr store is copied block by block to a temporary file, which is
    memory-mapped, and removed when it is no longer used or the process ends: so it may be larger than memory, and needs
    as much space on the disk as it has uncompressed.
    """
    return _npz_array(path, name) if Path(path).suffix.lower() == ".npz" else _zarr_array(path, name)


def _npz_array(path: str, name: str | None) -> np.ndarray:
    kind, fix = "an NPZ file", "get a whole copy, or save arrays of real numbers with numpy.savez"
    with contextlib.ExitStack() as stack:
        with reading(path, kind, fix):
            file = np.load(stack.enter_context(open(path, "rb")), allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array, as in NPY")
        name = _chosen(path, name, file.files)
        with explaining(path, kind, fix):
            return _require_real(file[name])


def _zarr_array(path: str, name: str | None) -> np.ndarray:
    zarr = require_package("zarr", "zarr", path)
    kind, fix = "a Zarr array", "get a whole copy, with all files of the directory"
    if not os.path.isdir(path):
        raise ValueError(f"{path}: not a directory, which a Zarr array is; unpack it, or convert it to NPY")
    with explaining(path, kind, fix):
        store = zarr.open(path, mode="r")
        members = _zarr_members(store) if isinstance(store, zarr.Group) else None
    if members is not None:
        store = members[_chosen(path, name, list(members))]
    elif name is not None:
        raise ValueError(f"{path}: array is {name!r}, but the store is a single array; leave array out")
    with explaining(path, kind, fix):
        _require_real(store)
    _require_space(path, store)
    with explaining(path, kind, fix):
        return _on_disk(store)


def _zarr_members(group: Any) -> dict[str, Any]:
    """All arrays of a group, by their paths in it."""
    return {name: member for name, member in sorted(group.members(max_depth=None)) if hasattr(member, "chunks")}


def _chosen(path: str, name: str | None, names: Sequence[str]) -> str:
    if not names:
        raise ValueError(f"{path}: it holds no arrays; pass another file")
    if name is None and len(names) == 1:
        return names[0]
    if name is None or name not in names:
        lack = "it holds several arrays" if name is None else f"it holds no array {name!r}"
        raise ValueError(f"{path}: {lack}; choose one of {', '.join(names)} as array, e.g. --array {names[0]}")
    return name


def _require_real(array: Any) -> Any:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"its dtype is {array.dtype}, not one of real numbers")
    return array


def _require_space(path: str, array: Any) -> None:
    needed, free = array.dtype.itemsize * math.prod(array.shape), shutil.disk_usage(tempfile.gettempdir()).free
    if needed > free:
        raise OSError(
            f"{path}: its {needed / 1e9:.1f} GB are copied to {tempfile.gettempdir()}, which has {free / 1e9:.1f} GB "
            "left; name a directory with more in the environment variable TMPDIR"
        )


def _on_disk(array: Any) -> np.ndarray:
    """A copy in a temporary file, memory-mapped."""
    directory = tempfile.mkdtemp(prefix="uniphase-")
    try:
        path = os.path.join(directory, "array.npy")
        copy = np.lib.format.open_memmap(path, mode="w+", dtype=array.dtype.newbyteorder("="), shape=array.shape)
        for block in _blocks(array.shape, array.chunks):
            copy[block] = array[block]
        copy.flush()
        values = np.lib.format.open_memmap(path, mode="r")
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    weakref.finalize(values.base, shutil.rmtree, directory, ignore_errors=True)  # the map, which all views share
    return values


def _blocks(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Blocks of whole chunks, of about `_BLOCK` numbers, that cover an array; the last axes are filled first."""
    block = [min(chunk, n) for chunk, n in zip(chunks, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        chunk = block[axis]
        block[axis] = min(shape[axis], chunk * max(1, _BLOCK // max(1, math.prod(block))))
    starts = [range(0, n, step) for n, step in zip(shape, block, strict=True)]
    for corner in itertools.product(*starts):
        yield tuple(slice(low, low + step) for low, step in zip(corner, block, strict=True))
