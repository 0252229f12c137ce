"""Engines: compute the runs that are not stored yet, in this process or on a cluster, and store each when it is done.

The process that computes a run stores it before reporting it, and a stored run is never computed again. So nothing is
lost when a machine fails, and the same command can be started again at any time, from anywhere.
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

# The most runs of one shape to compute together: a sweep over 21 rates or frequencies.
_TOGETHER = 21
# How many workers a group may lose before it is considered the cause, and how often it is retried after an error, such
# as a temporary failure of the file system.
_LOST_WORKERS, _RETRIES = 20, 3


class Progress(NamedTuple):
    """How many runs are done, including those that were stored before, and the step of the current one."""

    done: int
    total: int
    label: str
    step: int
    steps: int


ProgressCallback = Callable[[Progress], Any]


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
    callback: ProgressCallback | None = None,
) -> int:
    """Compute the runs of an experiment that are not stored yet, stage by stage.

    **Arguments:**

    - `experiment`, `preset`, `seeds`: what to run.
    - `store`: holds the records. With several machines, its directory must be shared by all of them.
    - `engine`: `"serial"` computes in this process, `"dask"` on a Dask cluster.
    - `address`: of the scheduler of a running cluster. Default: start a cluster on this machine.
    - `workers`: of the cluster on this machine. Default: one for each GPU, otherwise one for every four cores.
    - `only`: words that the label of a run must contain. The references of selected runs are computed as well.
    - `callback`: called with a `Progress`.

    **Returns:**

    The number of runs that were computed.
    """
    for name, value in (("address", address), ("workers", workers)):
        if value is not None and engine != "dask":
            raise ValueError(f"{name} is {value!r}, but the engine is {engine!r}; pass --engine dask")
    if workers is not None and (workers < 1 or address is not None):
        raise ValueError(f"workers is {workers}; it must be positive, and cannot be combined with --address")
    computed = 0
    for number in range(len(experiment.stages)):
        runs = select(experiment.stage(number, preset, seeds, store), only)
        missing = [run for run in runs if run not in store]
        require_dependencies(experiment, preset, missing, store)
        job = missing, store, len(runs) - len(missing), callback or (lambda progress: None)
        if missing and engine == "serial":
            _serial(*job)
        elif missing:
            _distributed(*job, address, workers)
        computed += len(missing)
    return computed


def require_dependencies(experiment: Experiment, preset: Preset, runs: Sequence[Run], store: Store) -> None:
    """Raise unless all runs that these depend on are stored."""
    needed = dict.fromkeys(needed for run in runs for needed in experiment.dependencies(preset, run))
    missing = [run for run in needed if run not in store]
    if missing:
        raise ValueError(
            f"{experiment.name}: these runs depend on {len(missing)} that are not stored, such as "
            f"{missing[0].label!r}; run them first, without --only"
        )


def select(runs: Sequence[Run], only: str) -> list[Run]:
    """The runs whose label contains all the words, and their references, without duplicates."""
    words, by_identity = only.split(), {identify(run): run for run in runs}
    if not words:
        return list(by_identity.values())
    chosen = {identify(run): run for run in runs if all(word in run.label.split() for word in words)}
    references = {identify(reference) for run in chosen.values() for reference in run.references}
    return [chosen.get(key, run) for key, run in by_identity.items() if key in chosen or key in references]


def compute_missing(runs: Sequence[Run], directory: str, callback: Callable[[int], Any] | None = None) -> list[str]:
    """Compute and store those of the runs, all of one shape, that are not stored yet. Returns all identities."""
    store = Store(directory)
    missing = [run for run in runs if run not in store]
    if missing:
        checkpoint = store.checkpoint(missing)
        for record in execute_together(missing, checkpoint, callback):
            store.put(record)
        checkpoint.unlink(missing_ok=True)
    return [identify(run) for run in runs]


def groups(runs: Sequence[Run], gain: Callable[[list[list[Run]]], list[bool]]) -> list[list[Run]]:
    """Split runs into groups to compute together: runs of one shape if that is faster, otherwise single runs.

    `gain` is called once, with one candidate group for every shape that occurs several times, and returns for each of
    them whether computing it together is faster.
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
    """Whether runs of one shape take less time together than one after the other, by timing some steps of each.

    Never on a CPU, where one network keeps all cores busy: 21 in one program gain at most 3 % (benchmarks/README.md),
    which does not justify losing all of them when the process dies.
    """
    import jax

    if jax.default_backend() == "cpu":
        return False
    measure = type(runs[0]).measure_step
    try:
        alone, together = measure(runs[:1]), measure(runs)
    except jax.errors.JaxRuntimeError:  # out of memory
        return False
    return alone is not None and together is not None and together < len(runs) * alone


def _serial(runs: list[Run], store: Store, done: int, callback: ProgressCallback) -> None:
    total = done + len(runs)
    for group in groups(runs, lambda candidates: [faster_together(candidate) for candidate in candidates]):
        label, steps = group[0].label, group[0].work

        def report_step(step: int, label=label, steps=steps, done=done) -> None:
            callback(Progress(done, total, label, step, steps))

        compute_missing(group, str(store.directory), report_step)
        done += len(group)
        callback(Progress(done, total, label, steps, steps))


