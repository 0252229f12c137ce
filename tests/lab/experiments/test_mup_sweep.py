import math

import numpy as np
import pytest

from helpers.fakes import fill
from uniphase.lab.engine import reproduce
from uniphase.lab.experiments.mup_sweep import EXPERIMENT, best_omega
from uniphase.lab.experiments.omega_sweep import OMEGAS
from uniphase.lab.fits import FitRun
from uniphase.lab.store import Store

STAGE_ONE, STAGE_TWO = EXPERIMENT.stages


def error(run):
    """The best frequency is the fourth, and the best rate 2^-8."""
    detuning = abs(math.log(dict(run.options).get("omega", OMEGAS[3]) / OMEGAS[3]))
    return 0.01 * (1 + abs(math.log2(run.rate) + 8) + detuning)


def test_the_protocol_is_the_papers(tmp_path):
    runs = STAGE_TWO("paper", 1, Store(tmp_path))
    assert sorted({run.width for run in runs}) == [8, 16, 32, 64, 128, 256, 512]
    assert sorted({run.rate for run in runs}) == [2.0**k for k in range(-18, 3)]
    assert {(run.depth, run.steps, run.epsilon, run.signal.eval_size) for run in runs} == {(11, 3000, 0.0, None)}
    assert {(run.width, run.rate) for run in STAGE_ONE("paper", 1, Store(tmp_path))} == {(64, 1e-4)}


def test_stage_two_takes_the_frequencies_of_stage_one(tmp_path):
    store = Store(tmp_path)
    fill(store, STAGE_ONE("quick", 1, store), error)
    assert best_omega("quick", "sm20", 0, store) == OMEGAS[3]
    assert best_omega("quick", "sm20", 1, store) is None
    fill(store, [run for run in STAGE_ONE("quick", 2, store) if run.seed == 1], lambda run: math.nan)
    assert best_omega("quick", "sm20", 1, store) == OMEGAS[0]
    found = {(run.scheme, dict(run.options).get("omega")) for run in STAGE_TWO("quick", 1, store)}
    assert found == {("uniform-phase", None), *((scheme, OMEGAS[3]) for scheme in ("sm20", "cvp26-0", "cvp26-1"))}


def test_stage_two_waits_for_stage_one(tmp_path, monkeypatch):
    """Also if only some runs are selected; and it continues where it was stopped."""
    store = Store(tmp_path)
    computed = []

    def compute(runs, checkpoint, callback):
        computed.extend(runs)
        raise KeyboardInterrupt

    monkeypatch.setattr(FitRun, "compute_together", staticmethod(compute))
    first = STAGE_ONE("quick", 1, store)
    fill(store, first[1:], error)
    with pytest.raises(KeyboardInterrupt):
        reproduce(EXPERIMENT, "quick", 1, store)
    assert computed == first[:1]
    with pytest.raises(ValueError, match="mup-sweep: these runs depend on 1 that are not stored, such as 'camera/gray"):
        reproduce(EXPERIMENT, "quick", 1, store, only="sm20 N=8")
    with pytest.raises(KeyboardInterrupt):  # no dependencies
        reproduce(EXPERIMENT, "quick", 1, store, only="uniform-phase N=8")
    assert {run.scheme for run in computed[1:]} == {"uniform-phase"}
    with pytest.raises(KeyboardInterrupt):  # its dependencies are stored
        reproduce(EXPERIMENT, "quick", 1, store, only="cvp26-1 N=8")
    computed[1:] = []
    fill(store, first[:1], error)
    with pytest.raises(KeyboardInterrupt):
        reproduce(EXPERIMENT, "quick", 1, store)
    assert computed[1].width == 8


def test_a_best_rate_that_falls_with_the_width_has_a_range(tmp_path):
    """The best rate is 2^-8 at N = 8, and half of it at N = 16 and again at every doubling, on a grid of steps of 4."""
    store = Store(tmp_path)
    runs = [run for run in STAGE_TWO("quick", 1, store) if run.scheme == "uniform-phase"]
    fill(store, runs, lambda run: 0.01 * (1 + abs(math.log2(run.rate) + 8.1 + math.log2(run.width / 8))))
    transfer = EXPERIMENT.tables("quick", 1, store)[0]
    assert transfer.rows[0][3:-1] == ("-8", "-10", "-10", "-12", "-12", "-14", "6")
    assert "2 apart" in transfer.notes[0]


def test_a_frequency_is_known_when_all_were_run(tmp_path):
    store = Store(tmp_path)
    fill(store, STAGE_ONE("quick", 1, store)[1:], error)
    details = EXPERIMENT.tables("quick", 1, store)[1]
    assert {row[0]: row[1] for row in details.rows} == {
        "uniform-phase": "—",
        "sm20": "—",
        "cvp26-0": f"{OMEGAS[3]:.3g}",
        "cvp26-1": f"{OMEGAS[3]:.3g}",
    }


def test_the_best_rate_is_known_when_all_were_run(tmp_path):
    store = Store(tmp_path)
    curve = [run for run in STAGE_TWO("quick", 1, store) if run.scheme == "uniform-phase" and run.width == 8]
    fill(store, [run for run in curve if run.rate < 1 and run.scaling == "lr"], error)
    transfer, table = EXPERIMENT.tables("quick", 1, store)
    assert set(transfer.rows[0][3:-1]) == {"—"}
    assert table.rows[0][4:] == ("—", "—", "—", "—", "9", "0")
    axes = EXPERIMENT.figures("quick", 1, store)["mup-sweep-geometric"].axes
    assert len(axes) == 3  # without the networks of which nothing was run
    assert [line.get_marker() for line in axes[0].lines] == ["."]
    fill(store, [run for run in curve if run.scaling == "lr"], error)
    assert EXPERIMENT.tables("quick", 1, store)[0].rows[0][3:-1] == ("-8", "—", "—", "—", "—", "—", "—")  # no range


def test_tables_and_figures(tmp_path):
    store = Store(tmp_path)
    fill(store, STAGE_ONE("quick", 1, store), error)
    fill(store, [run for run in STAGE_TWO("quick", 1, store) if run.width in (8, 64)], error)
    transfer, table = EXPERIMENT.tables("quick", 1, store)
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert row["best η"] == row["best η, geometric"] == f"{2**-8:.3g}"
    assert (row["mean loss"], row["geometric mean loss"]) == ("0.01", "0.005")
    assert transfer.rows[0] == ("uniform-phase", "lr", "arithmetic", "-8", "—", "—", "-8", "—", "—", "0", "0")
    assert transfer.rows[1][2] == "geometric"
    assert transfer.latex().isascii()
    figures = EXPERIMENT.figures("quick", 1, store)
    assert sorted(figures) == ["mup-sweep-arithmetic", "mup-sweep-geometric"]
    axes = figures["mup-sweep-geometric"].axes
    assert len(axes) == 4 * 3
    stars = [float(np.asarray(line.get_xdata())[0]) for line in axes[0].lines if line.get_marker() == "*"]
    assert stars == [2**-8, 2**-8]
