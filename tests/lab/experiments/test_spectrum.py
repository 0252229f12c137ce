import numpy as np

from helpers import fakes
from uniphase.lab.experiments.spectrum import EXPERIMENT, SpectrumRun
from uniphase.lab.runs import execute
from uniphase.lab.store import Store


def test_the_protocol_is_the_papers():
    runs = EXPERIMENT.runs("paper", 1, Store("none"))
    assert {(run.width, run.networks, run.inputs) for run in runs} == {(256, 5, 10)}
    assert {run.depth for run in runs} == {4, 8, 16, 32}


def test_a_spectrum_its_row_and_its_figure(tmp_path):
    store = Store(tmp_path)
    record = execute(SpectrumRun("uniform-phase", 64, 4))
    spectrum = record.load()["spectrum"]
    assert spectrum.shape == (64,)
    assert (np.diff(spectrum) <= 0).all()
    m = record.metrics
    # 5 networks: Student's t with 4 degrees of freedom exceeds 13.03 with probability 2e-4
    assert abs(m["mean_square"] - 1) < 13.03 * m["mean_square_error"]
    store.put(record)
    (table,) = EXPERIMENT.tables("quick", 1, store)
    assert table.rows[0][:3] == ("uniform-phase", "4", f"{spectrum[0]:.3g}")
    assert table.rows[0][-2:] == (f"{m['mean_square_error']:.2g}", "1")
    assert len(EXPERIMENT.figures("quick", 1, store)["spectrum"].axes) == 4


def test_the_standard_error_is_that_of_the_mean_over_seeds(tmp_path):
    store = Store(tmp_path)
    keys = ("largest", "median", "smallest", "mean_square")
    for seed, error in enumerate((0.3, 0.4)):
        run = SpectrumRun("uniform-phase", 64, 4, seed=seed)
        store.put(fakes.record(run, dict.fromkeys(keys, 1.0) | {"mean_square_error": error}))
    (table,) = EXPERIMENT.tables("quick", 2, store)
    assert table.rows[0][-2:] == ("0.25", "2")


def test_one_layer_has_no_jacobian_but_the_identity():
    """∂h_1/∂h_1: all singular values are one, whatever the scheme."""
    np.testing.assert_array_equal(execute(SpectrumRun("sm20", 8, 1, networks=2)).load()["spectrum"], np.ones(8))
