import gc
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from uniphase.signals import stores
from uniphase.signals.arrays import array, volume
from uniphase.signals.files import read

zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(9, 7, 11)).astype(np.float32)


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch) -> Path:
    """The directory of temporary files, which is empty."""
    directory = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def write_zarr(path, values=VALUES, chunks=(4, 4, 4), **options):
    zarr.create_array(str(path), shape=values.shape, chunks=chunks, dtype=values.dtype, **options)[...] = values


def test_npz(tmp_path):
    np.savez(tmp_path / "one.npz", VALUES)
    np.savez_compressed(tmp_path / "two.npz", density=VALUES, mask=VALUES[0] > 0)
    np.testing.assert_array_equal(read(tmp_path / "one.npz").values[..., 0], VALUES)
    assert read(tmp_path / "two.npz", array="mask").stored == "bool"
    assert read(tmp_path / "two.npz", array="density", axes=2).values.shape == (9, 7, 11)
    assert volume(tmp_path / "one.npz", size=5).shape == (4, 3, 5)


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
@pytest.mark.parametrize("options", [{}, {"zarr_format": 2}, {"shards": (8, 8, 8)}])
def test_zarr_is_copied_to_the_disk_block_by_block(tmp_path, monkeypatch, scratch, block, options):
    write_zarr(tmp_path / "a.zarr", **options)
    monkeypatch.setattr(stores, "_BLOCK", block)
    grid = read(tmp_path / "a.zarr")
    assert isinstance(grid.values, np.memmap)
    np.testing.assert_array_equal(grid.values[..., 0], VALUES)
    assert len(list(scratch.iterdir())) == 1
    del grid
    gc.collect()
    assert list(scratch.iterdir()) == []  # it goes with the last view


def test_blocks_cover_an_array_once_and_are_small(monkeypatch):
    monkeypatch.setattr(stores, "_BLOCK", 100)
    counts = np.zeros((9, 7, 11), int)
    for block in stores._blocks((9, 7, 11), (4, 2, 4)):
        counts[block] += 1
        assert counts[block].size <= 100
    assert (counts == 1).all()
    assert len(list(stores._blocks((9, 7, 11), (9, 7, 11)))) == 1  # a chunk is never cut


def test_a_group_has_arrays_by_their_paths(tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("levels/0", shape=(4, 6), dtype=">i2")[...] = 7
    assert read(tmp_path / "a.zarr").shape == (4, 6)  # the only one
    group.create_array("levels/1", shape=(2, 6), dtype="f4")
    assert read(tmp_path / "a.zarr", array="levels/1").shape == (2, 6)
    values = read(tmp_path / "a.zarr", array="levels/0").values
    assert values.dtype.isnative
    assert (values == 7).all()
    with pytest.raises(
        ValueError, match=r"it holds several arrays; choose one of levels/0, levels/1 as array, e\.g\. --"
    ):
        read(tmp_path / "a.zarr")


def test_a_full_disk_is_noticed_before(tmp_path, monkeypatch, scratch):
    write_zarr(tmp_path / "a.zarr")
    monkeypatch.setattr(stores.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"a.zarr: its 0.0 GB are copied to .*scratch.*; name a directory .* TMPDIR$"):
        read(tmp_path / "a.zarr")
    assert list(scratch.iterdir()) == []


def _truncated_npz(path):
    np.savez(path, VALUES)
    path.write_bytes(path.read_bytes()[:500])


def _damaged_npz(path):
    np.savez_compressed(path, VALUES)
    content = bytearray(path.read_bytes())
    content[500:600] = bytes(100)
    path.write_bytes(content)


def _npy(path):
    with path.open("wb") as stream:
        np.save(stream, VALUES)


def _damaged_chunk(path):
    write_zarr(path)
    (path / "c" / "0" / "0" / "0").write_bytes(b"nonsense")


def _complex_zarr(path):
    write_zarr(path, VALUES + 1j)


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        (
            "a.npz",
            lambda path: np.savez(path, x=VALUES, y=VALUES),
            "it holds several arrays; choose one of x, y as arr",
        ),
        ("a.npz", lambda path: np.savez(path), "it holds no arrays; pass another file"),
        (
            "a.npz",
            lambda path: np.savez(path, VALUES + 1j),
            r"cannot be read as an NPZ file \(its dtype is complex64, n",
        ),
        ("a.npz", lambda path: np.savez(path, np.array([{}])), r"cannot be read as an NPZ file \(.*pickle"),
        ("a.npz", _npy, r"cannot be read as an NPZ file \(it is a single array, as in NPY\)"),
        ("a.npz", _truncated_npz, "cannot be read as an NPZ file .*; get a whole copy"),
        ("a.npz", _damaged_npz, "cannot be read as an NPZ file .*; get a whole copy"),
        ("a.npz", lambda path: path.write_text("no array" * 9), "cannot be read as an NPZ file"),
        ("a.zarr", lambda path: path.mkdir(), "cannot be read as a Zarr array .*; get a whole copy, with all files"),
        ("a.zarr", lambda path: path.write_text("text"), "not a directory, which a Zarr array is; unpack it"),
        ("a.zarr", _damaged_chunk, "cannot be read as a Zarr array"),
        (
            "a.zarr",
            _complex_zarr,
            r"cannot be read as a Zarr array \(its dtype is complex64, not one of real numbers\)",
        ),
    ],
)
def test_a_bad_store_is_reported_in_one_line(tmp_path, scratch, name, make, message):
    path = tmp_path / name
    make(path)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert list(scratch.iterdir()) == []


def test_a_name_that_is_not_there(tmp_path):
    np.savez(tmp_path / "a.npz", x=VALUES)
    write_zarr(tmp_path / "a.zarr")
    np.save(tmp_path / "a.npy", VALUES)
    for name, message in (
        ("a.npz", "it holds no array 'y'; choose one of x as array, e.g. --array x"),
        ("a.zarr", "array is 'y', but the store is a single array; leave array out"),
        ("a.npy", "array is 'y', but the file is a single array; leave array out"),
    ):
        with pytest.raises(ValueError, match=f"{name}: {message}"):
            array(tmp_path / name, array="y")
    with pytest.raises(
        ValueError, match=r"a.npy: array is 'y', but only NPZ and Zarr files hold several arrays; leave"
    ):
        read(tmp_path / "a.npy", array="y")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ModuleNotFoundError, match=r'a.zarr: needs the package zarr; pip install "uniphase\[zarr\]"$'):
        read(tmp_path / "a.zarr")
