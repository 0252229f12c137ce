"""Recipes: the size of a network, the number of its steps, their rate and their units, as they follow from a signal.

All of it is arithmetic in NumPy, shared by all frameworks.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

import numpy as np

from .initialization.blueprint import Blueprint
from .initialization.moments import Moments, require_dimensions
from .initialization.schemes import get_scheme
from .signals.complexity import cosine_energies
from .signals.fields import Extent, Field, Grid, Points, Sampling

Optimizer = Literal["muon", "adam", "given"]
Fall = Literal["cosine", "exponential"]

# The rate of a fit that ends at its noise, relative to others. Chosen on three photos (coins, chelsea and rocket of
# scikit-image at 192 pixels, σ = 25/255, one seed): 2.4 to 2.9 dB more than with 1, and within 0.3 dB of 0.03.
NOISY_RATE = 0.1
# The rate at the end, as a fraction of the first.
FINAL = 0.001
# Where the network can hold all values, in several batches: the first rate as a multiple of that of other fits, the
# number of visits of all samples in which it falls tenfold at most, and how many a fit needs to get that far.
HELD_RATE, HELD_TENFOLD, HELD_LEAST = 5.0, 20, 40
# Samples of a step, if there are as many.
BATCH = 8192
# Positions in the cell of a sample whose average is fitted, in each step: two opposite pairs.
DRAWS = 4
# The share of the variance of their mean that stays in the loss, and keeps a network calm within cells.
CALM = 0.5
# Matrices between the input and the output layer.
DEPTH = 3
# A trained network of P parameters holds about 4 P^0.8 cosines of a signal: 2.6 to 5.7 for photos of the development
# set of benchmarks/signals.py, at widths of 64 to 352. Hence a size for a target, with some dB to spare.
_COSINES, _POWER, _SPARE_DB = 4.0, 0.8, 3.0
# The width at which two cores take 1,000 steps of 4,096 samples in a second: about 10¹¹ operations a second.
_WIDTH_PER_TIME = 37.0
# A signal counts as held at this signal-to-noise ratio. No network is proposed that is wider.
_HELD_DB, _WIDEST = 30.0, 1024


class Scales(NamedTuple):
    """The constants of the default optimizer. docs/rule.md shows what becomes of others.

    - `input`, `phase`, `output`, `offset`: the step of each kind of array, relative to that of the hidden weights: of
        the phase that input weights add over the domain, of phases, and of output weights and offsets in the units of
        the signal.
    - `growth`: how large the norm of hidden weights may become, relative to their law.
    - `momentum`: the share of the average gradient that a step keeps.
    """

    input: float = 0.15
    phase: float = 0.5
    output: float = 10.0
    offset: float = 0.3
    growth: float = 2.0
    momentum: float = 0.9


@dataclass(frozen=True)
class Recipe:
    """How to train.

    **Arguments:**

    - `optimizer`: `"muon"`, in the units of the signal (`unit_muon`), plain `"adam"`, or `"given"`: the one that
        was passed to `fit`.
    - `learning_rate`: at the start.
    - `final_fraction`: the rate at the end, as a fraction of that at the start; 1 keeps it constant.
    - `steps`: the number of steps.
    - `batch`: samples per step; with all samples of the field, every step is a full batch.
    - `fall`: how the rate falls: along half a `"cosine"`, or `"exponential"`, by the same factor in every step.
    """

    optimizer: Optimizer
    learning_rate: float
    final_fraction: float
    steps: int
    batch: int
    fall: Fall = "cosine"

    def __post_init__(self):
        if self.optimizer not in get_args(Optimizer):
            raise ValueError(f"optimizer is {self.optimizer!r}; it must be 'muon' or 'adam'")
        if self.fall not in get_args(Fall):
            raise ValueError(f"fall is {self.fall!r}; it must be 'cosine' or 'exponential'")
        for name in ("learning_rate", "final_fraction", "steps", "batch"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be positive")

    def rates(self, share: np.ndarray) -> np.ndarray:
        """The learning rates when shares of the fit from 0 to 1 are done."""
        if self.fall == "exponential":
            return self.learning_rate * self.final_fraction**share
        cosine = (1 + np.cos(np.pi * share)) / 2
        return self.learning_rate * (self.final_fraction + (1 - self.final_fraction) * cosine)


def as_seed(seed: Any) -> int:
    """A seed as an integer; an error if it is none that 32 bits can hold."""
    try:
        number = operator.index(seed)
    except TypeError as error:
        raise ValueError(f"seed is {seed!r}; it must be an integer") from error
    if not 0 <= number < 2**32:
        raise ValueError(f"seed is {number}; it must lie between 0 and 2³² - 1")
    return number


@runtime_checkable
class Observed(Protocol):
    """What has a number of samples and of channels: a field, or the observations of a term."""

    @property
    def samples(self) -> int: ...

    @property
    def out_size(self) -> int: ...


@runtime_checkable
class Layered(Protocol):
    """A network of any framework: its layers have a `role`, as those of a blueprint have."""

    @property
    def layers(self) -> Any: ...

    @property
    def width(self) -> int: ...


def default_size(field: Observed, target_db: float | None = None, seconds: float | None = None) -> tuple[int, int]:
    """The width and depth for a field: 256 and 3 for most, less below 25,600 values, more above 100,000.

    The depth is the number of N×N matrices between the input and the output layer; `eqx.nn.MLP` counts one more.

    **Arguments:**

    - `field`: what is fitted.
    - `target_db`: the smallest network that should reach this signal-to-noise ratio, by `expected_snr`, with 3 dB to
        spare. For a grid alone.
    - `seconds`: the time that there is. The network is then no wider than two cores can train for 1,000 steps in it.

    !!! example
        ```python
        width, depth = default_size(field)
        default_size(load("camera"), target_db=30.0)
        ```
    """
    values = field.samples * field.out_size
    if target_db is not None and isinstance(field, Grid):
        width = _width_for(field, cosine_energies(field), target_db + _SPARE_DB, _COSINES)
    else:
        width = min(1.5 * math.sqrt(values), 256 * max(1.0, values / 100_000) ** (1 / 8))
    widest = math.inf if seconds is None else max(64.0, _WIDTH_PER_TIME * math.sqrt(seconds))
    return max(32, 32 * round(min(width, widest) / 32)), DEPTH


def expected_snr(field: Grid, parameters: int) -> float:
    """The signal-to-noise ratio in dB that a network of so many parameters is expected to reach, about.

    After the default number of steps it is about as good as the best 4 P⁰·⁸ of the cosines that the signal has in small
    blocks (`cosine_energies`), P being its number of parameters. Infinite where that is all of them.

    !!! example
        ```python
        expected_snr(load("camera", size=64), 2_000)
        ```
    """
    return _expected(cosine_energies(field), _COSINES * parameters**_POWER / (field.samples * field.out_size))


def size_to_hold(field: Field, parameters: int, snr_db: float) -> tuple[int, float] | None:
    """If a fit ended at a low signal-to-noise ratio because its network is small: a width that would do better.

    **Arguments:**

    - `field`: what was fitted.
    - `parameters`: of the network.
    - `snr_db`: what it reached. Above 30 dB a signal counts as held.

    **Returns:**

    A width of at most 1024, and the signal-to-noise ratio to expect of it, in dB: 30, or less if that is not to be had.
    `None` if the size is not the reason.

    !!! example
        ```python
        size_to_hold(load("camera"), 50_000, 18.0)
        ```
    """
    if not isinstance(field, Grid) or parameters >= field.samples * field.out_size or snr_db >= _HELD_DB:
        return None
    energies = cosine_energies(field)
    reached = np.searchsorted(np.cumsum(energies), 1 - 10 ** (-snr_db / 10)) / len(energies)
    scale = reached * field.samples * field.out_size / parameters**_POWER
    width = _width_for(field, energies, _HELD_DB, scale)
    count = _parameters(field, width)
    if count <= parameters:
        return None
    expected = _expected(energies, scale * count**_POWER / (field.samples * field.out_size))
    return width, min(expected, _HELD_DB)


def _width_for(field: Grid, energies: np.ndarray, target_db: float, scale: float) -> int:
    """The smallest width, a multiple of 32, that is expected to reach a signal-to-noise ratio; at most the largest."""
    values = field.samples * field.out_size
    for width in range(32, _WIDEST, 32):
        if _expected(energies, scale * _parameters(field, width) ** _POWER / values) >= target_db:
            return width
    return _WIDEST


def _expected(energies: np.ndarray, share: float) -> float:
    """The signal-to-noise ratio of a share of all cosines."""
    rest = float(energies[int(share * len(energies)) :].sum())
    return -10 * math.log10(rest) if rest > 0 else math.inf


def _parameters(field: Grid, width: int) -> int:
    return width * (field.in_size + 1) + DEPTH * width * (width + 1) + (width + 1) * field.out_size


def default_blueprint(
    field: Field,
    moments: Moments,
    scheme: str = "uniform-phase",
    *,
    omega: float | None = None,
    width: int | None = None,
    depth: int | None = None,
    target_db: float | None = None,
    seconds: float | None = None,
) -> Blueprint:
    """The network that `fit(signal)` starts from, as laws.

    **Arguments:**

    - `field`, `moments`: what is fitted.
    - `scheme`: the initialization, with the options that a fit by the default rule has.
    - `omega`: the frequency ω of the sines, if the scheme has one. Default: the scheme's own.
    - `width`, `depth`: Default: `default_size`, with `target_db` and `seconds`.

    !!! example
        ```python
        blueprint = default_blueprint(field, estimate_moments(field))
        ```
    """
    chosen, sizes = get_scheme(scheme), default_size(field, target_db, seconds) if width is None else (width, DEPTH)
    return chosen.blueprint(
        moments,
        width=sizes[0],
        depth=sizes[1] if depth is None else depth,
        **chosen.fit,
        **chosen.frequencies(omega, sound=getattr(field, "medium", None) == "sound"),
    )


def default_sampling(field: Field, parameters: int) -> Sampling:
    """As what to fit the samples of a field: as averages over their cells, or as values at points.

    Averages, if the samples are averages and the network has at least as many parameters as the field has known values:
    then it could otherwise overshoot between the samples. Where it has fewer, points give the same at half the cost.

    **Arguments:**

    - `field`: what is fitted.
    - `parameters`: of the network.

    !!! example
        ```python
        default_sampling(load("camera", size=16), 10_000)  # "averages"
        ```
    """
    if not isinstance(field, Grid) or field.sampling == "points":
        return "points"
    missing = 0 if field.missing is None else int(field.missing.sum())
    return "averages" if parameters >= (field.samples - missing) * field.out_size else "points"


def default_rate(network: Layered) -> float:
    """The rate of `unit_muon`: 0.25 divided by the number of hidden layers plus the input layer, for any width.

    Every layer changes by about that fraction of its own size in a step, and the changes of all layers add up in the
    phases of the last one.

    !!! example
        ```python
        default_rate(network)  # 0.05 at depth 4
        ```
    """
    return 0.25 / (1 + _hidden_layers(network))


def _hidden_layers(network: Layered) -> int:
    return sum(layer.role == "hidden" for layer in network.layers)


def default_recipe(
    field: Observed | None,
    network: Layered | None,
    *,
    noisy: bool = False,
    draws: int = 1,
    steps: int | None = None,
    batch: int | None = None,
) -> Recipe:
    """The default recipe, which follows from the size of the signal.

    Muon in the units of the signal at `default_rate`, falling along a cosine to a thousandth, with 8,192 samples per
    step, or half as many averages over cells. The number of steps grows with the square root of the number of values,
    from 400 to 1,000.

    Values at points that the network can hold, with a hidden weight for each, can be fitted ever closer. If they take
    several batches, and each is visited 40 times or more, what is left of the error follows the rate: there it falls
    exponentially, from 5 times the rate of other fits, and no more than tenfold in 20 visits.

    **Arguments:**

    - `field`: what is fitted: a field, or a term with a number of samples. `None`: one without, such as an equation.
    - `network`: one whose layers have roles. `None`: any other network, which is trained by Adam at 1e-3.
    - `noisy`: whether the fit is to end at the noise of the signal. It then takes steps of a tenth of the size: the
        network would otherwise be left with the unrest of large ones.
    - `draws`: positions for each sample: 1 for values at points, `Averages.draws` for averages.
    - `steps`, `batch`: other numbers of steps, and of samples in each, than those of the rule.

    !!! example
        ```python
        recipe = default_recipe(field, network)
        ```
    """
    values, samples = (math.inf, math.inf) if field is None else (field.samples * field.out_size, field.samples)
    optimizer, rate = ("adam", 1e-3) if network is None else ("muon", default_rate(network))
    rate *= NOISY_RATE if noisy else 1.0
    steps = 10 * round(float(np.clip(3.2 * math.sqrt(values), 400, 1000)) / 10) if steps is None else steps
    own = int(max(1, min(2 * BATCH // max(2, draws), samples)))
    batch = own if batch is None else batch
    final, fall = FINAL, "cosine"
    weights = 0 if network is None else _hidden_layers(network) * network.width**2
    visits = steps * batch / samples
    if weights >= values and max(own, batch) < samples and visits >= HELD_LEAST and draws == 1 and not noisy:
        rate, final, fall = HELD_RATE * rate, held_final(visits), "exponential"
    return Recipe(optimizer, rate, final, steps, batch, fall)


def held_final(visits: float) -> float:
    """The last rate of an exponential fall, as a fraction of the first, by the number of visits of each sample."""
    return max(FINAL, 0.1 ** (visits / HELD_TENFOLD))


def paper_recipe(field: Field, *, steps: int = 3000, learning_rate: float = 1e-4) -> Recipe:
    """The paper's protocol for images: full-batch Adam at a constant rate.

    !!! example
        ```python
        recipe = paper_recipe(field)
        ```
    """
    return Recipe("adam", learning_rate, 1.0, steps, field.samples)


def position_moments(domain: Field | Sequence[Extent]) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the covariance of the positions of a field, or of all positions in a box."""
    if isinstance(domain, Grid | Points):
        return domain.position_moments()
    box = np.asarray(domain, dtype=np.float64)
    if box.ndim != 2 or box.shape[1] != 2 or not np.isfinite(box).all() or not (box[:, 0] < box[:, 1]).all():
        raise ValueError(f"domain is {domain!r}; pass a field, or a finite (low, high) with low < high per coordinate")
    return box.mean(axis=1), np.diag((box[:, 1] - box[:, 0]) ** 2 / 12)


