import pytest

from helpers.fakes import column, fake_fit, fake_reference, record
from uniphase.lab.experiments import audio, omega_sweep
from uniphase.lab.experiments.beyond import EXPERIMENT, DefaultRun
from uniphase.lab.fits import ReferenceRun, Signal
from uniphase.lab.store import Store
from uniphase.signals.datasets import load
from uniphase.signals.metrics import evaluate
from uniphase.signals.splines import cubic_spline

CAMERA = omega_sweep.signal_of("quick", "camera/gray")


@pytest.mark.parametrize("name", ["camera", "coffee"])
def test_a_small_image_is_fitted_by_the_default_rule(name):
    """The networks are measured on two fine grids, of which the second is shifted by up to 1.5 pixels."""
    found = DefaultRun(Signal(name, "gray", 16, 64)).compute().metrics
    assert found["steps"] == 400  # the least that the rule takes
    assert found["train_snr_db"] > 20
    assert 0 < found["centers_mse"] < found["eval_mse"] < 3 * found["centers_mse"]


def test_the_rule_is_part_of_the_identity():
    rule = DefaultRun(CAMERA).effective()["rule"]
    assert rule["sizes"][:2] == [[32, 3], [32, 3]]  # of 100 and 1,000 values
    assert rule["recipes"][0] == ["muon", 0.0625, 0.001, 400, 100]
    assert rule["scales"]["growth"] == 2.0
    held = DefaultRun(audio.PROTOCOLS["quick"].signal).effective()["rule"]
    assert held == rule | {"held": [5.0, 20, 40]}
    assert DefaultRun(audio.PROTOCOLS["paper"].signal).effective()["rule"] == rule


def test_tables_say_who_is_ahead(tmp_path):
    store = Store(tmp_path)
    protocol = omega_sweep.fit_of("quick", "camera/gray", "uniform-phase", None, 0)
    metrics = {"centers_mse": 0.045, "eval_mse": 0.2, "train_mse": 1e-6, "train_snr_db": 50.0, "steps": 600}
    store.put(fake_reference(ReferenceRun(CAMERA)))  # its error is 0.09
    store.put(fake_fit(protocol, 0.04))
    store.put(record(DefaultRun(CAMERA), metrics))
    bach = audio.PROTOCOLS["quick"].signal
    store.put(record(DefaultRun(bach), {"train_snr_db": 36.5, "train_mse": 1e-6, "steps": 600}))
    registered, as_printed, music = EXPERIMENT.tables("quick", 1, store)
    at = column(registered, "image").index("camera/gray")
    assert column(registered, "default / spline")[at] == "0.500"
    assert column(registered, "so")[at] == "at or below the spline"
    assert column(registered, "so").count("not run") == 11
    assert registered.notes[0] == "At or below the spline on 1 of 1 images; above the paper's protocol on 1."
    assert column(as_printed, "default fit")[at] == "0.2"
    assert music.rows[0][:3] == ("default fit", "—", "36.50")
    assert set(EXPERIMENT.figures("quick", 1, store)) == {"beyond"}


def test_the_spline_is_that_of_the_same_pixels():
    """What the default fit is compared with is made from the field that it is fitted to."""
    small, large = (load("camera", size=size, space="gray") for size in (32, 128))
    spline = ReferenceRun(CAMERA).compute().metrics["centers_mse"]
    assert evaluate(cubic_spline(small, large), large).mse == pytest.approx(spline, rel=1e-6)  # float32 images
