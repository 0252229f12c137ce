import dataclasses
import gc
import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import pytest

from helpers.fakes import Sum
from uniphase.lab import engine
from uniphase.lab.engine import estimate, faster_together, groups, reproduce, select, worker_environments
from uniphase.lab.experiment import Experiment
from uniphase.lab.experiments import get_experiment
from uniphase.lab.fits import FitRun, Signal
from uniphase.lab.runs import Run, execute
from uniphase.lab.store import Store

TINY = FitRun(Signal("camera", "gray", 8), "relu", width=4, depth=1, steps=3, rate=1e-3)


def experiment(runs) -> Experiment:
    return Experiment("sums", "none", (lambda preset, seeds, store: runs,), lambda *_: [], lambda *_: {})


@pytest.fixture
def sums(tmp_path) -> list[Sum]:
    return [Sum(terms, str(tmp_path / "log")) for terms in range(6)]


def computed(run: Sum) -> list[int]:
    return [int(line) for line in Path(run.log).read_text().split()]


def test_what_is_stored_is_not_computed_again(tmp_path, sums):
    store, reports = Store(tmp_path / "store"), []
    store.put(execute(sums[2]))
    assert reproduce(experiment(sums), "quick", 1, store, callback=reports.append) == 5
    assert sorted(computed(sums[0])) == [0, 1, 2, 3, 4, 5]
    assert [progress.done for progress in reports] == [2, 3, 4, 5, 6]
    assert reproduce(experiment(sums), "quick", 1, store) == 0
    assert len(list(store.records())) == 6


def test_runs_that_coincide_are_computed_once(tmp_path):
    scalings = [dataclasses.replace(TINY, width=64, scaling=scaling) for scaling in ("standard", "lr", "lr+ll")]
    assert len(select(scalings, "")) == 1
    assert [run.scaling for run in select(scalings, "lr")] == ["lr"]  # by the label of any of them
    store = Store(tmp_path)
    assert reproduce(experiment(scalings), "quick", 1, store) == 1
    assert all(run in store for run in scalings)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_runs_are_selected_by_words(sums):
    assert select(sums, "terms=3 sum") == [sums[3]]
    assert select(sums, "terms=33") == []


def test_a_fit_is_selected_with_its_reference():
    """Its table needs the bicubic row, and its figure the image."""
    runs = get_experiment("cameraman").runs("quick", 1, Store("none"))
    assert [run.label for run in select(runs, "gelu")] == [
        "camera/gray bicubic",
        "camera/gray gelu N=64 L=11 rate=0.0001 standard seed=0",
    ]
    assert select([TINY], "relu") == [TINY]  # its experiment has no reference


def test_runs_of_one_shape_are_grouped_if_that_is_faster(sums, monkeypatch):
    monkeypatch.setattr("uniphase.lab.engine._TOGETHER", 4)
    asked = []

    def gain(candidates):
        asked.extend(candidates)
        return [candidate[0] in sums for candidate in candidates]

    fits = [dataclasses.replace(TINY, seed=seed) for seed in range(2)]
    alone = dataclasses.replace(TINY, width=5)
    assert groups([*sums, *fits, alone], gain) == [sums[:4], sums[4:], fits[:1], fits[1:], [alone]]
    assert asked == [sums[:4], fits]


def test_whether_it_is_faster_together_is_measured(monkeypatch):
    """Three together take the time of two: faster. Of four: slower. Never on a CPU, nor if memory runs out."""
    runs: list[Run] = [dataclasses.replace(TINY, seed=seed) for seed in range(3)]
    seconds = {1: 1.0, 3: 2.0}
    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    monkeypatch.setattr(FitRun, "measure_step", staticmethod(lambda runs: seconds[len(runs)]))
    assert not faster_together(runs)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    assert faster_together(runs)
    seconds[3] = 4.0
    assert not faster_together(runs)

    def exhaust(runs):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(FitRun, "measure_step", staticmethod(exhaust))
    assert not faster_together(runs)


