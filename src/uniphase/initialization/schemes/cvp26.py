"""Sine networks at the edge of chaos, by Combette, Venaille and Pustelnik ("CVP26")."""

import math

from ..blueprint import Blueprint
from ..distributions import Constant, Normal, Uniform
from .common import Target, sizes_of
from .sirens import IMAGE_OMEGA, require_omegas, sine_network


def cvp26_0(
    target: Target,
    *,
    width: int,
    depth: int,
    omega: float = IMAGE_OMEGA,
    hidden_omega: float = 1.0,
    zero_input_bias: bool = False,
    official_output: bool = False,
) -> Blueprint:
    """Sine network at the edge of chaos, with preactivations that decay to zero with depth (σ_a = 0).

    - input: as `sm20`
    - hidden: sin(ω_h(Wx + b)), W ~ U(±√3/(ω_h√N)), b = 0
    - output: as `sm20`

    **Arguments:**

    - `target`, `width`, `depth`, `omega`, `hidden_omega`, `official_output`: as for `sm20`.
    - `zero_input_bias`: start the biases of the first layer at zero. The publication does not say what they are; by
        default they are those of `sm20`.

    !!! example
        ```python
        blueprint = cvp26_0((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Combette, Venaille and Pustelnik, "A new initialisation to control gradients in sinusoidal neural networks",
        arXiv:2512.06427 ("CVP26"), theorems 3.1 and 3.2, for (σ_a, σ_g) = (0, 1).
    """
    return _cvp26("cvp26-0", 0.0, target, (width, depth), (omega, hidden_omega), zero_input_bias, official_output)


def cvp26_1(
    target: Target,
    *,
    width: int,
    depth: int,
    omega: float = IMAGE_OMEGA,
    hidden_omega: float = 1.0,
    zero_input_bias: bool = False,
    official_output: bool = False,
) -> Blueprint:
    """Sine network at the edge of chaos, with preactivations of variance one (σ_a = 1).

    - input: as `sm20`
    - hidden: sin(ω_h(Wx + b)), W ~ U(±c/(ω_h√N)), c² = 6/(1 + e⁻²), b ~ N(0, c²e⁻²/(3ω_h²))
    - output: as `sm20`

    **Arguments:**

    - `target`, `width`, `depth`, `omega`, `hidden_omega`, `official_output`: as for `sm20`. The bias is divided by
        ω_h as the weights are, so that the preactivations have the same distribution for every ω_h.
    - `zero_input_bias`: as for `cvp26_0`.

    !!! example
        ```python
        blueprint = cvp26_1((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Combette, Venaille and Pustelnik, "A new initialisation to control gradients in sinusoidal neural networks",
        arXiv:2512.06427 ("CVP26"), theorems 3.1 and 3.2, for (σ_a, σ_g) = (1, 1).
    """
    return _cvp26("cvp26-1", 1.0, target, (width, depth), (omega, hidden_omega), zero_input_bias, official_output)


def cvp26_fixed_point(weight_bound: float, bias_std: float) -> tuple[float, float]:
    r"""CVP26's limits (σ_a², σ_g) for W ~ U(±c_w/√N) and b ~ N(0, c_b²) as width and depth grow.

    $$σ_a^2 = c_b^2 + \frac{c_w^2}{6} + \frac12 W_0\left(-\frac{c_w^2}{3} e^{-c_w^2/3 - 2c_b^2}\right), \quad
    σ_g = \frac{c_w^2}{6}(1 + e^{-2σ_a^2})$$

    **Arguments:**

    - `weight_bound`, `bias_std`: c_w and c_b.

    **Returns:**

    The variance of the preactivations, and N times the variance of an entry of a layer's Jacobian. As c_b grows the
    second tends to c_w²/6, its value for uniform phases.

    !!! example
        ```python
        cvp26_fixed_point(math.sqrt(3), 0.0)  # (0, 1): the edge of chaos
        ```
    """
    from scipy.special import lambertw  # takes a while to import, and nothing else here needs it

    slope = weight_bound**2 / 3
    argument = -slope * math.exp(-slope - 2 * bias_std**2)
    # At c_w = √3, c_b = 0 the argument is the branch point -1/e, which rounds to either side; SciPy has nan there.
    branch = -1.0 if argument <= -math.exp(-1) else float(lambertw(argument).real)
    variance = max(0.0, bias_std**2 + slope / 2 + branch / 2)
    return variance, slope / 2 * (1 + math.exp(-2 * variance))


def _cvp26(
    name: str,
    sigma_a: float,
    target: Target,
    size: tuple[int, int],
    omegas: tuple[float, float],
    zero_input_bias: bool,
    official_output: bool,
) -> Blueprint:
    """The member of CVP26's family with σ_g = 1 and the given σ_a."""
    in_size, _ = sizes_of(target, *size)
    require_omegas(*omegas)
    decay = math.exp(-2 * sigma_a**2)
    bound = math.sqrt(6 / (1 + decay))  # σ_g = 1
    bias_std = math.sqrt(max(0.0, sigma_a**2 - bound**2 / 6 * (1 - decay)))  # the variance σ_a² maps to itself
    return sine_network(
        name,
        target,
        size,
        omegas,
        input_bias=Constant(0.0) if zero_input_bias else Uniform(1 / math.sqrt(in_size)),
        hidden=(
            Uniform(bound / math.sqrt(size[0]) / omegas[1]),
            Normal(bias_std / omegas[1]) if bias_std else Constant(0.0),
        ),
        official_output=official_output,
    )
