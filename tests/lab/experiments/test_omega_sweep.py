import math

import numpy as np
import pytest

from helpers.fakes import column, fill, record
from uniphase.lab.experiments.omega_sweep import BASELINES, EXPERIMENT, OMEGAS, BestRuns, leads
from uniphase.lab.fits import FitRun, ReferenceRun
from uniphase.lab.runs import identify
from uniphase.lab.store import Store

BEST = {"sm20": OMEGAS[7], "cvp26-0": OMEGAS[10], "cvp26-1": OMEGAS[9]}


def error(run):
    """A valley around the best ω₀."""
    omega = dict(run.options).get("omega")
    return 0.01 if omega is None else 0.01 * (1 + abs(math.log(omega / BEST[run.scheme])))


def test_the_frequencies_are_the_papers():
    assert len(OMEGAS) == 21
    assert [f"{omega:.4g}" for omega in (OMEGAS[0], OMEGAS[7], OMEGAS[10], OMEGAS[11], OMEGAS[-1])] == [
        "0.8208",
        "20.62",
        "82.08",
        "130.1",
        "8208",
    ]


def test_it_shares_runs_with_the_cameraman():
    from uniphase.lab.experiments.cameraman import EXPERIMENT as CAMERAMAN

    store = Store("none")
    ours = {identify(run) for run in EXPERIMENT.runs("paper", 1, store) if isinstance(run, FitRun)}
    theirs = [run for run in CAMERAMAN.runs("paper", 1, store) if getattr(run, "scheme", "") == "uniform-phase"]
    assert len(theirs) == 1
    assert identify(theirs[0]) in ours


def test_tables_and_figures(tmp_path):
    """Two of the images were run: minima are found and starred, and the other images are shown as not run."""
    store = Store(tmp_path)
    runs = [run for run in EXPERIMENT.runs("paper", 1, store) if run.signal.label in ("camera/gray", "skin/rgb")]
    fill(store, runs, error)
    gray, _, lab = EXPERIMENT.tables("paper", 1, store)
    row = dict(zip(gray.header, next(row for row in gray.rows if row[:2] == ("camera/gray", "sm20")), strict=True))
    assert row["MSE, paper"] == "0.002763"
    assert row["verdict on the MSE"] == "too few seeds"
    assert gray.rows[6][5] == "20.6"
    assert set(column(lab, "verdict on the MSE")) == {"not run", "needs no training"}
    answers = [table.notes[0].partition(": ")[2] for table in (gray, lab)]
    assert answers == [
        "0 of 1 with a complete sweep; in the paper 2 of 4.",  # a tie
        "no sweep is complete; in the paper 4 of 4.",
    ]
    # 0.01 / 0.002695
    assert gray.notes[1].endswith("our error is 3.711 of the printed one, on 1 of 4 images.")
    assert gray.notes[2].endswith("than all networks of the paper on 0 of 1.")
    assert len(lab.notes) == 2
    figures = EXPERIMENT.figures("paper", 1, store)
    assert sorted(figures) == ["best-omega-gray", "best-omega-rgb", "omega-sweep"]
    sweep = figures["omega-sweep"]
    assert len(sweep.axes) == 12
    camera = next(axes for axes in sweep.axes if axes.get_title() == "camera/gray")
    stars = [float(np.asarray(line.get_xdata())[0]) for line in camera.lines if line.get_marker() == "*"]
    assert stars == [BEST[scheme] for scheme in BASELINES]
    assert [line.get_linestyle() for line in camera.lines].count("--") == 1
    assert len(figures["best-omega-gray"].axes) == 5


def test_the_least_error_leads():
    assert leads({"uniform-phase": 1.0, "sm20": 2.0, "cvp26-0": math.nan})
    assert not leads({"uniform-phase": 1.0, "sm20": 2.0, "cvp26-0": 0.5})
    assert not leads({"uniform-phase": math.nan, "sm20": math.nan})


def test_an_error_is_the_mean_over_seeds_that_did_not_diverge():
    run = EXPERIMENT.runs("paper", 1, Store("none"))[0]
    records = [record(run, {"eval_mse": error}) for error in (0.1, None, 0.3)]
    assert BestRuns(records, [], 1, 1).error == pytest.approx(0.2, rel=1e-12)  # rounding
    assert math.isnan(BestRuns(records[1:2], [], 1, 1).error)


def test_a_sweep_that_is_not_complete_gets_no_verdict(tmp_path):
    store = Store(tmp_path)
    runs = [run for run in EXPERIMENT.runs("paper", 1, store) if run.signal.label == "camera/gray"]
    fill(store, [run for run in runs if not isinstance(run, ReferenceRun)][:9], error)
    table = EXPERIMENT.tables("paper", 1, store)[0]
    found = {row[1]: row[-1] for row in table.rows if row[0] == "camera/gray"}
    assert found["uniform-phase"] == "too few seeds"
    assert found["sm20"] == "partly run"
    assert found["cvp26-1"] == "not run"
    figure = EXPERIMENT.figures("paper", 1, store)["omega-sweep"]
    brick, camera = (axes for axes in figure.axes if axes.get_title() in ("camera/gray", "brick/gray"))
    assert (len(camera.lines), [line for line in camera.lines if line.get_marker() == "*"]) == (2, [])
    assert [text.get_text() for text in brick.texts] == ["not run"]


def test_networks_that_diverged_are_distinguished_from_those_not_run(tmp_path):
    """sm20 diverges at all but one ω₀, cvp26-0 and uniform-phase always; cvp26-1 never."""
    store = Store(tmp_path)
    runs = [run for run in EXPERIMENT.runs("paper", 1, store) if run.signal.label == "camera/gray"]
    ended = {"sm20": OMEGAS[:1], "cvp26-1": OMEGAS}
    fill(store, runs, lambda run: 0.01 if dict(run.options).get("omega") in ended.get(run.scheme, ()) else math.nan)
    table = EXPERIMENT.tables("paper", 1, store)[0]
    rows = {row[1]: dict(zip(table.header, row, strict=True)) for row in table.rows if row[0] == "camera/gray"}
    assert [row["verdict on the MSE"] for row in rows.values()][:4] == [
        "diverged",
        "too few seeds",
        "diverged",
        "too few seeds",
    ]
    assert rows["sm20"]["of 21 ω₀"] == "21"
    assert table.notes[0].endswith(": 0 of 1 with a complete sweep; in the paper 2 of 4.")
    assert not any("our error is" in note for note in table.notes)
    figures = EXPERIMENT.figures("paper", 1, store)
    assert [len(axes.lines) for axes in figures["omega-sweep"].axes if axes.get_title() == "camera/gray"] == [4]
    words = [axes.get_xlabel() for axes in figures["best-omega-gray"].axes]
    assert words[1:] == ["diverged", "MSE 0.01, ω₀ = 0.8208", "diverged", "MSE 0.01, ω₀ = 0.8208"]


def test_networks_whose_pictures_are_not_stored_are_not_shown_as_blank(tmp_path):
    store = Store(tmp_path)
    (reference, ours, *_) = (run for run in EXPERIMENT.runs("paper", 1, store) if run.signal.label == "camera/gray")
    fill(store, [reference, ours])
    assert "best-omega-gray" in EXPERIMENT.figures("paper", 1, store)
    kept = store.get(ours)
    without = Store(tmp_path / "packed")
    fill(without, [reference])
    without.put(record(ours, kept.metrics, {}))
    assert sorted(EXPERIMENT.figures("paper", 1, without)) == ["omega-sweep"]
