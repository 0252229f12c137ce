"""Schemes: the named initializations, each a function that returns a Blueprint.

All are called in the same way, `scheme(target, width=N, depth=L)`: an input layer, L hidden layers of N×N weights and a
linear output layer. `depth` counts the N×N matrices alone: what `depth=3` means here is `depth=4` for `eqx.nn.MLP`, and
`hidden_layers=3` in SIREN's own code.

The target is the `Moments` of a signal; a scheme that looks at no data needs only its sizes, and takes
`(in_size, out_size)` as well. `SCHEMES` lists all schemes, for the command line, the documentation and the tests.

A scheme is named after the paper or the code that it follows. Published implementations of SIREN differ in the
bound of the output layer, in the distribution of the biases and in where ω acts; here each choice can be printed.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..blueprint import Blueprint
from ..moments import prescribe_moments
from .common import Target as Target
from .cvp26 import cvp26_0 as cvp26_0, cvp26_1 as cvp26_1, cvp26_fixed_point as cvp26_fixed_point
from .fans import gelu as gelu, relu as relu, silu as silu
from .fourier_features import tanh_pe as tanh_pe
from .sirens import IMAGE_OMEGA as IMAGE_OMEGA, siren as siren, sm20 as sm20
from .uniform_phases import OUTPUT_SCALE as OUTPUT_SCALE, uniform_phase as uniform_phase


@dataclass(frozen=True)
class Scheme:
    """An entry of `SCHEMES`.

    **Arguments:**

    - `name`: what the command line and files call it.
    - `blueprint`: the function.
    - `paper`: what it follows.
    - `biases`: what it does with them, in a few words.
    - `sound`: options for sounds on [-100, 100], where they differ from the defaults, which are for images.
    - `fit`: options of a network that is to be trained by the default rule, where they differ from what was published.
    """

    name: str
    blueprint: Callable[..., Blueprint]
    paper: str
    biases: str
    sound: Mapping[str, float] = field(default_factory=dict)
    fit: Mapping[str, float] = field(default_factory=dict)

    def takes(self, option: str) -> bool:
        """Whether the function has an option of this name, such as `omega`."""
        return option in inspect.signature(self.blueprint).parameters

    def frequencies(self, omega: float | None = None, *, sound: bool = False) -> dict[str, float]:
        """The options of the function for a medium, with another ω if it is given and the scheme has one."""
        given = {} if omega is None or not self.takes("omega") else {"omega": omega}
        return {**(self.sound if sound else {}), **given}

    @property
    def summary(self) -> str:
        """What the scheme is, with its distributions."""
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
        Scheme(
            "uniform-phase",
            uniform_phase,
            "Kuang et al. 2026",
            "uniform around the circle; output at the mean",
            fit={"output_scale": OUTPUT_SCALE},
        ),
        Scheme("siren", siren, "Sitzmann et al. 2020, official code", "uniform ±1/√fan_in"),
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
"""Every initialization by its name, as `uniform-phase`, with its paper and a `blueprint` to call."""


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


def require_omega(omega: float | None, schemes: Sequence[str]) -> None:
    """Raise an error if ω is given, but is not a frequency or none of the schemes has one.

    !!! example
        ```python
        require_omega(60.0, ["siren", "uniform-phase"])
        ```
    """
    if omega is None:
        return
    if not 0 < omega < math.inf:
        raise ValueError(f"omega is {omega}; it must be positive and finite")
    if not any(get_scheme(name).takes("omega") for name in schemes):
        known = ", ".join(name for name, scheme in SCHEMES.items() if scheme.takes("omega"))
        lacking = f"{schemes[0]} has none" if len(schemes) == 1 else f"none of {', '.join(schemes)} has one"
        raise ValueError(f"omega is {omega:g}, but {lacking}; leave it out, or choose from {known}")
