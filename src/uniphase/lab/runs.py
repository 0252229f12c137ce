"""Runs and records: what is computed, and what is kept of it.

A run is a frozen dataclass, and its result a function of that alone. Its identity is a hash of its effective config, in
which all defaults are filled in, and of a version of the numerics; so runs that coincide are one.
"""

import functools
import hashlib
import json
import math
import platform
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

Preset = Literal["quick", "paper"]

# Goes up when the same config gives other numbers; records of earlier versions then count as not run.
NUMERICS = 1


class Outcome(NamedTuple):
    """What a run computes: numbers, which may be nested lists, and arrays."""

    metrics: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seconds: float


class Run(ABC):
    """Something to compute. Subclasses are frozen dataclasses with a `seed`, whatever else they have."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """A few words that tell it from the other runs of its experiment."""

    @abstractmethod
    def effective(self) -> dict[str, Any]:
        """All that the result depends on, as JSON can hold it."""

    @staticmethod
    @abstractmethod
    def compute_together(
        runs: Sequence[Any], checkpoint: Path | None, callback: Callable[[int], Any] | None
    ) -> list[Outcome]:
        """The outcomes of runs of one shape. Long ones keep a `checkpoint` and tell the `callback` their step."""

    @property
    def family(self) -> str:
        """Runs that a report counts together."""
        return self.kind

    @property
    def shape(self) -> Hashable:
        """Runs with the same shape can be computed together."""
        return self

    @property
    def work(self) -> int:
        """The number of its steps."""
        return 1

    @property
    def cost(self) -> str:
        """What the time of a step depends on, in words."""
        return self.kind

    @property
    def companions(self) -> "Sequence[Run]":
        """Runs that its tables and figures need beside it, if they are of the same experiment."""
        return ()

    @staticmethod
    def measure_step(runs: "Sequence[Any]") -> float | None:
        """Seconds of a step of runs of one shape together, measured now; `None` if it is not worth it."""
        return None


class LoneRun(Run):
    """A short run that gains nothing from company."""

    @abstractmethod
    def compute(self) -> Outcome:
        """The outcome."""

    @staticmethod
    def compute_together(
        runs: "Sequence[LoneRun]", checkpoint: Path | None, callback: Callable[[int], Any] | None
    ) -> list[Outcome]:
        return [run.compute() for run in runs]


def identify(run: Run) -> str:
    """The name of a run's record."""
    return _identity(run.kind, run.effective())


def _identity(kind: str, config: Mapping[str, Any]) -> str:
    content = {"numerics": NUMERICS, "kind": kind, "config": config}
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Record:
    """A run that was computed.

    - `identity`, `kind`, `config`: of the run, the config with all defaults filled in.
    - `metrics`: numbers, `None` where they are not finite.
    - `seconds`: how long it took. With `work` and `cost` of the run it tells how long others will take.
    - `provenance`: versions, device, commit and date.
    - `load`: gives the arrays.
    """

    identity: str
    kind: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    seconds: float
    cost: str
    work: int
    provenance: Mapping[str, Any]
    load: Callable[[], Mapping[str, np.ndarray]]

    @property
    def current(self) -> bool:
        """Whether it was made by the present version of the numerics."""
        return self.identity == _identity(self.kind, self.config)


def execute(run: Run) -> Record:
    """Compute one run."""
    return execute_together([run])[0]


def execute_together(
    runs: Sequence[Run], checkpoint: Path | None = None, callback: Callable[[int], Any] | None = None
) -> list[Record]:
    """Compute runs of one shape."""
    assert len({run.shape for run in runs}) == 1
    commit()  # that of the source that computes, whatever is checked out by the time that it is done
    outcomes = type(runs[0]).compute_together(runs, checkpoint, callback)
    return [_record(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]


def _record(run: Run, outcome: Outcome) -> Record:
    metrics, arrays, seconds = outcome
    return Record(
        identify(run),
        run.kind,
        run.effective(),
        finite(metrics),
        seconds,
        run.cost,
        run.work,
        provenance(),
        lambda: arrays,
    )


def finite(value: Any) -> Any:
    """The value with `None` for every number that is not finite, as JSON has none."""
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def provenance() -> dict[str, Any]:
    """Where and by what a record was made."""
    import jax

    device = jax.devices()[0]
    return {
        "versions": {name: version(name) for name in ("uniphase", "jax", "numpy")},
        "python": platform.python_version(),
        "device": f"{device.platform}: {_processor() if device.platform == 'cpu' else device.device_kind}",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the source that runs, with "-dirty" if it was changed; `None` if it is not a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
