"""Appendix E: the moments of the 12 image tasks, compared with the printed values."""

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ...initialization.moments import EPSILON, estimate_moments
from ...signals.images import Space
from ..experiment import Experiment, printed
from ..fits import Signal
from ..runs import Outcome, Preset, SingleRun
from ..store import Store
from ..tables import MISSING, Table

_KEYS = ("mean", "covariance", "structure_tensor")


@dataclass(frozen=True)
class MomentsRun(SingleRun):
    """Estimate the moments of a signal as in the paper."""

    signal: Signal

    kind = "moments"

    @property
    def label(self) -> str:
        return self.signal.label

    def effective(self) -> dict[str, Any]:
        return {"signal": dict(vars(self.signal))}

    def compute(self) -> Outcome:
        begun = time.perf_counter()
        moments = estimate_moments(self.signal.field(), epsilon=EPSILON)
        metrics = {key: getattr(moments, key).tolist() for key in _KEYS}
        return Outcome(metrics, {}, time.perf_counter() - begun)


def task(name: str, size: int, eval_size: int | None = None) -> Signal:
    """The signal of a task, e.g. `camera/gray`."""
    image, space = name.split("/")
    spaces: dict[str, Space] = {"gray": "gray", "rgb": "rgb", "lab": "lab"}
    return Signal(image, spaces[space], size, eval_size)


def _runs(preset: Preset, seeds: int, store: Store) -> list[MomentsRun]:
    return [MomentsRun(task(name, 128)) for name in printed()["moments"]]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows, met, all_values = [], 0, 0
    for name, theirs in printed()["moments"].items():
        record = store.get(MomentsRun(task(name, 128)))
        texts = [text for key in _KEYS for text in np.ravel(theirs[key]).tolist()]
        if record is None:
            rows.append((name, str(len(texts)), MISSING, MISSING, "not run"))
            continue
        ours = [value for key in _KEYS for value in np.ravel(record.metrics[key]).tolist()]
        inside = [_rounds_to(value, text) for value, text in zip(ours, texts, strict=True)]
        met, all_values = met + sum(inside), all_values + len(inside)
        words = "inside the rounding" if all(inside) else "differs"
        rows.append((name, str(len(texts)), str(sum(inside)), _show(ours), words))
    note = f"{met} of {all_values} printed values are met: rounded to their digits, ours are the same."
    header = ("task", "printed values", "met", "ours: μ, Σ, Ω", "verdict")
    return [Table("moments", "Estimated moments of the 12 image tasks", header, tuple(rows), (note,))]


def _rounds_to(value: float, text: str) -> bool:
    """Whether the value rounds to the printed number; ties may be rounded up or down."""
    unit = Decimal(1).scaleb(int(Decimal(text).as_tuple().exponent))
    return abs(Decimal(value) - Decimal(text)) <= unit / 2


def _show(values: list[float]) -> str:
    return " ".join(f"{value:.5g}" for value in values)


EXPERIMENT = Experiment("moments", "appendix E, estimated parameters", (_runs,), _tables, lambda *_: {})