@pytest.mark.parametrize("name", ["readings", "mup-sweep"])
def test_runs_of_one_shape_have_networks_of_one_shape(name, tmp_path):
    """Only numbers may differ."""

    def structure(run):
        plans = run.blueprint().layers
        return [(p.in_size, p.out_size, p.bias is None, p.activation, p.role, p.trainable) for p in plans]

    runs = get_experiment(name).runs("quick", 1, Store(tmp_path))
    several = [group for group in groups(runs, lambda groups: [True] * len(groups)) if len(group) > 1]
    assert several
    for group in several:
        assert all(structure(run) == structure(group[0]) for run in group), group[0].label


def test_there_is_a_worker_for_each_gpu(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'\necho 'GPU 1: B (UUID: y)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert worker_environments(None) == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}]
    assert [env["CUDA_VISIBLE_DEVICES"] for env in worker_environments(3)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert [env["CUDA_VISIBLE_DEVICES"] for env in worker_environments(None)] == ["5", "7"]
    for none in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        assert worker_environments(2) == [{}, {}]
    tool.unlink()
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert worker_environments(None) == [{}, {}]


@pytest.mark.parametrize("rate", [1e-3, 1e30])
def test_an_interrupted_run_goes_on_from_its_checkpoint(rate, tmp_path):
    """Also if it has diverged by then."""
    store, run = Store(tmp_path / "store"), dataclasses.replace(TINY, steps=1000, rate=rate)
    steps = []

    def stop(progress):
        steps.append(progress.step)
        if progress.step > 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(experiment([run]), "quick", 1, store, callback=stop)
    assert store.checkpoint([run]).exists()
    resumed = []
    reproduce(experiment([run]), "quick", 1, store, callback=lambda progress: resumed.append(progress.step))
    assert resumed[0] > steps[-1]
    assert not store.checkpoint([run]).exists()
    assert store.get(run).metrics == execute(run).metrics


def test_the_time_left_is_known_from_records_or_measured(tmp_path, sums, monkeypatch):
    store = Store(tmp_path / "store")
    store.put(execute(sums[0]))
    short, fits = estimate([*sums, TINY], store)
    assert (short.runs, short.stored, short.step_seconds, short.seconds_left) == (6, 1, 0.5, 2.5)
    assert fits.steps_left == 3
    assert fits.step_seconds > 0
    monkeypatch.setattr("uniphase.lab.engine.provenance", lambda: {"device": "another"})
    assert estimate(sums, store)[0].step_seconds is None  # records of other devices do not count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
        ({"address": "tcp://x"}, "address is 'tcp://x', but the engine is 'serial'; pass --engine dask"),
        ({"workers": 2}, "workers is 2, but the engine is 'serial'; pass --engine dask"),
        ({"workers": 0, "engine": "dask"}, "workers is 0; it must be positive"),
        ({"address": "there", "engine": "dask"}, r"address is 'there' \(.*\); pass that of a scheduler, as tcp://host"),
    ],
)
def test_contradictory_arguments_are_refused(arguments, message, tmp_path, sums):
    with pytest.raises(ValueError, match=message):
        reproduce(experiment(sums), "quick", **({"seeds": 1, "store": Store(tmp_path)} | arguments))


@pytest.mark.parametrize("error", ["concurrent.futures.CancelledError", "distributed.comm.CommClosedError"])
def test_a_scheduler_that_is_gone_is_one_line(error, sums):
    module, _, name = error.rpartition(".")

    class Lost:
        def result(self):
            raise getattr(importlib.import_module(module), name)

    with pytest.raises(OSError, match="the scheduler of the cluster is gone; start it and the same command again"):
        engine._result(Lost(), sums[:1])


