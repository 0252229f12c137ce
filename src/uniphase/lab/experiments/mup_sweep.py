"""Section 4.5: does the best learning rate transfer across widths?

Stage one finds the best ω₀ of each baseline at the base width, by the arithmetic mean of all losses. Stage two sweeps
the learning rate for every width and scaling. The paper's text uses the arithmetic mean of the losses and its figure
the geometric mean; here ω₀ is selected by the arithmetic mean, and tables and figures show both.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...initialization.schemes import IMAGE_OMEGA
from ..experiment import Experiment, titled
from ..fits import BASE_WIDTH, BASELINES, FitRun, Scaling, Signal
from ..runs import Preset, Record, Run
from ..store import Store
from ..tables import MISSING, Table
from .omega_sweep import OMEGAS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("uniform-phase", *BASELINES)
SCALINGS: tuple[Scaling, ...] = ("lr", "lr+ll", "standard")
Average = Literal["mean_loss", "geometric_mean_loss"]
AVERAGES: dict[Average, str] = {"mean_loss": "arithmetic", "geometric_mean_loss": "geometric"}


@dataclass(frozen=True)
class _Protocol:
    signal: Signal
    depth: int
    steps: int
    widths: tuple[int, ...]
    rates: tuple[float, ...]


_PROTOCOLS: dict[Preset, _Protocol] = {
    "paper": _Protocol(
        Signal("camera", "gray", 128), 11, 3000, (8, 16, 32, 64, 128, 256, 512), tuple(2.0**k for k in range(-18, 3))
    ),
    "quick": _Protocol(
        Signal("camera", "gray", 32), 4, 150, (8, 16, 32, 64, 128, 256), tuple(2.0**k for k in range(-18, 3, 2))
    ),
}


def _sweep(preset: Preset, scheme: str, seed: int) -> list[FitRun]:
    """A baseline at the base width: one run per ω₀."""
    p = _PROTOCOLS[preset]
    return [
        FitRun(p.signal, scheme, BASE_WIDTH, p.depth, p.steps, 1e-4, (("omega", omega),), epsilon=0.0, seed=seed)
        for omega in OMEGAS
    ]


def _stage_one(preset: Preset, seeds: int, store: Store) -> list[Run]:
    return [run for seed in range(seeds) for scheme in BASELINES for run in _sweep(preset, scheme, seed)]


def _dependencies(preset: Preset, run: Run) -> list[Run]:
    """The runs of stage one that determine the ω₀ of a run of stage two."""
    assert isinstance(run, FitRun)
    if run.scheme not in BASELINES or run in (first := _sweep(preset, run.scheme, run.seed)):
        return []
    return list(first)


def best_omega(preset: Preset, scheme: str, seed: int, store: Store) -> float | None:
    """The ω₀ of a baseline with the lowest mean loss at the base width; the smallest ω₀ if all runs diverged.

    `None` if some of its runs are not stored, and for uniform-phase, which has no ω₀.
    """
    if scheme not in BASELINES:
        return None
    records = [store.get(run) for run in _sweep(preset, scheme, seed)]
    if not all(records):
        return None
    losses = [record.metrics["mean_loss"] for record in records if record]
    return min(zip(losses, OMEGAS, strict=True), key=lambda pair: math.inf if pair[0] is None else pair[0])[1]


def _fits(preset: Preset, scheme: str, scaling: Scaling, width: int, seed: int, omega: float | None) -> list[FitRun]:
    """A curve of the figure: one run per learning rate. While the best ω₀ is unknown, the default takes its place."""
    p = _PROTOCOLS[preset]
    options = (("omega", omega or IMAGE_OMEGA),) if scheme in BASELINES else ()
    return [
        FitRun(p.signal, scheme, width, p.depth, p.steps, rate, options, scaling, epsilon=0.0, seed=seed)
        for rate in p.rates
    ]


def _stage_two(preset: Preset, seeds: int, store: Store) -> list[Run]:
    runs = []
    for seed in range(seeds):
        for scheme in SCHEMES:
            omega = best_omega(preset, scheme, seed, store)
            for width in _PROTOCOLS[preset].widths:
                for scaling in SCALINGS:
                    runs += _fits(preset, scheme, scaling, width, seed, omega)
    return runs


def _curves(preset: Preset, scheme: str, scaling: Scaling, seed: int, store: Store) -> dict[int, dict[float, Record]]:
    """The records by width and rate; empty while the best ω₀ of a baseline is unknown."""
    omega = best_omega(preset, scheme, seed, store)
    if scheme in BASELINES and omega is None:
        return {width: {} for width in _PROTOCOLS[preset].widths}
    curves = {}
    for width in _PROTOCOLS[preset].widths:
        found = {run.rate: store.get(run) for run in _fits(preset, scheme, scaling, width, seed, omega)}
        curves[width] = {rate: record for rate, record in found.items() if record}
    return curves


def best_rate(preset: Preset, records: dict[float, Record], average: Average) -> float | None:
    """The rate with the lowest average loss; `None` if not all rates were run, or if all runs diverged."""
    if len(records) < len(_PROTOCOLS[preset].rates):
        return None
    known = {rate: record.metrics[average] for rate, record in records.items() if record.metrics[average] is not None}
    return min(known, key=lambda rate: known[rate], default=None)


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows, transfers = [], []
    for seed in range(seeds):
        for scheme in SCHEMES:
            omega = best_omega(preset, scheme, seed, store)
            where = MISSING if omega is None else f"{omega:.3g}"
            for scaling in SCALINGS:
                curves = _curves(preset, scheme, scaling, seed, store)
                for width, records in curves.items():
                    cells = (scheme, where, scaling, str(width), *_best(preset, records))
                    rows.append((*cells, str(len(records)), str(seed)))
                for average, words in AVERAGES.items():
                    transfers.append((scheme, scaling, words, *_transfer(preset, curves, average), str(seed)))
    header = ("network", "ω₀", "scaling", "N", "best η", "mean loss", "best η, geometric", "geometric mean loss")
    notes = ("The paper prints no figures here, so there is no verdict. At N = 64 the three scalings are one run.",)
    title = titled("Learning rates and width: the best rate by the average of all losses", preset)
    details = Table("mup-sweep", title, (*header, "rates", "seed"), tuple(rows), notes)
    title = titled("Does the best learning rate carry over? log₂ of the best rate at each width", preset)
    widths, rates = _PROTOCOLS[preset].widths, _PROTOCOLS[preset].rates
    header = ("network", "scaling", "mean", *(f"N = {width}" for width in widths), "range", "seed")
    step = f"{math.log2(rates[1] / rates[0]):.0f}"
    note = (
        "By the arithmetic mean of all losses, as in the paper's text, and by the geometric mean, as in its figure, "
        "where all rates were run. *Range*: from the least to the greatest, over the widths at which the best rate is "
        f"known; 0 if it carries over. The rates of the grid are {step} apart. The paper saw the best rate rise with "
        "the width under both scalings of μP, and fall under the standard one."
    )
    return [Table("mup-sweep-transfer", title, header, tuple(transfers), (note,)), details]


def _transfer(preset: Preset, curves: dict[int, dict[float, Record]], average: Average) -> list[str]:
    """The base-2 logarithms of the best rates by width, and their range if there are several."""
    rates = [best_rate(preset, records, average) for records in curves.values()]
    exponents = [math.log2(rate) for rate in rates if rate is not None]
    cells = [MISSING if rate is None else f"{math.log2(rate):.0f}" for rate in rates]
    return [*cells, f"{max(exponents) - min(exponents):.0f}" if len(exponents) > 1 else MISSING]


def _best(preset: Preset, records: dict[float, Record]) -> list[str]:
    """The best rate and its average loss, by the arithmetic and the geometric mean."""
    cells: list[str] = []
    for average in AVERAGES:
        rate = best_rate(preset, records, average)
        cells += [MISSING] * 2 if rate is None else [f"{rate:.3g}", f"{records[rate].metrics[average]:.4g}"]
    return cells


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from ..plots import learning_rates

    panels = {
        (scheme, scaling): _curves(preset, scheme, scaling, 0, store) for scheme in SCHEMES for scaling in SCALINGS
    }
    run = {scheme for (scheme, _), curves in panels.items() if any(curves.values())}
    panels = {key: curves for key, curves in panels.items() if key[0] in run}
    if not panels:
        return {}
    return {
        f"mup-sweep-{words}": learning_rates(
            titled(f"Learning rate against the {words} mean of the training losses", preset),
            panels,
            average,
            {
                key: {n: best_rate(preset, records, average) for n, records in curves.items()}
                for key, curves in panels.items()
            },
        )
        for average, words in AVERAGES.items()
    }


EXPERIMENT = Experiment(
    "mup-sweep", "section 4.5, figure of learning rates", (_stage_one, _stage_two), _tables, _figures, _dependencies
)
