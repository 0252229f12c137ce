from helpers.fakes import column, fill
from uniphase.lab.experiments.audio import EXPERIMENT
from uniphase.lab.fits import FitRun, Signal
from uniphase.lab.store import Store


def test_the_protocol_is_the_papers():
    runs = {run.scheme: run for run in EXPERIMENT.runs("paper", 1, Store("none")) if isinstance(run, FitRun)}
    assert {(run.width, run.depth, run.steps, run.rate) for run in runs.values()} == {(256, 5, 5000, 5e-5)}
    assert {run.signal for run in runs.values()} == {Signal("bach")}
    assert dict(runs["sm20"].options) == {"omega": 30.0, "hidden_omega": 30.0}
    assert dict(runs["cvp26-0"].options) == {"omega": 30.0}
    assert dict(runs["tanh-pe"].options) == {"std": 10.0}


def test_table_and_figure(tmp_path):
    store = Store(tmp_path)
    fill(store, EXPERIMENT.runs("paper", 3, store), lambda run: 1e-4 * (1 + 0.01 * run.seed))
    (table,) = EXPERIMENT.tables("paper", 3, store)
    assert column(table, "SNR dB, paper")[0] == "29.33"
    assert column(table, "verdict")[0] == "better"
    assert column(table, "SNR dB, paper")[1] == "nearly 20 dB below uniform-phase"
    figure = EXPERIMENT.figures("paper", 1, store)["audio"]
    assert len(figure.axes) == 2 * 8
