"""Uniform phases and matched moments: the method of this package."""

import math

from ..blueprint import Blueprint, LayerPlan
from ..distributions import ColumnNormal, Constant, Normal, RowNormal, Uniform, as_matrix
from ..moments import Moments
from .common import Target, sizes_of

# The scale of the output weights at the start of a fit. An untrained network with the covariance of the signal is twice
# as far from it as its mean is; near the mean, training starts with what it has to learn. docs/rule.md has its curve.
OUTPUT_SCALE = 0.05


def uniform_phase(target: Target, *, width: int, depth: int, output_scale: float = 1.0) -> Blueprint:
    """Uniform phases and matched moments: no frequency to choose, and exact at any width and depth.

    - input: rows of W ~ N(0, Ω/c), b ~ U(±π)
    - hidden: W ~ N(0, 2/N), b ~ U(±π)
    - output: columns of W ~ N(0, 2 s² Σ_ε/N), b = μ; the scale s is 1 in the paper

    **Arguments:**

    - `target`: the `Moments` of the signal, estimated or prescribed.
    - `width`: N.
    - `depth`: L, the number of N×N matrices between the input and the output layer. `eqx.nn.MLP` has the same layers
        with a depth of L + 1.
    - `output_scale`: s. With 1 the outputs have the covariance of the signal; `fit(signal)` takes 0.05, since a network
        that starts near the mean trains better.

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
    if not 0 < output_scale < math.inf:
        raise ValueError(f"output_scale is {output_scale}; it must be positive and finite")
    in_size, out_size = sizes_of(target, width, depth)
    phase = Uniform(math.pi)
    input_weight = RowNormal(as_matrix(target.structure_tensor / out_size))
    output_weight = ColumnNormal(as_matrix(2 * output_scale**2 * target.regularized_covariance / width))
    return Blueprint(
        "uniform-phase",
        (
            LayerPlan("input", width, in_size, "sine", input_weight, phase),
            *[LayerPlan("hidden", width, width, "sine", Normal(math.sqrt(2 / width)), phase)] * depth,
            LayerPlan("output", out_size, width, "linear", output_weight, Constant(tuple(target.mean.tolist()))),
        ),
    )
