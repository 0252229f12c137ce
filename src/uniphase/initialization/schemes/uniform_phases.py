"""Uniform phases and matched moments: the method of this package."""

import math

from ..blueprint import Blueprint, LayerPlan
from ..distributions import ColumnNormal, Constant, Normal, RowNormal, Uniform, as_matrix
from ..moments import Moments
from .common import Target, sizes_of


def uniform_phase(target: Target, *, width: int, depth: int) -> Blueprint:
    """Uniform phases and matched moments: no frequency to choose, and exact at any width and depth.

    - input: rows of W ~ N(0, Ω/c), b ~ U(±π)
    - hidden: W ~ N(0, 2/N), b ~ U(±π)
    - output: columns of W ~ N(0, 2 Σ_ε/N), b = μ

    **Arguments:**

    - `target`: the `Moments` of the signal, estimated or prescribed.
    - `width`: N.
    - `depth`: L, the number of N×N matrices between the input and the output layer. `eqx.nn.MLP` has the same layers
        with a depth of L + 1.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=256, depth=4)
        ```

    ??? cite "Reference"
        Kuang, Chickering and Lin, "Stable initialization without the CLT": the definition in section 1 (hidden layers)
        and section 3 (input and output).
    """
    if not isinstance(target, Moments):
        raise ValueError(
            f"target is {target!r}, but uniform-phase matches the moments of a signal; "
            "pass estimate_moments(field) or prescribe_moments(...)"
        )
    in_size, out_size = sizes_of(target, width, depth)
    phase = Uniform(math.pi)
    input_weight = RowNormal(as_matrix(target.structure_tensor / out_size))
    output_weight = ColumnNormal(as_matrix(2 * target.regularized_covariance / width))
    return Blueprint(
        "uniform-phase",
        (
            LayerPlan("input", width, in_size, "sine", input_weight, phase),
            *[LayerPlan("hidden", width, width, "sine", Normal(math.sqrt(2 / width)), phase)] * depth,
            LayerPlan("output", out_size, width, "linear", output_weight, Constant(tuple(target.mean.tolist()))),
        ),
    )
