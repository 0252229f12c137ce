"""Networks whose distributions follow from the fans of a layer alone: He for ReLU, Glorot for SiLU, GELU and tanh."""

import math
from collections.abc import Callable

from ..blueprint import Blueprint, LayerPlan
from ..distributions import Constant, Distribution, Uniform
from .common import Target, sizes_of


def relu(target: Target, *, width: int, depth: int) -> Blueprint:
    """ReLU network: W ~ U(±√(6/fan_in)) and b = 0 in every layer.

    **Arguments:**

    - `target`: `Moments`, of which only the sizes are used, or `(in_size, out_size)`.
    - `width`, `depth`: N and L.

    !!! example
        ```python
        blueprint = relu((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        He, Zhang, Ren and Sun, "Delving deep into rectifiers", ICCV 2015.
    """
    return _plain_network("relu", "relu", lambda fan_in, fan_out: Uniform(math.sqrt(6 / fan_in)), target, width, depth)


def silu(target: Target, *, width: int, depth: int) -> Blueprint:
    """SiLU network: W ~ U(±√(6/(fan_in + fan_out))) and b = 0 in every layer.

    **Arguments:**

    - `target`, `width`, `depth`: as for `relu`.

    !!! example
        ```python
        blueprint = silu((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    return _plain_network("silu", "silu", xavier, target, width, depth)


def gelu(target: Target, *, width: int, depth: int) -> Blueprint:
    """GELU network: W ~ U(±√(6/(fan_in + fan_out))) and b = 0 in every layer.

    **Arguments:**

    - `target`, `width`, `depth`: as for `relu`.

    !!! example
        ```python
        blueprint = gelu((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    return _plain_network("gelu", "gelu", xavier, target, width, depth)


def _plain_network(
    name: str,
    activation: str,
    weight: Callable[[int, int], Distribution],
    target: Target,
    width: int,
    depth: int,
) -> Blueprint:
    """A network with one rule for all weights, a function of fan_in and fan_out, and biases at zero."""
    in_size, out_size = sizes_of(target, width, depth)
    zero = Constant(0.0)
    return Blueprint(
        name,
        (
            LayerPlan("input", width, in_size, activation, weight(in_size, width), zero),
            *[LayerPlan("hidden", width, width, activation, weight(width, width), zero)] * depth,
            LayerPlan("output", out_size, width, "linear", weight(width, out_size), zero),
        ),
    )


def xavier(fan_in: int, fan_out: int) -> Uniform:
    """Glorot and Bengio's distribution."""
    return Uniform(math.sqrt(6 / (fan_in + fan_out)))
