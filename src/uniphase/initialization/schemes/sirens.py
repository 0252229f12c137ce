"""Sine networks with a frequency to choose: SIREN."""

import math

from ..blueprint import Blueprint, LayerPlan
from ..distributions import Distribution, Uniform
from .common import Target, sizes_of

# The first frequency that CVP26 derives for images on [-1, 1].
IMAGE_OMEGA = 64 * math.pi / math.sqrt(6)


def sm20(
    target: Target,
    *,
    width: int,
    depth: int,
    omega: float = IMAGE_OMEGA,
    hidden_omega: float = 1.0,
    official_output: bool = False,
) -> Blueprint:
    """SIREN as first published.

    - input: sin(ω₀(Wx + b)), W ~ U(±1/d), b ~ U(±1/√d)
    - hidden: sin(ω_h(Wx + b)), W ~ U(±√6/(ω_h√N)), b ~ U(±1/√N)
    - output: W ~ U(±√(3/N)/ω_h), no bias

    **Arguments:**

    - `target`: `Moments`, of which only the sizes are used, or `(in_size, out_size)`.
    - `width`, `depth`: N and L.
    - `omega`, `hidden_omega`: ω₀ and ω_h. SIREN's own code has 30 for both.
    - `official_output`: the output layer of SIREN's own code, W ~ U(±√(6/N)/ω_h), b ~ U(±1/√N), in place of that of the
        paper this package reproduces.

    !!! example
        ```python
        blueprint = sm20((2, 3), width=256, depth=3, omega=30.0, hidden_omega=30.0, official_output=True)
        ```

    ??? cite "Reference"
        Sitzmann, Martel, Bergman, Lindell and Wetzstein, "Implicit neural representations with periodic activation
        functions", NeurIPS 2020, section 3.2. The biases are those that PyTorch's linear layers bring along.
    """
    in_size, _ = sizes_of(target, width, depth)
    return sine_network(
        "sm20",
        target,
        (width, depth),
        (omega, hidden_omega),
        input_bias=Uniform(1 / math.sqrt(in_size)),
        hidden=(Uniform(math.sqrt(6 / width) / hidden_omega), Uniform(1 / math.sqrt(width))),
        official_output=official_output,
    )


def sine_network(
    name: str,
    target: Target,
    size: tuple[int, int],
    omegas: tuple[float, float],
    *,
    input_bias: Distribution,
    hidden: tuple[Distribution, Distribution],
    official_output: bool,
) -> Blueprint:
    """What sm20 and cvp26 share: the input weights and the output layer."""
    (width, depth), (omega, hidden_omega) = size, omegas
    in_size, out_size = sizes_of(target, width, depth)
    if not (omega > 0 and hidden_omega > 0):
        raise ValueError(f"omega is {omega} and hidden_omega is {hidden_omega}; both must be positive")
    output = (Uniform(math.sqrt(3 / width) / hidden_omega), None)
    if official_output:
        output = (Uniform(math.sqrt(6 / width) / hidden_omega), Uniform(1 / math.sqrt(width)))
    return Blueprint(
        name,
        (
            LayerPlan("input", width, in_size, "sine", Uniform(1 / in_size), input_bias, omega),
            *[LayerPlan("hidden", width, width, "sine", *hidden, hidden_omega)] * depth,
            LayerPlan("output", out_size, width, "linear", *output),
        ),
    )
