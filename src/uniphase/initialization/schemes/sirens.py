"""Sine networks with a frequency to choose: SIREN, as implemented by its authors and as compared in papers."""

import math

from ..blueprint import Blueprint, LayerPlan
from ..distributions import Distribution, Uniform
from .common import Target, sizes_of

# The first frequency that CVP26 derives for images on [-1, 1].
IMAGE_OMEGA = 64 * math.pi / math.sqrt(6)


def siren(
    target: Target, *, width: int, depth: int, omega: float = 30.0, hidden_omega: float | None = None
) -> Blueprint:
    """SIREN as implemented by its authors: one frequency ω for all layers.

    - input: sin(ω(Wx + b)), W ~ U(±1/d), b ~ U(±1/√d)
    - hidden: sin(ω(Wx + b)), W ~ U(±√(6/N)/ω), b ~ U(±1/√N)
    - output: W ~ U(±√(6/N)/ω), b ~ U(±1/√N)

    **Arguments:**

    - `target`: `Moments`, of which only the sizes are used, or `(in_size, out_size)`.
    - `width`, `depth`: N and L.
    - `omega`: ω. The default suits images on [-1, 1], and sounds on [-100, 100] as this package has them; on [-1, 1]
        the authors take 3000 for the first layer of a sound.
    - `hidden_omega`: ω of the hidden layers, if it is not that of the first.

    !!! example
        ```python
        blueprint = siren((2, 3), width=256, depth=3)
        ```

    ??? cite "Reference"
        Sitzmann, Martel, Bergman, Lindell and Wetzstein, "Implicit neural representations with periodic activation
        functions", NeurIPS 2020, and its code, https://github.com/vsitzmann/siren. The biases are the default of
        PyTorch's linear layers.
    """
    hidden_omega = omega if hidden_omega is None else hidden_omega
    return _siren("siren", target, (width, depth), (omega, hidden_omega), official_output=True)


def sm20(
    target: Target,
    *,
    width: int,
    depth: int,
    omega: float = IMAGE_OMEGA,
    hidden_omega: float = 1.0,
    official_output: bool = False,
) -> Blueprint:
    """SIREN as the paper of this package compares it ("SM20"): two frequencies, and an output without bias.

    - input: sin(ω₀(Wx + b)), W ~ U(±1/d), b ~ U(±1/√d)
    - hidden: sin(ω_h(Wx + b)), W ~ U(±√6/(ω_h√N)), b ~ U(±1/√N)
    - output: W ~ U(±√(3/N)/ω_h), no bias

    **Arguments:**

    - `target`: `Moments`, of which only the sizes are used, or `(in_size, out_size)`.
    - `width`, `depth`: N and L.
    - `omega`, `hidden_omega`: ω₀ and ω_h.
    - `official_output`: the output layer of `siren`, W ~ U(±√(6/N)/ω_h), b ~ U(±1/√N), in place of the one above.

    !!! example
        ```python
        blueprint = sm20((2, 3), width=256, depth=3)
        ```

    ??? cite "Reference"
        Sitzmann, Martel, Bergman, Lindell and Wetzstein, "Implicit neural representations with periodic activation
        functions", NeurIPS 2020, section 3.2. The biases are the default of PyTorch's linear layers.
    """
    return _siren("sm20", target, (width, depth), (omega, hidden_omega), official_output=official_output)


def _siren(
    name: str, target: Target, size: tuple[int, int], omegas: tuple[float, float], *, official_output: bool
) -> Blueprint:
    (in_size, _), (width, _), (_, hidden_omega) = sizes_of(target, *size), size, omegas
    require_omegas(*omegas)
    return sine_network(
        name,
        target,
        size,
        omegas,
        input_bias=Uniform(1 / math.sqrt(in_size)),
        hidden=(Uniform(math.sqrt(6 / width) / hidden_omega), Uniform(1 / math.sqrt(width))),
        official_output=official_output,
    )


def require_omegas(omega: float, hidden_omega: float) -> None:
    """Raise an error if a frequency is not positive."""
    if not (omega > 0 and hidden_omega > 0):
        raise ValueError(f"omega is {omega} and hidden_omega is {hidden_omega}; both must be positive")


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
    """What the SIRENs and CVP26 share: the input weights and the output layer.

    **Arguments:**

    - `name`, `target`: of the scheme.
    - `size`: width and depth.
    - `omegas`: of the first layer and of the hidden ones.
    - `input_bias`, `hidden`: the biases of the first layer; weights and biases of the hidden ones.
    - `official_output`: as for `sm20`.
    """
    (width, depth), (omega, hidden_omega) = size, omegas
    in_size, out_size = sizes_of(target, width, depth)
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
