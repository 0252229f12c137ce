import numpy as np
import pytest

from helpers.fakes import column, fill
from uniphase.lab.experiments.cameraman import EXPERIMENT
from uniphase.lab.fits import FitRun, Signal
from uniphase.lab.store import Store


def test_the_protocol_is_the_papers():
    runs = [run for run in EXPERIMENT.runs("paper", 2, Store("none")) if isinstance(run, FitRun)]
    assert {(run.width, run.depth, run.steps, run.rate, run.epsilon) for run in runs} == {(256, 11, 3000, 1e-4, 1e-8)}
    assert {run.signal for run in runs} == {Signal("camera", "gray", 128, 512)}
    assert {run.seed for run in runs} == {0, 1}


def test_lines_are_judged_by_their_seeds(tmp_path):
    """An error of 10^-1.489 is the printed SNR of uniform-phase; sm20 has 6.80 dB in print, relu 12.05."""
    store, errors = Store(tmp_path), {"uniform-phase": 10**-1.489, "sm20": 0.1, "relu": 0.1}
    runs = [run for run in EXPERIMENT.runs("paper", 3, store) if getattr(run, "scheme", "sm20") in errors]
    fill(store, runs, lambda run: errors[run.scheme] * (1 + 0.01 * run.seed))
    (table,) = EXPERIMENT.tables("paper", 3, store)
    found = dict(zip(column(table, "network"), column(table, "verdict on the SNR"), strict=True))
    assert found["uniform-phase"] == "inside the spread"
    assert found["sm20"] == "better"
    assert found["relu"] == "worse"
    assert found["silu"] == "not run"
    assert found["bicubic"] == "needs no training"
    assert table.rows[0][5:7] == ("14.89", "14.85 ± 0.04")
    assert column(table, "seeds")[0] == "3"


def test_the_quick_preset_gets_no_verdict(tmp_path):
    store = Store(tmp_path)
    fill(store, EXPERIMENT.runs("quick", 1, store))
    (table,) = EXPERIMENT.tables("quick", 1, store)
    assert set(column(table, "verdict on the SNR")) == {"no verdict", "needs no training"}


def test_the_losses_of_all_seeds_are_drawn(tmp_path):
    store = Store(tmp_path)
    fill(store, EXPERIMENT.runs("paper", 3, store), lambda run: 10.0 ** -(1 + run.seed))
    figure = EXPERIMENT.figures("paper", 3, store)["cameraman-losses"]
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines][:2] == ["uniform-phase (3 seeds)", "cvp26-0 (3 seeds)"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.geomspace(1, 0.01, 10), rtol=1e-6)  # float32


@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_the_figure_has_truth_spline_and_all_schemes(preset, tmp_path):
    store = Store(tmp_path)
    fill(store, EXPERIMENT.runs(preset, 1, store))
    figure = EXPERIMENT.figures(preset, 1, store)["cameraman"]
    assert len(figure.axes) == 3 * (2 + 8)
    assert ("quick" in figure.get_suptitle()) == (preset == "quick")
    assert [axes.get_xlabel() for axes in figure.axes].count("SNR 20.00 dB") == 2 * 8
