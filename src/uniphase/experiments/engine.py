"""Engines: runs that are not stored yet are computed, here or on many machines, and stored one by one.

A run is stored by the process that computed it before anything is reported, and never computed if it is stored. So it
does not matter where a machine fails or who starts the command again.
"""

import contextlib
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from .experiment import Experiment
from .runs import Preset, Run, execute_together, identify
from .store import Store

if TYPE_CHECKING:
    from distributed import Client

Engine = Literal["serial", "dask"]

# Runs of one shape that go together on a GPU, which a small network does not fill: a sweep over 21 rates or
# frequencies. On a CPU it is no faster (see protocol.py), and what is computed one by one is lost one by one.
_TOGETHER = 21
# How often a group may lose its worker before it is taken for the cause, and how often it is tried again after an
# error, as of a file system that hiccups.
_LOST_WORKERS, _RETRIES = 20, 3


class Progress(NamedTuple):
    """Runs done of all, counting those stored before, and where the latest stands."""

    done: int
    total: int
    label: str
    step: int
    steps: int


Tell = Callable[[Progress], Any]


def reproduce(
    experiment: Experiment,
    preset: Preset,
    seeds: int,
    store: Store,
    *,
    engine: Engine = "serial",
    address: str | None = None,
    workers: int | None = None,
    only: str = "",
    callback: Tell | None = None,
) -> int:
    """Compute the runs of an experiment that are not stored yet, stage by stage.

    **Arguments:**

    - `experiment`, `preset`, `seeds`: what to run.
    - `store`: where records are and go. With several machines, a directory that all of them see.
    - `engine`, `address`: in this process, or on a Dask cluster: that of a scheduler, or one started for the purpose.
    - `workers`: of a cluster that is started. Default: one for each GPU, otherwise one for every four cores.
    - `only`: words that the label of a run must have.
    - `callback`: told of the progress.

    **Returns:**

    The number of runs computed.
    """
    for name, value in (("address", address), ("workers", workers)):
        if value is not None and engine != "dask":
            raise ValueError(f"{name} is {value!r}, but the engine is {engine!r}; pass --engine dask")
    if workers is not None and (workers < 1 or address is not None):
        raise ValueError(f"workers is {workers}; it must be positive, and is not for a cluster that has an address")
    computed = 0
    for number in range(len(experiment.stages)):
        require_stages(experiment, number, preset, seeds, store)
        runs = select(experiment.stage(number, preset, seeds, store), only)
        missing = [run for run in runs if run not in store]
        job = missing, store, len(runs) - len(missing), callback or (lambda progress: None)
        if missing and engine == "serial":
            _serial(*job)
        elif missing:
            _distributed(*job, address, workers)
        computed += len(missing)
    return computed


def require_stages(experiment: Experiment, number: int, preset: Preset, seeds: int, store: Store) -> None:
    """A stage may begin when all runs of those before it are stored."""
    for earlier in range(number):
        missing = sum(run not in store for run in experiment.stage(earlier, preset, seeds, store))
        if missing:
            raise ValueError(
                f"{experiment.name}: stage {number + 1} depends on {missing} runs of stage {number} that are not "
                "stored; run them first, without --only"
            )


def select(runs: Sequence[Run], only: str) -> list[Run]:
    """The runs whose label has all the words, each once, though several may coincide."""
    words = only.split()
    return list({identify(run): run for run in runs if all(word in run.label.split() for word in words)}.values())


def compute_stored(runs: Sequence[Run], directory: str, tell: Callable[[int], Any] | None = None) -> list[str]:
    """Compute those of some runs of one shape that are not stored, store them, and return the identities of all."""
    store = Store(directory)
    missing = [run for run in runs if run not in store]
    if missing:
        checkpoint = store.checkpoint(missing)
        for record in execute_together(missing, checkpoint, tell):
            store.put(record)
        checkpoint.unlink(missing_ok=True)
    return [identify(run) for run in runs]


def groups(runs: Sequence[Run], together: int) -> list[list[Run]]:
    """Runs of one shape, so many at a time."""
    by_shape: dict[Any, list[Run]] = {}
    for run in runs:
        by_shape.setdefault(run.shape, []).append(run)
    return [same[i : i + together] for same in by_shape.values() for i in range(0, len(same), together)]


def _serial(runs: list[Run], store: Store, done: int, tell: Tell) -> None:
    total, together = done + len(runs), _TOGETHER if gpus() else 1
    for group in groups(runs, together):
        label, steps = group[0].label, group[0].work

        def stepped(step: int, label=label, steps=steps, done=done) -> None:
            tell(Progress(done, total, label, step, steps))

        compute_stored(group, str(store.directory), stepped)
        done += len(group)
        tell(Progress(done, total, label, steps, steps))


