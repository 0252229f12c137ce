"""A sweep of small real runs on Dask, whose workers, scheduler and driver are killed at random, and started again.

In the end every run has one record, whole and equal to that of a run in one process, and nothing else is there.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .children import scratch
from .records import ROOT, Part, Trial

RUNS, WORKERS = 6, 2
# The longest that a sweep may take, however often it is killed, and the longest between two kills.
PATIENCE, PAUSE = 600.0, 10.0


def sweep_runs() -> list:
    """The runs: fits of a small image by four schemes and more seeds."""
    from uniphase.lab.fits import FitRun, Signal

    signal_ = Signal("camera", "gray", 16)
    schemes = ("relu", "silu", "sm20", "uniform-phase")
    return [
        FitRun(signal_, schemes[k % len(schemes)], width=8, depth=1, steps=200, rate=1e-3, seed=k) for k in range(RUNS)
    ]


def drive(store: str, address: str | None) -> None:
    """What the driver does: all runs, on a cluster of its own or on one with an address."""
    from uniphase.lab.engine import reproduce
    from uniphase.lab.experiment import Experiment
    from uniphase.lab.store import Store

    runs = sweep_runs()
    experiment = Experiment("soak", "none", (lambda *_: runs,), lambda *_: [], lambda *_: {})
    where: dict[str, Any] = {"workers": WORKERS} if address is None else {"address": address}
    reproduce(experiment, "quick", 1, Store(store), engine="dask", **where)


@contextlib.contextmanager
def trials() -> Iterator[Callable[[Sequence[int]], Iterator[Trial]]]:
    with scratch() as base:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(base / "cache")
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        alone = base / "alone"
        program = "from benchmarks.soak.sweep import alone; alone"
        subprocess.run([sys.executable, "-c", f"{program}({str(alone)!r})"], check=True, cwd=ROOT)
        yield lambda seeds: (_trial(seed, base, alone) for seed in seeds)


def alone(store: str) -> None:
    """All runs in one process, for comparison."""
    from uniphase.lab.engine import reproduce
    from uniphase.lab.experiment import Experiment
    from uniphase.lab.store import Store

    runs = sweep_runs()
    experiment = Experiment("soak", "none", (lambda *_: runs,), lambda *_: [], lambda *_: {})
    reproduce(experiment, "quick", 1, Store(store))


def _trial(seed: int, base: Path, alone: Path) -> Trial:
    rng = np.random.default_rng([seed, 6])
    victim = ("worker", "driver", "scheduler")[seed % 3]
    store = base / "store"
    shutil.rmtree(store, ignore_errors=True)
    end, kills, wanted = time.monotonic() + PATIENCE, 0, int(rng.integers(1, 4))
    with contextlib.ExitStack() as stack:  # workers whose driver was killed may still be at work beside the next one's
        while time.monotonic() < end:
            cluster = stack.enter_context(Cluster(store, separate=victim == "scheduler"))
            while kills < wanted and not cluster.ends_within(rng.uniform(0.5, PAUSE)):
                kills += cluster.kill(victim, rng)
                if victim == "scheduler":  # the next one comes with a new driver
                    break
            if cluster.wait(end - time.monotonic() if victim != "scheduler" else 60.0) == 0:
                failure = difference(store, alone)
                return Trial(seed, f"{victim} killed", "failed" if failure else f"complete, kills: {kills}", failure)
    return Trial(seed, f"{victim} killed", "failed", f"not complete after {PATIENCE:.0f} s")


class Cluster(contextlib.AbstractContextManager):
    """A driver in a session of its own, with its cluster or with a scheduler and workers beside it."""

    def __init__(self, store: Path, *, separate: bool):
        self.processes: dict[str, list[subprocess.Popen]] = {"scheduler": [], "worker": []}
        address = None
        if separate:
            file = store.parent / "scheduler.json"
            file.unlink(missing_ok=True)
            self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
            address = self._address(file)
            for _ in range(WORKERS):
                self._start("worker", address, "--nthreads", "1")
        call = f"drive({str(store)!r}, {address!r})"
        program = f"from benchmarks.soak.sweep import drive\nif __name__ == '__main__': {call}"
        script = store.parent / "driver.py"
        script.write_text(program)
        self.driver = self._popen(sys.executable, str(script))

    def _popen(self, *command: str) -> subprocess.Popen:
        options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": path}
        return subprocess.Popen(command, **options, env=environment, start_new_session=True)

    def _start(self, role: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *words, "--no-dashboard"]
        self.processes[role].append(self._popen(*command))

    def _address(self, file: Path) -> str:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with contextlib.suppress(OSError, ValueError, KeyError):
                return json.loads(file.read_text())["address"]
            time.sleep(0.1)
        raise RuntimeError("the scheduler does not start")

    def ends_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.driver.wait(seconds)
            return True
        return False

    def kill(self, victim: str, rng: np.random.Generator) -> bool:
        """Kill a worker, which a nanny replaces; the driver with its scheduler; or a scheduler of its own."""
        if victim == "worker":
            pids = _descendants(self.driver.pid)
        else:
            pids = [(self.driver if victim == "driver" else self.processes["scheduler"][0]).pid]
        with contextlib.suppress(ProcessLookupError):
            if pids:
                os.kill(int(rng.choice(pids)), signal.SIGKILL)
                return True
        return False

    def wait(self, seconds: float) -> int | None:
        return self.driver.returncode if self.ends_within(max(1.0, seconds)) else None

    def __exit__(self, *_: object) -> None:
        everyone = [self.driver, *self.processes["scheduler"], *self.processes["worker"]]
        for process in everyone:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _descendants(pid: int) -> list[int]:
    """The processes that a process started, in any of its threads, and those that they started."""
    with contextlib.suppress(OSError):
        lists = [threads.read_text() for threads in Path(f"/proc/{pid}/task").glob("*/children")]
        mine = [int(child) for words in lists for child in words.split()]
        return mine + [other for child in mine for other in _descendants(child)]
    return []


def difference(store: Path, alone: Path) -> str | None:
    """What a store lacks or has beyond one that was filled in one process, or has in other bits."""
    found, expected = (_records(path) for path in (store, alone))
    if odd := {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()} ^ {
        str(path.relative_to(alone)) for path in alone.rglob("*") if path.is_file()
    }:
        return f"strays or missing files: {', '.join(sorted(odd))}"
    differs = [name for name in expected if found.get(name) != expected[name]]
    return f"other numbers in {', '.join(differs)}" if differs else None


def _records(store: Path) -> dict[str, object]:
    from uniphase.lab.store import Store

    return {
        record.identity: (
            record.metrics,
            {name: array.tobytes() for name, array in record.load().items()},
        )
        for record in Store(store).records()
    }


PART = Part("sweep", "a sweep on Dask, of which processes are killed up to three times", 50, 0.1, 3, trials)