class Units(NamedTuple):
    """The units in which the first and the last layer of a network are trained: x̄, B, F and the channels' spreads.

    x has the mean x̄ and the covariance C over the samples, B Bᵀ = C⁻¹ and F Fᵀ = 2Σ_ε/N.
    """

    center: Any  # (in_size,), an array of any framework
    input_factor: Any  # (in_size, in_size)
    output_factor: Any  # (out_size, out_size)
    offset: Any  # (out_size,)

    @staticmethod
    def of(domain: Field | Sequence[Extent], moments: Moments, width: int) -> "Units":
        """The units of a signal for a network of width N, as NumPy arrays in float64.

        **Arguments:**

        - `domain`: the field, or without data the interval `(low, high)` of every coordinate.
        - `moments`: of the signal.
        - `width`: N, the number of inputs of the last layer.
        """
        return Units.at(position_moments(domain), moments, width)

    @staticmethod
    def at(positions: tuple[np.ndarray, np.ndarray], moments: Moments, width: int) -> "Units":
        """`of`, from the mean and the covariance of the positions."""
        center, covariance = positions
        require_dimensions(covariance)
        return Units(
            center,
            np.linalg.cholesky(np.linalg.inv(covariance)),
            np.linalg.cholesky(2 * moments.regularized_covariance / width),
            np.sqrt(np.diag(moments.regularized_covariance)),
        )
