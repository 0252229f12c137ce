"""Engines: runs that are not stored yet are computed, here or on many machines, and stored one by one.

A run is stored by the process that computed it before anything is reported, and never computed if it is stored. So it
does not matter where a machine fails or who starts the command again.
"""

import contextlib
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from .experiment import Experiment
from .runs import Preset, Run, execute_together, identify, provenance
from .store import Store

if TYPE_CHECKING:
    from distributed import Client, Future

Engine = Literal["serial", "dask"]

# Runs of one shape that go together where that is faster: a sweep over 21 rates or frequencies.
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
    - `only`: words that the label of a run must have; its companions are computed with it.
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
        runs = select(experiment.stage(number, preset, seeds, store), only)
        missing = [run for run in runs if run not in store]
        require_forerunners(experiment, preset, missing, store)
        job = missing, store, len(runs) - len(missing), callback or (lambda progress: None)
        if missing and engine == "serial":
            _serial(*job)
        elif missing:
            _distributed(*job, address, workers)
        computed += len(missing)
    return computed


def require_forerunners(experiment: Experiment, preset: Preset, runs: Sequence[Run], store: Store) -> None:
    """Runs may be computed when those that they depend on are stored."""
    needed = dict.fromkeys(before for run in runs for before in experiment.forerunners(preset, run))
    missing = [run for run in needed if run not in store]
    if missing:
        raise ValueError(
            f"{experiment.name}: these runs depend on {len(missing)} that are not stored, such as "
            f"{missing[0].label!r}; run them first, without --only"
        )


def select(runs: Sequence[Run], only: str) -> list[Run]:
    """The runs whose label has all the words, and their companions; each once, though several may coincide."""
    words, all_of = only.split(), {identify(run): run for run in runs}
    chosen = {identify(run): run for run in runs if all(word in run.label.split() for word in words)}
    beside = {identify(run) for each in chosen.values() for run in each.companions}
    return [chosen.get(key, run) for key, run in all_of.items() if key in chosen or key in beside]


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


def groups(runs: Sequence[Run], gain: Callable[[list[list[Run]]], list[bool]]) -> list[list[Run]]:
    """Runs that are computed together: those of one shape, some at a time, if they `gain` by it; else each by itself.

    `gain` is asked once, with a group of every shape that several runs have.
    """
    by_shape: dict[Any, list[Run]] = {}
    for run in runs:
        by_shape.setdefault(run.shape, []).append(run)
    several = {shape: same[:_TOGETHER] for shape, same in by_shape.items() if len(same) > 1}
    gains = dict(zip(several, gain(list(several.values())), strict=True))
    parts = []
    for shape, same in by_shape.items():
        count = _TOGETHER if gains.get(shape) else 1
        parts += [same[i : i + count] for i in range(0, len(same), count)]
    return parts


def faster_together(runs: list[Run]) -> bool:
    """Whether runs of one shape take less time together than one after the other, by steps that are timed here.

    On a CPU one network keeps all cores busy: 21 in one program gain 3 % at most (benchmarks/README.md), which is not
    worth that they are lost together.
    """
    import jax

    if jax.default_backend() == "cpu":
        return False
    measure = type(runs[0]).measure_step
    try:
        alone, all_of_them = measure(runs[:1]), measure(runs)
    except jax.errors.JaxRuntimeError:  # they do not fit into its memory
        return False
    return alone is not None and all_of_them is not None and all_of_them < len(runs) * alone


def _serial(runs: list[Run], store: Store, done: int, tell: Tell) -> None:
    total = done + len(runs)
    for group in groups(runs, lambda candidates: [faster_together(candidate) for candidate in candidates]):
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
        from distributed import as_completed

        client.wait_for_workers(1)  # those of a queue may take their time
        total, of_future = done + len(runs), {}
        store.directory.mkdir(parents=True, exist_ok=True)

        def gain(candidates: list[list[Run]]) -> list[bool]:
            timed = [client.submit(faster_together, group, retries=_RETRIES, pure=False) for group in candidates]
            return [_result(future, group) for future, group in zip(timed, candidates, strict=True)]

        for group in groups(runs, gain):
            # A key of its own for every attempt: the store says what is done, not the scheduler's memory.
            future = client.submit(compute_stored, group, str(store.directory.resolve()), retries=_RETRIES, pure=False)
            of_future[future] = group
        for future in as_completed(list(of_future)):
            group = of_future.pop(future)
            _result(future, group)
            _require_visible(group, store)
            done += len(group)
            tell(Progress(done, total, group[0].label, group[0].work, group[0].work))


def _result(future: "Future", group: list[Run]) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise OSError(
            f"{group[0].label}: its workers died, one after the other; look into their logs, as it may need more "
            "memory than they have"
        ) from error


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
            with _connect(address) as client:
                yield client
            return
        environments = worker_environments(workers)
        # Dask would limit the memory of a worker by its threads, but a run takes all that it needs.
        options = {"nthreads": 1, "memory_limit": 0}
        specs = {i: {"cls": Nanny, "options": options | {"env": env}} for i, env in enumerate(environments)}
        scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
        with (
            SpecCluster(workers=specs, scheduler=scheduler, silence_logs=cast(bool, logging.ERROR)) as cluster,
            Client(cluster) as client,
        ):
            yield client


def _connect(address: str) -> "Client":
    from distributed import Client

    try:
        return Client(address)
    except ValueError as error:
        raise ValueError(f"address is {address!r} ({error}); pass that of a scheduler, as tcp://host:8786") from error


def worker_environments(workers: int | None) -> list[dict[str, str]]:
    """What sets the workers of this machine apart: one for each GPU, otherwise one for every four cores."""
    devices = gpus()
    if workers is None:
        workers = len(devices) or max(1, (os.cpu_count() or 1) // 4)
    return [{"CUDA_VISIBLE_DEVICES": devices[i % len(devices)]} if devices else {} for i in range(workers)]


def gpus() -> list[str]:
    """NVIDIA's GPUs in this machine, or those that the user has chosen of them, without taking hold of any."""
    if shutil.which("nvidia-smi") is None:
        return []
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [device for device in chosen.split(",") if device and not device.startswith("-")]  # -1: none
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return [str(i) for i, _ in enumerate(re.findall("^GPU ", listed.stdout, re.MULTILINE))]


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
    """The time that is left on this device, from records made by it or a few steps of each kind, one run at a time."""
    rows, known = [], _known_steps(store)
    by_cost: dict[str, list[Run]] = {}
    for run in runs:
        by_cost.setdefault(run.cost, []).append(run)
    for cost, same in by_cost.items():
        missing = [run for run in same if run not in store]
        seconds = known.get(cost)
        if seconds is None and missing:
            seconds = type(missing[0]).measure_step(missing[:1])
        left = sum(run.work for run in missing)
        rows.append(Estimate(cost, len(same), len(same) - len(missing), left, seconds))
    return rows


def _known_steps(store: Store) -> dict[str, float]:
    """Seconds of a step by the records of this device, all of one cost together."""
    seconds: dict[str, float] = {}
    steps: dict[str, int] = {}
    here = provenance()["device"]
    for record in (record for record in store.records() if record.provenance["device"] == here):
        seconds[record.cost] = seconds.get(record.cost, 0.0) + record.seconds
        steps[record.cost] = steps.get(record.cost, 0) + record.work
    return {cost: seconds[cost] / steps[cost] for cost in seconds}
