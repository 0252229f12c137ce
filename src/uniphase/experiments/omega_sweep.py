"""Section 4.3: is there an ω₀ that beats matched moments? 12 images, three baselines at 21 frequencies each."""

import math
from typing import TYPE_CHECKING

from ..schemes import IMAGE_OMEGA
from .cameraman import Protocol, values
from .experiment import Experiment, printed, titled
from .fits import FitRun, ReferenceRun, Signal
from .moments import task
from .runs import Preset, Record, Run
from .store import Store
from .tables import MISSING, RULE, Table, spread, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASELINES = ("sm20", "cvp26-0", "cvp26-1")
OMEGAS = tuple(IMAGE_OMEGA * 10 ** (q / 5) for q in range(-10, 11))
SPACES = {"gray": "grayscale", "rgb": "RGB", "lab": "CIELAB"}
_SIZES: dict[Preset, tuple[int, int, Protocol]] = {
    "paper": (128, 512, Protocol(Signal(""), width=256, depth=11, steps=3000)),
    "quick": (32, 128, Protocol(Signal(""), width=32, depth=5, steps=200, rate=1e-3)),
}


def tasks() -> list[str]:
    return list(printed()["omega-sweep"])


def _signal(preset: Preset, name: str) -> Signal:
    size, eval_size, _ = _SIZES[preset]
    return task(name, size, eval_size)


def _fit(preset: Preset, name: str, scheme: str, omega: float | None, seed: int) -> FitRun:
    p = _SIZES[preset][2]
    options = () if omega is None else (("omega", omega),)
    return FitRun(_signal(preset, name), scheme, p.width, p.depth, p.steps, p.rate, options, seed=seed)


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    runs: list[Run] = [ReferenceRun(_signal(preset, name)) for name in tasks()]
    for seed in range(seeds):
        runs += [_fit(preset, name, "uniform-phase", None, seed) for name in tasks()]
        runs += [
            _fit(preset, name, scheme, omega, seed) for name in tasks() for scheme in BASELINES for omega in OMEGAS
        ]
    return runs


def sweep(preset: Preset, name: str, scheme: str, seed: int, store: Store) -> dict[float, Record]:
    """The records of a baseline by their ω₀."""
    found = {omega: store.get(_fit(preset, name, scheme, omega, seed)) for omega in OMEGAS}
    return {omega: record for omega, record in found.items() if record}


def best(records: dict[float, Record]) -> float:
    """The ω₀ with the least error; a network that diverged has none, and comes last."""

    def error(omega: float) -> float:
        found = records[omega].metrics["eval_mse"]
        return math.inf if found is None else found

    return min(records, key=error)


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    header = ("image", "network", "MSE, paper", "ours", "ω₀, paper", "ours", "of 21 ω₀", "seeds", "verdict on the MSE")
    tables = []
    for space, words in SPACES.items():
        rows = []
        for name in (name for name in tasks() if name.endswith(space)):
            rows += [_row(preset, seeds, store, name, scheme) for scheme in ("uniform-phase", *BASELINES)]
            reference = store.get(ReferenceRun(_signal(preset, name)))
            mse = MISSING if reference is None else f"{reference.metrics['eval_mse']:.5g}"
            rows.append((name, "bicubic", MISSING, mse, *[MISSING] * 4, "needs no training"))
        title = titled(f"Sweep over ω₀, {words}: the best test error of each network", preset)
        tables.append(Table(f"omega-sweep-{space}", title, header, tuple(rows), (RULE, _PARTLY)))
    return tables


_PARTLY = "*Partly run*: the best ω₀ of a sweep is known, and judged, when all of its 21 networks were trained."


def _row(preset: Preset, seeds: int, store: Store, name: str, scheme: str) -> tuple[str, ...]:
    theirs = printed()["omega-sweep"][name][scheme]
    where, count, complete = MISSING, MISSING, True
    if scheme == "uniform-phase":
        records = [record for seed in range(seeds) if (record := store.get(_fit(preset, name, scheme, None, seed)))]
        errors = values(records, "eval_mse")
    else:
        sweeps = [records for seed in range(seeds) if (records := sweep(preset, name, scheme, seed, store))]
        chosen = [best(records) for records in sweeps]
        errors = values([records[omega] for records, omega in zip(sweeps, chosen, strict=True)], "eval_mse")
        where = " ".join(f"{omega:.3g}" for omega in chosen) or MISSING
        fewest = min(map(len, sweeps), default=0)
        count, complete = str(fewest), fewest in (0, len(OMEGAS))
    judged = verdict(theirs["eval_mse"], errors, preset, lower_is_better=True) if complete else "partly run"
    ours = spread(errors, ".5g")
    cells = (name, scheme, theirs["eval_mse"], ours, theirs.get("omega", MISSING), where, count)
    return (*cells, str(len(errors)), judged)


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from .pictures import best_omegas, omega_sweep

    curves, ours = {}, {}
    for name in tasks():
        curves[name] = {scheme: sweep(preset, name, scheme, 0, store) for scheme in BASELINES}
        ours[name] = store.get(_fit(preset, name, "uniform-phase", None, 0))
    if not any(ours.values()) and not any(any(by_scheme.values()) for by_scheme in curves.values()):
        return {}
    figures = {"omega-sweep": omega_sweep(titled("Test MSE against ω₀", preset), curves, ours)}
    for space, words in SPACES.items():
        rows = {}
        for name in (name for name in tasks() if name.endswith(space)):
            reference = store.get(ReferenceRun(_signal(preset, name)), needs="test")
            chosen = {s: (best(found), found[best(found)]) for s, found in curves[name].items() if found}
            if reference is not None and (ours[name] is not None or chosen):
                rows[name] = reference, ours[name], chosen
        if rows:
            title = titled(f"Best ω₀, {words}", preset)
            figures[f"best-omega-{space}"] = best_omegas(title, rows, BASELINES)
    return figures


EXPERIMENT = Experiment("omega-sweep", "section 4.3, figure and three tables; appendix F", (_runs,), _tables, _figures)
