"""Fake runs, records and figures, for tests of the laboratory that train nothing."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from uniphase.lab.fits import FitRun, ReferenceRun
from uniphase.lab.runs import Outcome, Record, Run, finite, identify
from uniphase.lab.store import Store

PROVENANCE = {"versions": {"uniphase": "0"}, "python": "3", "device": "cpu", "commit": None, "date": "2026-01-01"}


@dataclass(frozen=True)
class Sum(Run):
    """A trivial run that appends a line to the file `log` whenever it is computed."""

    terms: int
    log: str
    seed: int = 0

    kind = "sum"

    @property
    def label(self) -> str:
        return f"sum terms={self.terms}"

    @property
    def shape(self):
        return "sum"

    def effective(self) -> dict[str, Any]:
        return {"terms": self.terms, "seed": self.seed}

    @staticmethod
    def compute_together(runs, checkpoint, callback) -> list[Outcome]:
        for run in runs:
            with Path(run.log).open("a") as log:
                log.write(f"{run.terms}\n")
        return [Outcome({"sum": sum(range(run.terms))}, {"terms": np.arange(run.terms)}, 0.5) for run in runs]


def record(run: Run, metrics: dict[str, Any], arrays: dict[str, np.ndarray] | None = None) -> Record:
    return Record(
        identify(run), run.kind, run.effective(), metrics, 2.0, "fake", run.work, PROVENANCE, lambda: arrays or {}
    )


def picture(signal, size: int) -> np.ndarray:
    channels = 1 if signal.space == "gray" else 3
    return np.full((size, size, channels), 128, np.uint8)


def fake_fit(run: FitRun, error: float) -> Record:
    """The record of a fit with the given error (NaN: diverged) and with tiny images."""
    names = ("train", "eval", "centers")
    metrics = {f"{name}_mse": error for name in names} | {f"{name}_snr_db": -10 * math.log10(error) for name in names}
    metrics = finite(metrics | {"mean_loss": error, "geometric_mean_loss": error / 2})
    if run.signal.name == "bach":
        return record(run, metrics, {"train": np.zeros((1200, 1), np.float16)})
    losses = np.geomspace(1, error, 10, dtype=np.float32)
    return record(run, metrics, {"train": picture(run.signal, 4), "test": picture(run.signal, 8), "losses": losses})


def fake_reference(run: ReferenceRun) -> Record:
    if run.signal.name == "bach":
        return record(run, {}, {"train": np.ones((1200, 1), np.float16)})
    metrics = {"eval_mse": 0.1, "eval_snr_db": 10.0, "centers_mse": 0.09, "centers_snr_db": 10.5}
    sizes = {"train": 4, "test": 8, "spline": 8}
    return record(run, metrics, {name: picture(run.signal, size) for name, size in sizes.items()})


def fill(store: Store, runs, error=lambda run: 0.01) -> None:
    """Store fake records of fits and references. `error` gives the error of a fit."""
    for run in runs:
        store.put(fake_fit(run, error(run)) if isinstance(run, FitRun) else fake_reference(run))


def save_blank(figure, stem: Path) -> None:
    """Takes the place of `plots.save`: a PNG of one pixel and an empty PDF."""
    Image.new("L", (1, 1)).save(stem.with_suffix(".png"))
    stem.with_suffix(".pdf").touch()


def column(table, name: str) -> list[str]:
    return [row[table.header.index(name)] for row in table.rows]
