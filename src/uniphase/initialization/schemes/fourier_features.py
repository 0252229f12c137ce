"""Tanh networks on random Fourier features."""

import math

from ..blueprint import Blueprint, LayerPlan
from ..distributions import Constant, Normal
from .common import Target, sizes_of
from .fans import xavier


def tanh_pe(target: Target, *, width: int, depth: int, std: float = 32.0) -> Blueprint:
    """Tanh network on random Fourier features.

    - encoding: x ↦ [sin 2πBx, cos 2πBx], B ~ N(0, std²) with N/2 rows, frozen
    - input and hidden: tanh(Wx + b), W ~ U(±√(6/(N + N))), b = 0
    - output: W ~ U(±√(6/(N + c))), b = 0

    **Arguments:**

    - `target`: `Moments`, of which only the sizes are used, or `(in_size, out_size)`.
    - `width`, `depth`: N, which must be even, and L. The layer after the encoding is N×N and comes on top of L.
    - `std`: the spread of the frequencies. The paper has 32 for images and 10 for sound.

    !!! example
        ```python
        blueprint = tanh_pe((1, 1), width=256, depth=5, std=10.0)
        ```

    ??? cite "Reference"
        Tancik and coauthors, "Fourier features let networks learn high frequency functions in low dimensional
        domains", NeurIPS 2020; Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", AISTATS 2010.
    """
    in_size, out_size = sizes_of(target, width, depth)
    if width % 2:
        raise ValueError(f"width is {width}, but tanh-pe splits it into sines and cosines; pass an even width")
    zero = Constant(0.0)
    hidden = LayerPlan("hidden", width, width, "tanh", xavier(width, width), zero)
    return Blueprint(
        "tanh-pe",
        (
            LayerPlan("input", width // 2, in_size, "sincos", Normal(std), None, omega=2 * math.pi, trainable=False),
            *[hidden] * (depth + 1),
            LayerPlan("output", out_size, width, "linear", xavier(width, out_size), zero),
        ),
    )
