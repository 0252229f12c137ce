import numpy as np
import pytest

from uniphase.signals.arrays import array
from uniphase.signals.images import image
from uniphase.signals.sources import as_type, resized


@pytest.mark.parametrize("size", [1, 0, -3])
def test_too_small_a_size(size):
    for function in (image, array):
        with pytest.raises(ValueError, match=f"size is {size}; it must be at least 2"):
            function(np.zeros((6, 9)), size=size)


def test_a_size_that_flattens_an_axis():
    with pytest.raises(ValueError, match=r"size is 10, which makes \(100, 9\) samples \(10, 1\)"):
        image(np.zeros((100, 9)), size=10)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_and_clipped(kind):
    info = np.iinfo(kind)
    found = as_type(np.array([-1e30, 0.4, 1.6, 2.0, 1e30]), kind)
    assert found.dtype == kind
    np.testing.assert_array_equal(found[:4], [info.min, 0, 2, 2])
    assert found[4] > info.max - 2**12  # the largest float64 below 2⁶⁴ is 2¹¹ less


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_are_converted(kind):
    values = np.array([-1.5, 0.25, np.nan])
    assert as_type(values, kind).dtype == kind
    np.testing.assert_array_equal(as_type(values, kind), values)


def test_values_in_their_own_type_are_not_touched():
    values = np.array([2**63 - 1, 5])
    np.testing.assert_array_equal(as_type(values, "int64"), values)
    with pytest.raises(ValueError, match="values has NaN or infinite entries, which uint8 cannot hold; replace them"):
        as_type(np.array([0.0, np.nan]), "uint8")


def test_resizing_leaves_out_what_is_missing():
    """A constant stays one, whatever is missing of it; what is mostly missing stays missing."""
    values = np.full((24, 24, 2), 3.0)
    values[:8, :12] = np.nan
    values[20, 20, 0] = np.nan  # missing in one channel
    found = resized(values, 6)
    assert found.shape == (6, 6, 2)
    assert np.isnan(found[0, 0]).all()
    known = ~np.isnan(found)
    assert known[3:].all()
    np.testing.assert_allclose(found[known], 3.0)
