import numpy as np
import pytest

from uniphase.signals.arrays import array
from uniphase.signals.images import image


@pytest.mark.parametrize("size", [1, 0, -3])
def test_too_small_a_size(size):
    for function in (image, array):
        with pytest.raises(ValueError, match=f"size is {size}; it must be at least 2"):
            function(np.zeros((6, 9)), size=size)


def test_a_size_that_flattens_an_axis():
    with pytest.raises(ValueError, match=r"size is 10, which makes \(100, 9\) samples \(10, 1\)"):
        image(np.zeros((100, 9)), size=10)