def _distributed(
    runs: list[Run], store: Store, done: int, tell: Tell, address: str | None, workers: int | None
) -> None:
    with _cluster(address, workers) as client:
        from distributed import KilledWorker, as_completed

        client.wait_for_workers(1)  # those of a queue may take their time
        together = _TOGETHER if max(cast(dict[str, int], client.run(gpus)).values(), default=0) else 1
        total, of_future = done + len(runs), {}
        store.directory.mkdir(parents=True, exist_ok=True)
        for group in groups(runs, together):
            # A key of its own for every attempt: the store says what is done, not the scheduler's memory.
            future = client.submit(compute_stored, group, str(store.directory.resolve()), retries=_RETRIES, pure=False)
            of_future[future] = group
        for future in as_completed(list(of_future)):
            group = of_future.pop(future)
            try:
                future.result()
            except KilledWorker as error:
                raise OSError(
                    f"{group[0].label}: its workers died, one after the other; look into their logs, as it may need "
                    "more memory than they have"
                ) from error
            _require_visible(group, store)
            done += len(group)
            tell(Progress(done, total, group[0].label, group[0].work, group[0].work))


def _require_visible(group: list[Run], store: Store) -> None:
    for run in group:
        if run not in store:
            raise ValueError(
                f"{store.directory}: a worker stored a run that is not seen here; pass --store a directory that all "
                "machines share"
            )


@contextlib.contextmanager
def _cluster(address: str | None, workers: int | None) -> "Iterator[Client]":
    """A client of a scheduler, or of a cluster of this machine that ends with the block."""
    try:
        import dask.config
        from distributed import Client, Nanny, Scheduler, SpecCluster
    except ImportError as error:
        raise ValueError(f"the engine 'dask' needs {error.name}; pip install 'uniphase[distributed]'") from error
    # A worker is busy for hours without a sign of life, and runs that lose a worker are not to blame for it.
    settings = {"distributed.scheduler.allowed-failures": _LOST_WORKERS, "distributed.scheduler.worker-ttl": None}
    with dask.config.set(settings):
        if address is not None:
            with Client(address) as client:
                yield client
            return
        environments = _environments(workers)
        specs = {i: {"cls": Nanny, "options": {"nthreads": 1, "env": env}} for i, env in enumerate(environments)}
        scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
        with (
            SpecCluster(workers=specs, scheduler=scheduler, silence_logs=cast(bool, logging.ERROR)) as cluster,
            Client(cluster) as client,
        ):
            yield client


def _environments(workers: int | None) -> list[dict[str, str]]:
    """What sets the workers of this machine apart: one for each GPU, otherwise one for every four cores."""
    devices = gpus()
    if workers is None:
        workers = devices or max(1, (os.cpu_count() or 1) // 4)
    return [{"CUDA_VISIBLE_DEVICES": str(i % devices)} if devices else {} for i in range(workers)]


def gpus() -> int:
    """The number of NVIDIA's GPUs in this machine, without taking hold of them."""
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


class Estimate(NamedTuple):
    """Runs whose steps take the same time: how many there are, how many are stored, and how long a step takes."""

    cost: str
    runs: int
    stored: int
    steps_left: int
    step_seconds: float | None

    @property
    def seconds_left(self) -> float:
        return self.steps_left * (self.step_seconds or 0.0)


def estimate(runs: Sequence[Run], store: Store) -> list[Estimate]:
    """The time that is left, from stored records or a few steps of each kind."""
    rows, known = [], _known_steps(store)
    by_cost: dict[str, list[Run]] = {}
    for run in runs:
        by_cost.setdefault(run.cost, []).append(run)
    for cost, same in by_cost.items():
        missing = [run for run in same if run not in store]
        seconds = known.get(cost)
        if seconds is None and missing:
            seconds = missing[0].measure_step()
        left = sum(run.work for run in missing)
        rows.append(Estimate(cost, len(same), len(same) - len(missing), left, seconds))
    return rows


def _known_steps(store: Store) -> dict[str, float]:
    """Seconds of a step by the records, all of one cost together."""
    seconds: dict[str, float] = {}
    steps: dict[str, int] = {}
    for record in store.records():
        seconds[record.cost] = seconds.get(record.cost, 0.0) + record.seconds
        steps[record.cost] = steps.get(record.cost, 0) + record.work
    return {cost: seconds[cost] / steps[cost] for cost in seconds}
