"""Runs (what to compute) and records (the results that are kept).

A run is a frozen dataclass that determines its result completely. Its identity is a hash of its effective config, in
which all defaults are filled in, and of the version of the numerics. Runs with the same identity are computed once.
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

# Increment when the same config gives different numbers, beyond the rounding of sums in another order: records of
# earlier versions then no longer count.
NUMERICS = 1


class Outcome(NamedTuple):
    """The result of a run: numbers (possibly nested lists), arrays, and the computing time."""

    metrics: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seconds: float


class Run(ABC):
    """Something to compute. Subclasses are frozen dataclasses; those that draw random numbers have a `seed`."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def label(self) -> str:
        """Words that distinguish it from the other runs of its experiment; `--only` selects by them."""

    @abstractmethod
    def effective(self) -> dict[str, Any]:
        """The config that determines the result, with all defaults filled in, in JSON types."""

    @staticmethod
    @abstractmethod
    def compute_together(
        runs: Sequence[Any], checkpoint: Path | None, callback: Callable[[int], Any] | None
    ) -> list[Outcome]:
        """Compute runs of one shape. Long ones save a `checkpoint` and pass each step reached to `callback`."""

    @property
    def family(self) -> str:
        """The group under which the report counts it."""
        return self.kind

    @property
    def shape(self) -> Hashable:
        """Runs of equal shape can be computed together in one program."""
        return self

    @property
    def work(self) -> int:
        """The number of training steps."""
        return 1

    @property
    def cost(self) -> str:
        """Identifies runs whose steps take equally long; shown by `--dry-run`."""
        return self.kind

    @property
    def references(self) -> "Sequence[Run]":
        """Runs that it is compared with in tables and figures. `--only` selects them as well."""
        return ()

    @staticmethod
    def measure_step(runs: "Sequence[Any]") -> float | None:
        """Measure the seconds per step of runs of one shape computed together; `None` for runs without steps."""
        return None


class SingleRun(Run):
    """A short run, computed by itself."""

    @abstractmethod
    def compute(self) -> Outcome:
        """Compute the result."""

    @staticmethod
    def compute_together(
        runs: "Sequence[SingleRun]", checkpoint: Path | None, callback: Callable[[int], Any] | None
    ) -> list[Outcome]:
        return [run.compute() for run in runs]


def identify(run: Run) -> str:
    """The identity of a run, which is the name of its record."""
    return _identity(run.kind, run.effective())


def _identity(kind: str, config: Mapping[str, Any]) -> str:
    content = {"numerics": NUMERICS, "kind": kind, "config": config}
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Record:
    """The stored result of a run.

    - `identity`, `kind`, `config`: those of the run, the config with all defaults filled in.
    - `metrics`: numbers; `None` for those that are not finite.
    - `seconds`: the computing time. Together with `work` and `cost` it predicts the time of similar runs.
    - `provenance`: versions, device, commit and date.
    - `load`: loads the arrays.
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
        """Whether it was computed with the current version of the numerics."""
        return self.identity == _identity(self.kind, self.config)


def execute(run: Run) -> Record:
    """Compute one run."""
    return execute_together([run])[0]


def execute_together(
    runs: Sequence[Run], checkpoint: Path | None = None, callback: Callable[[int], Any] | None = None
) -> list[Record]:
    """Compute runs of one shape."""
    assert len({run.shape for run in runs}) == 1
    commit()  # cached before a long run, during which another commit may be checked out
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
    """The value with every infinity or NaN replaced by `None`, since JSON has neither."""
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def provenance() -> dict[str, Any]:
    """The versions, device, commit and date with which a record was computed."""
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
    """The commit of the running source, with "-dirty" if it has changes; `None` if it is not a Git checkout."""
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