def test_a_refused_address_leaves_no_client_behind(tmp_path, sums):
    """One that is collected while another is made would wait for a lock that the other holds, for ever."""
    from distributed import Client

    with pytest.raises(ValueError, match="address is 'there'") as _refused:  # which has all frames, and so the client
        reproduce(experiment(sums), "quick", 1, Store(tmp_path), engine="dask", address="there")
    assert not [thing for thing in gc.get_objects() if type(thing) is Client and thing.status != "closed"]


def test_without_dask_it_says_what_to_install(tmp_path, sums, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"needs distributed; pip install 'uniphase\[distributed\]'"):
        reproduce(experiment(sums), "quick", 1, Store(tmp_path), engine="dask")


# A driver in its own process. Its runs log their number, their process, and whether they were stored already. They have
# no provenance, which would load JAX in every process.
DRIVER = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
import uniphase.lab.runs
from uniphase.lab.engine import reproduce
from uniphase.lab.experiment import Experiment
from uniphase.lab.runs import Outcome, Run
from uniphase.lab.store import Store

uniphase.lab.runs.provenance = lambda: {"device": "none"}

@dataclass(frozen=True)
class Slow(Run):
    number: int
    directory: str
    kind = "slow"

    @property
    def label(self):
        return f"slow {self.number}"

    def effective(self):
        return {"number": self.number}

    @staticmethod
    def compute_together(runs, checkpoint, callback):
        (run,) = runs
        stored = run in Store(run.directory)
        with open(Path(run.directory, "log"), "a") as log:
            log.write(f"{run.number} {os.getpid()} {stored}\\n")
        time.sleep(0.3)
        return [Outcome({"number": run.number}, {}, 0.3)]

if __name__ == "__main__":
    directory = sys.argv[1]
    runs = [Slow(number, directory) for number in range(12)]
    experiment = Experiment("slow", "none", (lambda *_: runs,), lambda *_: [], lambda *_: {})
    print(reproduce(experiment, "quick", 1, Store(directory), engine="dask", workers=2))
"""


def log_lines(directory: Path) -> list[tuple[int, int, bool]]:
    path = directory / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(number), int(pid), stored == "True") for number, pid, stored in map(str.split, lines)]


def wait_for(condition, driver: subprocess.Popen, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert driver.poll() is None, driver.communicate()[1]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def test_killed_workers_and_a_killed_driver_lose_nothing(tmp_path):
    """Every run is stored once, none is lost, and none is computed that was stored."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    directory = tmp_path / "store"
    directory.mkdir()

    def start() -> subprocess.Popen:
        command = [sys.executable, str(script), str(directory)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = start()
    wait_for(lambda: len(log_lines(directory)) >= 2, first)
    victim = log_lines(directory)[-1][1]
    os.kill(victim, signal.SIGKILL)  # a worker, in the middle of a run
    wait_for(lambda: len(log_lines(directory)) >= 6, first)
    assert any(pid != victim for _, pid, _ in log_lines(directory)[2:])
    first.kill()  # the driver, with the scheduler
    first.communicate()
    stored = {record.metrics["number"] for record in Store(directory).records()}
    assert 0 < len(stored) < 12

    second = start()
    out, err = second.communicate(timeout=120)
    assert second.returncode == 0, err
    records = [record.metrics["number"] for record in Store(directory).records()]
    assert sorted(records) == list(range(12))
    lines = log_lines(directory)
    assert not any(was_stored for _, _, was_stored in lines)
    # What was stored when the driver died was begun by the first alone; twice were only those in flight at a kill:
    # one at the worker's, and one on each of two workers at the driver's.
    again = [number for number, count in Counter(number for number, _, _ in lines).items() if count > 1]
    assert len(again) <= 3
    assert int(out) <= 12 - len(stored)


def test_a_fit_on_a_cluster_with_an_address(tmp_path):
    """Another process gives the same numbers as this one."""
    from distributed import LocalCluster

    store = Store(tmp_path)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        assert reproduce(experiment([TINY]), "quick", 1, store, engine="dask", address=address) == 1
    assert store.get(TINY).metrics == execute(TINY).metrics
