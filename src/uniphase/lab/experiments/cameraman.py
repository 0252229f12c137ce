"""Section 4.1: the Cameraman image, trained on 128² samples and tested on 512², with every scheme."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..experiment import Experiment, printed, titled
from ..fits import FitRun, ReferenceRun, Signal
from ..runs import Preset, Record, Run
from ..store import Store
from ..tables import MISSING, Table, spread, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In the paper's order. The paper has cvp26-1 only in the sweep over ω₀.
SCHEMES = ("uniform-phase", "cvp26-0", "cvp26-1", "sm20", "relu", "silu", "gelu", "tanh-pe")


@dataclass(frozen=True)
class Protocol:
    """The signal, network size and training of a preset."""

    signal: Signal
    width: int
    depth: int
    steps: int
    rate: float = 1e-4


def experiment(name: str, artefact: str, title: str, protocols: Mapping[Preset, Protocol]) -> Experiment:
    """An experiment that fits an image with every scheme."""

    def fit(preset: Preset, scheme: str, seed: int) -> FitRun:
        p = protocols[preset]
        return FitRun(p.signal, scheme, p.width, p.depth, p.steps, p.rate, seed=seed)

    def runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
        fits = [fit(preset, scheme, seed) for seed in range(seeds) for scheme in SCHEMES]
        return [ReferenceRun(protocols[preset].signal), *fits]

    def tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
        rows = []
        for scheme in SCHEMES:
            records = [record for seed in range(seeds) if (record := store.get(fit(preset, scheme, seed)))]
            rows.append(_row(scheme, records, printed()[name].get(scheme, {}), preset))
        reference = store.get(ReferenceRun(protocols[preset].signal))
        if reference is not None:
            ours = {key: f"{value:.6f}" if "mse" in key else f"{value:.2f}" for key, value in reference.metrics.items()}
            cells = ("bicubic", MISSING, "0.000000", MISSING, ours["eval_mse"], MISSING, ours["eval_snr_db"])
            rows.append((*cells, ours["centers_snr_db"], MISSING, "needs no training"))
        header = ("network", "train MSE, paper", "ours", "eval MSE, paper", "ours", "SNR dB, paper", "ours")
        header = (*header, "SNR dB, pixels registered", "seeds", "verdict on the SNR")
        return [Table(name, titled(title, preset), header, tuple(rows), (_GRIDS,))]

    def figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
        from ..plots import image_comparison, losses

        reference = store.get(ReferenceRun(protocols[preset].signal), needs="test")
        shown = {scheme: record for scheme in SCHEMES if (record := store.get(fit(preset, scheme, 0), needs="test"))}
        if reference is None or not shown:
            return {}
        curves = {
            scheme: [r for seed in range(seeds) if (r := store.get(fit(preset, scheme, seed), needs="losses"))]
            for scheme in shown
        }
        return {
            name: image_comparison(titled(title, preset), reference, shown),
            f"{name}-losses": losses(titled(f"{title}: training MSE", preset), curves),
        }

    return Experiment(name, artefact, (runs,), tables, figures)


_GRIDS = (
    "The paper's two grids both end at ±1, although the image is resized about the centres of its pixels, so that they "
    "are shifted against each other by up to 1.5 fine pixels. *Pixels registered* measures the same networks with the "
    "fine pixels where they belong. *bicubic* is the cubic spline through the training samples."
)


def values(records: list[Record], key: str) -> list[float]:
    """A metric of several records; NaN where a run diverged."""
    return [math.nan if (value := record.metrics[key]) is None else value for record in records]


def _row(scheme: str, records: list[Record], theirs: Mapping[str, str], preset: Preset) -> tuple[str, ...]:
    cells = [scheme]
    for key, digits in (("train_mse", ".6f"), ("eval_mse", ".6f"), ("eval_snr_db", ".2f")):
        cells += [theirs.get(key, MISSING), spread(values(records, key), digits)]
    judged = verdict(theirs.get("eval_snr_db"), values(records, "eval_snr_db"), preset, lower_is_better=False)
    return (*cells, spread(values(records, "centers_snr_db"), ".2f"), str(len(records)), judged)


EXPERIMENT = experiment(
    "cameraman",
    "section 4.1, table and figure of the Cameraman image",
    "Cameraman, one network per scheme",
    {
        "paper": Protocol(Signal("camera", "gray", 128, 512), width=256, depth=11, steps=3000),
        "quick": Protocol(Signal("camera", "gray", 64, 256), width=64, depth=11, steps=400),
    },
)
