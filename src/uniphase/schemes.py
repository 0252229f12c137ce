"""Schemes: the named initializations, each a function that returns a Blueprint.

All are called in the same way, `scheme(target, width=N, depth=L)`: an input layer, L hidden layers of N×N weights and a
linear output layer. The target is the `Moments` of a signal; a scheme that looks at no data needs only its sizes, and
takes `(in_size, out_size)` as well. `SCHEMES` lists them all; the command line, the documentation and the tests go by
that list.

A scheme is named after the paper that it follows. Public codes called "SIREN" differ among each other in the bound of
the output layer, in the law of the biases and in where ω acts; here each choice is a law that can be printed.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .blueprints import Activation, Blueprint, LayerPlan
from .laws import ColumnNormal, Constant, Law, Normal, RowNormal, Uniform, as_matrix
from .moments import Moments, prescribe_moments

Target = Moments | tuple[int, int]

# The first frequency that CVP26 derives for images on [-1, 1].
IMAGE_OMEGA = 64 * math.pi / math.sqrt(6)


def uniform_phase(target: Target, *, width: int, depth: int) -> Blueprint:
    """Uniform phases and matched moments: no frequency to choose, exact at any width and depth.

    - input: rows of W ~ N(0, Ω/c), b ~ U(±π)
    - hidden: W ~ N(0, 2/N), b ~ U(±π)
    - output: columns of W ~ N(0, 2 Σ_ε/N), b = μ

    **Arguments:**

    - `target`: the `Moments` of the signal, estimated or prescribed.
    - `width`, `depth`: N and L.

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
    in_size, out_size = _sizes(target, width, depth)
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
    in_size, _ = _sizes(target, width, depth)
    return _sine_network(
        "sm20",
        target,
        (width, depth),
        (omega, hidden_omega),
        input_bias=Uniform(1 / math.sqrt(in_size)),
        hidden=(Uniform(math.sqrt(6 / width) / hidden_omega), Uniform(1 / math.sqrt(width))),
        official_output=official_output,
    )


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
    """Sine network at the edge of chaos, with preactivations that die out (σ_a = 0).

    - input: as `sm20`
    - hidden: sin(ω_h(Wx + b)), W ~ U(±√3/(ω_h√N)), b = 0
    - output: as `sm20`

    **Arguments:**

    - `target`, `width`, `depth`, `omega`, `hidden_omega`, `official_output`: as for `sm20`.
    - `zero_input_bias`: start the biases of the first layer at zero. The public record is open on them; by default they
        are those of `sm20`.

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
        ω_h as the weights are, so that the preactivations have the same law for every ω_h.
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
    in_size, out_size = _sizes(target, width, depth)
    if width % 2:
        raise ValueError(f"width is {width}, but tanh-pe splits it into sines and cosines; pass an even width")
    zero = Constant(0.0)
    hidden = LayerPlan("hidden", width, width, "tanh", _xavier(width, width), zero)
    return Blueprint(
        "tanh-pe",
        (
            LayerPlan("input", width // 2, in_size, "sincos", Normal(std), None, omega=2 * math.pi, trainable=False),
            *[hidden] * (depth + 1),
            LayerPlan("output", out_size, width, "linear", _xavier(width, out_size), zero),
        ),
    )


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

    **Arguments:** as for `relu`.

    !!! example
        ```python
        blueprint = silu((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    return _plain_network("silu", "silu", _xavier, target, width, depth)


def gelu(target: Target, *, width: int, depth: int) -> Blueprint:
    """GELU network: W ~ U(±√(6/(fan_in + fan_out))) and b = 0 in every layer.

    **Arguments:** as for `relu`.

    !!! example
        ```python
        blueprint = gelu((2, 1), width=256, depth=11)
        ```

    ??? cite "Reference"
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    return _plain_network("gelu", "gelu", _xavier, target, width, depth)


