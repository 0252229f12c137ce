"""Section 4.4: is there an ω₀ that beats uniform-phase? 12 images, three baselines at 21 values of ω₀ each."""

import math
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...initialization.schemes import IMAGE_OMEGA
from ..experiment import Experiment, printed, titled
from ..fits import BASELINES, FitRun, ReferenceRun, Signal
from ..runs import Preset, Record, Run
from ..store import Store
from ..tables import MISSING, Table, spread, verdict
from .cameraman import Protocol, values
from .moments import task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OMEGAS = tuple(IMAGE_OMEGA * 10 ** (q / 5) for q in range(-10, 11))
SPACES = {"gray": "grayscale", "rgb": "RGB", "lab": "CIELAB"}
_SIZES: dict[Preset, tuple[int, int, Protocol]] = {
    "paper": (128, 512, Protocol(Signal(""), width=256, depth=11, steps=3000)),
    "quick": (32, 128, Protocol(Signal(""), width=32, depth=5, steps=200, rate=1e-3)),
}


def tasks() -> list[str]:
    return list(printed()["omega-sweep"])


def signal_of(preset: Preset, name: str) -> Signal:
    size, eval_size, _ = _SIZES[preset]
    return task(name, size, eval_size)


def fit_of(preset: Preset, name: str, scheme: str, omega: float | None, seed: int) -> FitRun:
    p = _SIZES[preset][2]
    options = () if omega is None else (("omega", omega),)
    return FitRun(signal_of(preset, name), scheme, p.width, p.depth, p.steps, p.rate, options, seed=seed)


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    runs: list[Run] = [ReferenceRun(signal_of(preset, name)) for name in tasks()]
    for seed in range(seeds):
        runs += [fit_of(preset, name, "uniform-phase", None, seed) for name in tasks()]
        runs += [
            fit_of(preset, name, scheme, omega, seed) for name in tasks() for scheme in BASELINES for omega in OMEGAS
        ]
    return runs


def sweep(preset: Preset, name: str, scheme: str, seed: int, store: Store) -> dict[float, Record]:
    """The records of a baseline by ω₀."""
    found = {omega: store.get(fit_of(preset, name, scheme, omega, seed)) for omega in OMEGAS}
    return {omega: record for omega, record in found.items() if record}


def best(records: dict[float, Record]) -> float:
    """The ω₀ with the lowest error; networks that diverged come last."""

    def error(omega: float) -> float:
        found = records[omega].metrics["eval_mse"]
        return math.inf if found is None else found

    return min(records, key=error)


class BestRuns(NamedTuple):
    """The best run of each seed.

    - `records`, `omegas`: of the best run, for every seed with any runs.
    - `fewest`, `total`: the number of runs of the least complete seed, and of a complete one.
    """

    records: list[Record]
    omegas: list[float]
    fewest: int
    total: int

    @property
    def complete(self) -> bool:
        return self.fewest == self.total

    @property
    def error(self) -> float:
        """The mean over the seeds that did not diverge; NaN if all did."""
        finite = [error for error in values(self.records, "eval_mse") if math.isfinite(error)]
        return statistics.fmean(finite) if finite else math.nan


def _find(preset: Preset, seeds: int, store: Store, name: str, scheme: str) -> BestRuns:
    if scheme == "uniform-phase":
        records = [record for seed in range(seeds) if (record := store.get(fit_of(preset, name, scheme, None, seed)))]
        return BestRuns(records, [], min(1, len(records)), 1)
    sweeps = [records for seed in range(seeds) if (records := sweep(preset, name, scheme, seed, store))]
    omegas = [best(records) for records in sweeps]
    records = [records[omega] for records, omega in zip(sweeps, omegas, strict=True)]
    return BestRuns(records, omegas, min(map(len, sweeps), default=0), len(OMEGAS))


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    header = ("image", "network", "MSE, paper", "ours", "ω₀, paper", "ours", "of 21 ω₀", "seeds", "verdict on the MSE")
    tables = []
    for space, words in SPACES.items():
        rows, found, splines = [], {}, {}
        for name in (name for name in tasks() if name.endswith(space)):
            found[name] = {s: _find(preset, seeds, store, name, s) for s in ("uniform-phase", *BASELINES)}
            rows += [_row(name, scheme, each, preset) for scheme, each in found[name].items()]
            reference = store.get(ReferenceRun(signal_of(preset, name)))
            if reference is not None:
                splines[name] = reference.metrics["eval_mse"]
            mse = f"{splines[name]:.5g}" if name in splines else MISSING
            rows.append((name, "bicubic", MISSING, mse, *[MISSING] * 4, "needs no training"))
        title = titled(f"Sweep over ω₀, {words}: the best test error of each network", preset)
        notes = [_who_leads(found), *(_against_print(found, splines) if preset == "paper" else []), _PARTLY]
        tables.append(Table(f"omega-sweep-{space}", title, header, tuple(rows), tuple(notes)))
    return tables


