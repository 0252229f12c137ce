"""`uniphase reproduce`: run the paper's experiments."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from . import terminal
from .options import STORE, Store


def reproduce(
    experiment: str,
    /,
    *,
    preset: Literal["quick", "paper"] = "quick",
    seeds: int = 1,
    only: str = "",
    engine: Literal["serial", "dask"] = "serial",
    address: str | None = None,
    workers: int | None = None,
    store: Store = STORE,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run an experiment of the paper, or the runs of it that are missing. Each run is stored as soon as it is done.

    For example:

        uniphase reproduce narrow --seeds 3
        uniphase reproduce all --preset paper --dry-run

    Parameters
    ----------
    experiment
        One of moments, theory, spectrum, narrow, readings, cameraman, audio, omega-sweep, mup-sweep, beyond;
        or all.
    preset
        "paper": exactly the paper's protocol. "quick": the same at a smaller size, in minutes.
    seeds
        Number of runs of each kind: seeds 0, 1, and so on.
    only
        Words that the name of a run must have, as --dry-run prints it, e.g. "camera/gray uniform-phase". The bicubic
        row that its table needs is included.
    engine
        "serial": in this process. "dask": on a cluster.
    address
        Address of a Dask scheduler. Default: a temporary cluster on this machine.
    workers
        Number of workers of a cluster on this machine. Default: one for each GPU, otherwise one for every four cores.
    dry_run
        Print the runs, which of them are stored, and an estimate of the time for the others, from a few steps of each
        kind.
    """
    from ..lab.engine import estimate, reproduce as compute, select
    from ..lab.experiments import EXPERIMENT_NAMES, get_experiment
    from ..lab.store import Store

    names = EXPERIMENT_NAMES if experiment == "all" else [experiment]
    chosen, records = [get_experiment(name) for name in names], Store(store)
    runs = select([run for each in chosen for run in select(each.runs(preset, seeds, records), only)], "")
    if not runs:
        raise ValueError(f"only is {only!r}, but no run has these words; --dry-run alone prints the names of the runs")
    if dry_run:
        terminal.print_plan([(run.label, run in records) for run in runs], estimate(runs, records))
        return
    try:
        for each in chosen:
            with terminal.lab_progress(each.name) as tell:
                places = {"engine": engine, "address": address, "workers": workers}
                done = compute(each, preset, seeds, records, only=only, callback=tell, **places)
            print(f"{each.name}: {done} runs computed; `uniphase report --store {store}` shows them", flush=True)
    except KeyboardInterrupt:
        print("uniphase: interrupted; the same command continues", file=sys.stderr)
        sys.exit(130)
