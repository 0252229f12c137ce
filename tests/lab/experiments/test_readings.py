import dataclasses

import jax
import numpy as np

from helpers.fakes import column, fill
from uniphase.lab.experiments.narrow import EXPERIMENT as NARROW
from uniphase.lab.experiments.readings import EXPERIMENT, SwappedFansRun
from uniphase.lab.fits import FitRun
from uniphase.lab.runs import identify
from uniphase.lab.store import Store

PRINTED = ("uniform-phase", "relu", "gelu", "silu", "cvp26-0", "sm20", "tanh-pe")


def test_only_the_reading_differs_from_the_narrow_networks():
    store = Store("none")
    runs = [run for run in EXPERIMENT.runs("paper", 1, store) if isinstance(run, FitRun)]
    narrow = {run.scheme: run for run in NARROW.runs("paper", 1, store) if isinstance(run, FitRun)}
    assert not {identify(run) for run in runs} & {identify(run) for run in narrow.values()}
    assert len({identify(run) for run in runs}) == len(runs) == 11
    assert sum(run.depth == 10 for run in runs) == 7
    for run in runs:
        same = dataclasses.replace(run, depth=11, options=())
        assert same.effective() == narrow[run.scheme].effective()


def test_swapped_fans_are_what_jax_draws_for_weights_with_outputs_first():
    (run,) = [run for run in EXPERIMENT.runs("paper", 1, Store("none")) if isinstance(run, SwappedFansRun)]
    for plan in run.blueprint().layers:
        drawn = jax.nn.initializers.he_uniform()(jax.random.key(1), (plan.rows, plan.columns), np.float32)
        largest, reach = np.abs(drawn).max(), plan.weight.half_width
        assert largest <= reach
        assert largest > reach * 1e-6 ** (1 / drawn.size)  # n uniform numbers all fall short of this once in 1e6


def test_both_readings_are_judged(tmp_path):
    store = Store(tmp_path)
    runs = [*NARROW.runs("paper", 3, store), *EXPERIMENT.runs("paper", 3, store)]
    fill(store, runs, lambda run: 10**-1.028 * (1 + 0.01 * run.seed) / (12 - run.depth))
    (table,) = EXPERIMENT.tables("paper", 3, store)
    (row,) = [row for row in table.rows if row[:2] == ("L counts the input layer", "uniform-phase")]
    assert row[2:] == ("10.28", "10.24 ± 0.04", "3", "inside the spread", "13.25 ± 0.04", "3", "better")
    assert column(table, "network") == [*PRINTED, "cvp26-0", "cvp26-0", "sm20", "relu"]