def _row(name: str, scheme: str, found: BestRuns, preset: Preset) -> tuple[str, ...]:
    theirs = printed()["omega-sweep"][name][scheme]
    errors = values(found.records, "eval_mse")
    if found.complete or not errors:
        judged = verdict(theirs["eval_mse"], errors, preset, lower_is_better=True)
    else:
        judged = "partly run"
    where = " ".join(f"{omega:.3g}" for omega in found.omegas) or MISSING
    count = MISSING if scheme == "uniform-phase" else str(found.fewest)
    cells = (name, scheme, theirs["eval_mse"], spread(errors, ".5g"), theirs.get("omega", MISSING), where, count)
    return (*cells, str(len(errors)), judged)


_PARTLY = "*Partly run*: the best ω₀ of a sweep is known, and judged, when all of its 21 networks were trained."


def _who_leads(found: Mapping[str, Mapping[str, BestRuns]]) -> str:
    """On how many images uniform-phase has the lowest error, in our runs and in the paper."""
    in_print = [leads({scheme: _print(name, scheme) for scheme in networks}) for name, networks in found.items()]
    ahead = [
        leads({scheme: each.error for scheme, each in networks.items()})
        for networks in found.values()
        if all(each.complete for each in networks.values())
    ]
    ours = f"{sum(ahead)} of {len(ahead)} with a complete sweep" if ahead else "no sweep is complete"
    theirs = f"in the paper {sum(in_print)} of {len(in_print)}"
    return f"Images on which matched moments have the least error of the four networks: {ours}; {theirs}."


def leads(errors: Mapping[str, float]) -> bool:
    """Whether uniform-phase has the lowest error; networks that diverged come last."""
    known = {scheme: math.inf if math.isnan(error) else error for scheme, error in errors.items()}
    return known.pop("uniform-phase") < min(known.values())


def _against_print(found: Mapping[str, Mapping[str, BestRuns]], splines: Mapping[str, float]) -> list[str]:
    """Our errors of uniform-phase relative to the printed ones, and the spline against all networks of the paper."""
    notes, ratios = [], []
    for name, networks in found.items():
        ratio = networks["uniform-phase"].error / _print(name, "uniform-phase")
        ratios += [ratio] if math.isfinite(ratio) else []
    if ratios:
        ends = " to ".join(dict.fromkeys(f"{ratio:.3f}" for ratio in (min(ratios), max(ratios))))
        words = f"{ends} of the printed one, on {len(ratios)} of {len(found)} images"
        notes.append(f"Matched moments: our error is {words}.")
    if splines:
        ahead = sum(error < min(_print(name, scheme) for scheme in found[name]) for name, error in splines.items())
        notes.append(
            f"The cubic spline has a smaller error than all networks of the paper on {ahead} of {len(splines)}."
        )
    return notes


def _print(name: str, scheme: str) -> float:
    return float(printed()["omega-sweep"][name][scheme]["eval_mse"])


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from ..plots import best_omegas, omega_sweep

    curves, ours = {}, {}
    for name in tasks():
        curves[name] = {scheme: sweep(preset, name, scheme, 0, store) for scheme in BASELINES}
        ours[name] = store.get(fit_of(preset, name, "uniform-phase", None, 0))
    if not any(ours.values()) and not any(any(by_scheme.values()) for by_scheme in curves.values()):
        return {}
    figures = {"omega-sweep": omega_sweep(titled("Test MSE against ω₀", preset), curves, ours, OMEGAS)}
    for space, words in SPACES.items():
        rows = {}
        for name in (name for name in tasks() if name.endswith(space)):
            reference = store.get(ReferenceRun(signal_of(preset, name)), needs="test")
            complete = {s: found for s, found in curves[name].items() if len(found) == len(OMEGAS)}
            chosen = {s: (best(found), found[best(found)]) for s, found in complete.items()}
            shown = [each for each in (ours[name], *(each for _, each in chosen.values())) if each is not None]
            if reference is not None and shown and all(map(_can_be_shown, shown)):
                rows[name] = reference, ours[name], chosen
        if rows:
            title = titled(f"Best ω₀, {words}", preset)
            figures[f"best-omega-{space}"] = best_omegas(title, rows, BASELINES)
    return figures


def _can_be_shown(record: Record) -> bool:
    """Whether the picture of a network is stored, or it has none because it diverged."""
    return record.metrics["eval_mse"] is None or "test" in record.load()


EXPERIMENT = Experiment("omega-sweep", "section 4.4, figure; appendices E and F", (_runs,), _tables, _figures)
