"""Run an experiment on a SLURM cluster: one job for each GPU, as many as the queue gives.

Needs `pip install "uniphase[distributed,lab]" dask-jobqueue` in an environment that all nodes see, and a store that all
see. Start it on the login node, in tmux or a small job of its own. If it ends before the work does, start it again.

    python slurm.py omega-sweep --jobs 16 --store /shared/lab --walltime 12:00:00 --seeds 3
"""

import argparse
import subprocess
import sys
from pathlib import Path

import dask.config
from dask_jobqueue.slurm import SLURMCluster

# A job that the queue ends is no fault of the run in it, and a worker gives no sign of life while a step is compiled.
SETTINGS = {"distributed.scheduler.allowed-failures": 100, "distributed.scheduler.worker-ttl": None}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Run an experiment on a SLURM cluster.", epilog="Other options go to `uniphase reproduce`."
    )
    parser.add_argument("experiment")
    parser.add_argument("--jobs", type=int, default=8, help="at most so many at a time")
    parser.add_argument("--store", required=True, help="a directory that all nodes see")
    parser.add_argument("--walltime", default="12:00:00", help="of a job")
    parser.add_argument("--partition", help="of the cluster; default: SLURM's")
    parser.add_argument("--interface", help="network between the nodes, such as ib0")
    parser.add_argument("--data", help="directory with skin.tif and gt_bach.wav, for nodes without internet")
    options, others = parser.parse_known_args()
    with dask.config.set(SETTINGS):
        cluster = SLURMCluster(
            queue=options.partition,
            interface=options.interface,
            cores=1,
            processes=1,
            memory="16GB",
            walltime=options.walltime,
            job_cpu=4,
            job_extra_directives=["--gres=gpu:1"],
            job_script_prologue=[f"export UNIPHASE_DATA={options.data}"] if options.data else [],
        )
        with cluster:
            cluster.adapt(minimum_jobs=1, maximum_jobs=options.jobs)
            uniphase = Path(sys.executable).with_name("uniphase")  # of this environment, whether it is active or not
            command = [str(uniphase), "reproduce", options.experiment, "--preset", "paper", "--store", options.store]
            command += ["--engine", "dask", "--address", cluster.scheduler_address, *others]
            raise SystemExit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