@dataclass(frozen=True)
class Scheme:
    """An entry of `SCHEMES`: the function, the paper that it follows, and what it does with biases.

    The defaults of the function are for images; `sound` holds what the paper has for sounds on [-100, 100] instead.
    """

    name: str
    blueprint: Callable[..., Blueprint]
    paper: str
    biases: str
    sound: Mapping[str, float] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """What the scheme is, with its laws."""
        return (inspect.getdoc(self.blueprint) or "").partition("**Arguments:**")[0].strip()

    @property
    def reference(self) -> str:
        """Where it was published."""
        return " ".join((inspect.getdoc(self.blueprint) or "").partition('"Reference"')[2].split())

    @property
    def example(self) -> Blueprint:
        """Its blueprint for a gray image with a length scale of 0.1, at width 256 and depth 4."""
        return self.blueprint(prescribe_moments(length_scale=[0.1, 0.1]), width=256, depth=4)


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("uniform-phase", uniform_phase, "Kuang et al. 2026", "uniform around the circle; output at the mean"),
        Scheme(
            "sm20",
            sm20,
            "Sitzmann et al. 2020",
            "uniform ±1/√fan_in; none at the output",
            {"omega": 30.0, "hidden_omega": 30.0},
        ),
        Scheme(
            "cvp26-0",
            cvp26_0,
            "Combette et al. 2026, σ_a = 0",
            "input as sm20; hidden zero; none at the output",
            {"omega": 30.0},
        ),
        Scheme(
            "cvp26-1",
            cvp26_1,
            "Combette et al. 2026, σ_a = 1",
            "input as sm20; hidden Normal; none at the output",
            {"omega": 30.0},
        ),
        Scheme(
            "tanh-pe",
            tanh_pe,
            "Tancik et al. 2020, Glorot & Bengio 2010",
            "zero; none in the encoding",
            {"std": 10.0},
        ),
        Scheme("relu", relu, "He et al. 2015", "zero"),
        Scheme("silu", silu, "Glorot & Bengio 2010", "zero"),
        Scheme("gelu", gelu, "Glorot & Bengio 2010", "zero"),
    )
}


def get_scheme(name: str) -> Scheme:
    """The scheme of a name.

    !!! example
        ```python
        blueprint = get_scheme("cvp26-0").blueprint((2, 1), width=64, depth=3)
        ```
    """
    if name not in SCHEMES:
        raise ValueError(f"there is no scheme {name!r}; the known ones are {', '.join(SCHEMES)}")
    return SCHEMES[name]


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
    in_size, _ = _sizes(target, *size)
    decay = math.exp(-2 * sigma_a**2)
    bound = math.sqrt(6 / (1 + decay))  # σ_g = 1
    bias_std = math.sqrt(max(0.0, sigma_a**2 - bound**2 / 6 * (1 - decay)))  # the variance σ_a² maps to itself
    return _sine_network(
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


def _sine_network(
    name: str,
    target: Target,
    size: tuple[int, int],
    omegas: tuple[float, float],
    *,
    input_bias: Law,
    hidden: tuple[Law, Law],
    official_output: bool,
) -> Blueprint:
    """What sm20 and cvp26 share: the input weights and the output layer."""
    (width, depth), (omega, hidden_omega) = size, omegas
    in_size, out_size = _sizes(target, width, depth)
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


def _plain_network(
    name: str,
    activation: Activation,
    law: Callable[[int, int], Law],
    target: Target,
    width: int,
    depth: int,
) -> Blueprint:
    """A network with one weight law, which goes by the fans, and no biases at initialization."""
    in_size, out_size = _sizes(target, width, depth)
    zero = Constant(0.0)
    return Blueprint(
        name,
        (
            LayerPlan("input", width, in_size, activation, law(in_size, width), zero),
            *[LayerPlan("hidden", width, width, activation, law(width, width), zero)] * depth,
            LayerPlan("output", out_size, width, "linear", law(width, out_size), zero),
        ),
    )


def _xavier(fan_in: int, fan_out: int) -> Uniform:
    return Uniform(math.sqrt(6 / (fan_in + fan_out)))


def _sizes(target: Target, width: int, depth: int) -> tuple[int, int]:
    if width < 1:
        raise ValueError(f"width is {width}; a layer needs at least 1 neuron")
    if depth < 0:
        raise ValueError(f"depth is {depth}; pass the number of hidden layers, 0 or more")
    sizes = (target.in_size, target.out_size) if isinstance(target, Moments) else target
    if min(sizes) < 1:
        raise ValueError(f"target is {target!r}; pass Moments, or (in_size, out_size) of at least 1 each")
    return sizes
