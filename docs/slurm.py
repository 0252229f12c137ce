"""Run an experiment on a SLURM cluster, with one job per GPU.

Requires `pip install "uniphase[distributed]" dask-jobqueue` in an environment that all nodes share, and a store on a
shared file system. Start this script on the login node, in tmux or as a small job of its own. If it stops before the
experiment is complete, start it again: runs that are stored are not computed again.

    python slurm.py omega-sweep --jobs 16 --store /shared/lab --walltime 12:00:00 --seeds 3
"""

import argparse

import dask.config
from dask_jobqueue.slurm import SLURMCluster

from uniphase.cli import main as uniphase

# When the queue ends a job, its run is not to blame; and a worker sends no heartbeat while JAX compiles.
SETTINGS = {"distributed.scheduler.allowed-failures": 100, "distributed.scheduler.worker-ttl": None}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Run an experiment on a SLURM cluster.", epilog="Other options are passed to `uniphase reproduce`."
    )
    parser.add_argument("experiment")
    parser.add_argument("--jobs", type=int, default=8, help="maximum number of simultaneous jobs")
    parser.add_argument("--store", required=True, help="directory that all nodes share")
    parser.add_argument("--walltime", default="12:00:00", help="time limit of a job")
    parser.add_argument("--partition", help="partition of the cluster; default: that of SLURM")
    parser.add_argument("--interface", help="network interface that connects the nodes, such as ib0")
    parser.add_argument("--data", help="directory with skin.tif and gt_bach.wav, for nodes without internet access")
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
            command = ["reproduce", options.experiment, "--preset", "paper", "--store", options.store]
            uniphase([*command, "--engine", "dask", "--address", cluster.scheduler_address, *others])


if __name__ == "__main__":
    main()