def _distributed(
    runs: list[Run], store: Store, done: int, callback: ProgressCallback, address: str | None, workers: int | None
) -> None:
    with _cluster(address, workers) as client:
        from distributed import as_completed

        client.wait_for_workers(1)  # jobs may wait in a queue
        total, of_future = done + len(runs), {}
        store.directory.mkdir(parents=True, exist_ok=True)

        def gain(candidates: list[list[Run]]) -> list[bool]:
            timings = [client.submit(faster_together, group, retries=_RETRIES, pure=False) for group in candidates]
            return [_result(future, group) for future, group in zip(timings, candidates, strict=True)]

        for group in groups(runs, gain):
            # Not pure, so that every call gets a new key: the store knows what is done, not the scheduler's cache.
            future = client.submit(compute_missing, group, str(store.directory.resolve()), retries=_RETRIES, pure=False)
            of_future[future] = group
        for future in as_completed(list(of_future)):
            group = of_future.pop(future)
            _result(future, group)
            _require_visible(group, store)
            done += len(group)
            callback(Progress(done, total, group[0].label, group[0].work, group[0].work))


def _result(future: "Future", group: list[Run]) -> Any:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        return future.result()
    except (CancelledError, CommClosedError) as error:
        raise OSError(
            "the scheduler of the cluster is gone; start it and the same command again, which keeps what is stored"
        ) from error
    except KilledWorker as error:
        raise OSError(
            f"{group[0].label}: several workers died while computing it; look into their logs, as it may need more "
            "memory than they have"
        ) from error


def _require_visible(group: list[Run], store: Store) -> None:
    for run in group:
        if run not in store:
            raise ValueError(
                f"{store.directory}: a run that a worker stored is not visible here; pass --store a directory that all "
                "machines share"
            )


@contextlib.contextmanager
def _cluster(address: str | None, workers: int | None) -> "Iterator[Client]":
    """Connect to the scheduler at the address, or to a cluster on this machine that lives as long as the block."""
    try:
        import dask.config
        from distributed import Client, Nanny, Scheduler, SpecCluster
    except ImportError as error:
        raise ValueError(f"the engine 'dask' needs {error.name}; pip install 'uniphase[distributed]'") from error
    # A busy worker may send no heartbeat for hours, and a lost worker is rarely the fault of its run.
    settings = {"distributed.scheduler.allowed-failures": _LOST_WORKERS, "distributed.scheduler.worker-ttl": None}
    with dask.config.set(settings):
        if address is not None:
            with _connect(address) as client:
                yield client
            return
        environments = worker_environments(workers)
        # By default Dask limits the memory of a worker with one thread to that of one core.
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
    from distributed.comm.addressing import get_address_host_port

    try:
        get_address_host_port(address)  # a Client that fails half-made may block the process when it is collected
    except ValueError as error:
        raise ValueError(f"address is {address!r} ({error}); pass that of a scheduler, as tcp://host:8786") from error
    return Client(address)


def worker_environments(workers: int | None) -> list[dict[str, str]]:
    """The environment variables of each worker on this machine: one per GPU, otherwise one for every four cores."""
    devices = gpus()
    if workers is None:
        workers = len(devices) or max(1, (os.cpu_count() or 1) // 4)
    return [{"CUDA_VISIBLE_DEVICES": devices[i % len(devices)]} if devices else {} for i in range(workers)]


def gpus() -> list[str]:
    """The NVIDIA GPUs of this machine that CUDA_VISIBLE_DEVICES allows, found without initializing CUDA."""
    if shutil.which("nvidia-smi") is None:
        return []
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [device for device in chosen.split(",") if device and not device.startswith("-")]  # -1 hides all
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return [str(i) for i, _ in enumerate(re.findall("^GPU ", listed.stdout, re.MULTILINE))]


class Estimate(NamedTuple):
    """Runs whose steps take equally long: their number, how many are stored, and the time of a step."""

    cost: str
    runs: int
    stored: int
    steps_left: int
    step_seconds: float | None

    @property
    def seconds_left(self) -> float:
        return self.steps_left * (self.step_seconds or 0.0)


def estimate(runs: Sequence[Run], store: Store) -> list[Estimate]:
    """Estimate the time left on this device, from its own records or else by timing some steps, per kind of run."""
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
    """The mean seconds per step of each cost, from the records of this device."""
    seconds: dict[str, float] = {}
    steps: dict[str, int] = {}
    here = provenance()["device"]
    for record in (record for record in store.records() if record.provenance["device"] == here):
        seconds[record.cost] = seconds.get(record.cost, 0.0) + record.seconds
        steps[record.cost] = steps.get(record.cost, 0) + record.work
    return {cost: seconds[cost] / steps[cost] for cost in seconds}
