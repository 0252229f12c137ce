import gzip
import re
import sys

import numpy as np
import pytest

from uniphase.signals.arrays import volume
from uniphase.signals.files import read
from uniphase.signals.scans import scan

nibabel = pytest.importorskip("nibabel", reason="the extra scans is not installed")

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(4, 5, 6)).astype(np.float32)


def save(path, values, voxel=(1.0, 2.0, 3.0), *, kind=None, step=None, units=("mm", "sec")):
    """Write a NIfTI file with voxels of some size."""
    image = nibabel.Nifti1Image(values, np.diag([*voxel, 1.0]))
    image.set_data_dtype(values.dtype if kind is None else kind)
    if step is not None:
        image.header["pixdim"][4] = step
    image.header.set_xyzt_units(*units)
    nibabel.save(image, path)


def patch(path, **fields):
    """Replace entries of the header as they are in the file."""
    header = bytearray(path.read_bytes())
    entries = np.frombuffer(header[:348], nibabel.Nifti1Header.template_dtype).copy()
    for name, value in fields.items():
        entries[name] = value
    path.write_bytes(entries.tobytes() + bytes(header[348:]))


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "A.NII.GZ"])
def test_a_scan_is_in_millimetres(tmp_path, name):
    save(tmp_path / name.lower(), VALUES)
    (tmp_path / name.lower()).rename(tmp_path / name)
    grid = read(tmp_path / name)
    assert (grid.extents, grid.spacing) == (((-2.0, 2.0), (-5.0, 5.0), (-9.0, 9.0)), (1.0, 2.0, 3.0))
    assert (grid.medium, grid.rate, grid.stored) == (None, None, "float32")
    np.testing.assert_array_equal(grid.values[..., 0], VALUES)
    assert isinstance(grid.values, np.memmap) == (name == "a.nii")
    assert volume(tmp_path / name).extents == grid.extents


def test_options(tmp_path):
    save(tmp_path / "a.nii", VALUES)
    assert read(tmp_path / "a.nii", align="corners").spacing == (1.0, 2.0, 3.0)
    assert read(tmp_path / "a.nii", extents=(0.0, 1.0)).extents == ((0.0, 1.0),) * 3
    small = read(tmp_path / "a.nii", size=3)
    assert (small.shape, small.extents) == ((2, 2, 3), ((-2.0, 2.0), (-5.0, 5.0), (-9.0, 9.0)))


def test_a_fourth_axis_is_time_and_a_fifth_the_channels(tmp_path):
    save(tmp_path / "a.nii", RNG.normal(size=(4, 5, 6, 3)), step=1500.0, units=("micron", "msec"))
    grid = scan(tmp_path / "a.nii")
    assert grid.shape == (4, 5, 6, 3)
    np.testing.assert_allclose(grid.spacing, (1e-3, 2e-3, 3e-3, 1.5))
    assert grid.extents[3] == (0.0, 4.5)
    save(tmp_path / "a.nii", RNG.normal(size=(4, 5, 1, 1, 3)))
    grid = scan(tmp_path / "a.nii")
    assert (grid.values.shape, grid.spacing) == ((4, 5, 3), (1.0, 2.0))


def test_the_scaling_of_the_file_is_applied(tmp_path):
    counts = RNG.integers(0, 1000, (4, 5, 6)).astype(np.int16)
    save(tmp_path / "a.nii", counts)
    grid = scan(tmp_path / "a.nii")
    assert (grid.values.dtype, grid.stored) == (np.int16, "int16")
    patch(tmp_path / "a.nii", scl_slope=0.5, scl_inter=-10.0)
    grid = scan(tmp_path / "a.nii")
    assert (grid.values.dtype, grid.stored) == (np.float32, None)
    np.testing.assert_array_equal(grid.values[..., 0], 0.5 * counts - 10)


def test_the_bytes_of_another_machine(tmp_path):
    image = nibabel.Nifti1Image(VALUES, np.eye(4), nibabel.Nifti1Header(endianness=">"))
    nibabel.save(image, tmp_path / "a.nii")
    grid = scan(tmp_path / "a.nii")
    assert grid.values.dtype.isnative
    np.testing.assert_array_equal(grid.values[..., 0], VALUES)


def test_voxel_sizes_without_an_affine_are_those_of_pixdim(tmp_path):
    save(tmp_path / "a.nii", VALUES)
    patch(tmp_path / "a.nii", sform_code=0, qform_code=0)
    assert scan(tmp_path / "a.nii").spacing == (1.0, 2.0, 3.0)
    patch(tmp_path / "a.nii", sform_code=1, pixdim=0.0)  # and with an affine, its own
    assert scan(tmp_path / "a.nii").spacing == (1.0, 2.0, 3.0)


def _colours(path):
    save(path, np.zeros((4, 4, 4), [("R", "u1"), ("G", "u1"), ("B", "u1")]))


def _without_affine(path):
    save(path, VALUES)
    patch(path, sform_code=0, qform_code=0, pixdim=[1, 0, 2, np.nan, 0, 0, 0, 0])


def _truncated(path):
    save(path, VALUES)
    path.write_bytes(path.read_bytes()[:500])


BAD = "cannot be read as a NIfTI file"


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("a.nii", _without_affine, r"it has no valid voxel sizes \(0, 2, nan\); correct pixdim in its header, or pass"),
        ("a.nii", lambda path: save(path, VALUES + 1j), rf"{BAD} \(its values are complex64, not real numbers\)"),
        ("a.nii", _colours, rf"{BAD} \(its values are colours, not real numbers\)"),
        ("a.nii", lambda path: save(path, np.zeros((2,) * 6)), rf"{BAD} \(its shape is \(2, 2, 2, 2, 2, 2\), of more"),
        ("a.nii", _truncated, rf"{BAD} \(.*\); get a whole copy"),
        ("a.nii.gz", _truncated, rf"{BAD} \(.*\); get a whole copy"),
        ("a.nii", lambda path: path.write_text("no scan" * 99), rf"{BAD} \(.*\); get a whole copy"),
        ("a.nii", lambda path: path.touch(), "an empty file, not a NIfTI file"),
        ("a.nii", lambda path: path.mkdir(), "a directory, not a NIfTI file"),
    ],
)
def test_a_bad_scan_is_reported_in_one_line(tmp_path, capfd, name, make, message):
    path = tmp_path / name
    make(path)
    capfd.readouterr()
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_extents_take_the_place_of_voxel_sizes(tmp_path):
    _without_affine(tmp_path / "a.nii")
    assert scan(tmp_path / "a.nii", extents=(0.0, 1.0)).shape == (4, 5, 6)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'a.nii: needs the package nibabel; pip install "uniphase\[scans\]"$'
    ):
        scan(tmp_path / "a.nii")


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_a_small_file_that_declares_gigabytes_takes_none(tmp_path, name):
    """Before they are read, nibabel would set aside as many bytes as are declared."""
    save(tmp_path / "a.nii", VALUES)
    patch(tmp_path / "a.nii", dim=[3, 30_000, 30_000, 3, 1, 1, 1, 1])
    content = (tmp_path / "a.nii").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(ValueError, match=r"\(its header declares 10,800,000,000 bytes, which it cannot hold\)"):
        scan(tmp_path / name)


def test_units_that_mean_nothing_are_millimetres(tmp_path):
    save(tmp_path / "a.nii", VALUES)
    patch(tmp_path / "a.nii", xyzt_units=4)
    assert scan(tmp_path / "a.nii").spacing == (1.0, 2.0, 3.0)
