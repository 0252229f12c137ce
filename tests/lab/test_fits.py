import dataclasses

import numpy as np
import pytest

from uniphase.lab.fits import FitRun, ReferenceRun, Signal, drawable, outer_edges
from uniphase.lab.runs import execute
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, axis_coordinates
from uniphase.signals.metrics import snr_db
from uniphase.signals.splines import cubic_spline

SIGNAL = Signal("camera", "gray", 12, 24)
RUN = FitRun(SIGNAL, "uniform-phase", width=8, depth=1, steps=4, rate=1e-2)


def test_a_fit_keeps_what_tables_and_figures_need():
    record = execute(RUN)
    assert set(record.metrics) == {f"{a}_{b}" for a in ("train", "eval", "centers") for b in ("mse", "snr_db")} | {
        "mean_loss",
        "geometric_mean_loss",
    }
    arrays = record.load()
    assert arrays["losses"].shape == (4,)
    assert record.metrics["mean_loss"] == pytest.approx(arrays["losses"].mean(), rel=1e-6)  # float32 sums
    assert record.metrics["train_mse"] < arrays["losses"][0]  # after the last update
    assert arrays["train"].shape == (12, 12, 1)
    assert arrays["test"].shape == (24, 24, 1)
    assert record.cost == "sine 1 × 8 on 144 samples"


def test_the_same_run_gives_the_same_bits():
    first, second = execute(RUN), execute(RUN)
    assert first.metrics == second.metrics
    np.testing.assert_array_equal(first.load()["losses"], second.load()["losses"])


def test_registered_pixels_lie_where_the_image_was_resized():
    """In units of coarse pixels, the centre of the fine pixel j of 24 is (j + ½)·12/24 - ½."""
    coarse = axis_coordinates(12, (-1.0, 1.0), "corners")
    fine = axis_coordinates(24, outer_edges((12,))[0], "centers")
    pixels = np.interp(fine[1:-1], coarse, np.arange(12))
    np.testing.assert_allclose(pixels, (np.arange(24) + 0.5)[1:-1] / 2 - 0.5, atol=1e-12)  # rounding


def test_a_diverged_fit_has_no_numbers_and_black_pictures():
    record = execute(dataclasses.replace(RUN, scheme="relu", rate=1e30, steps=6))
    assert record.metrics["eval_mse"] is None
    assert record.metrics["mean_loss"] is None
    assert not record.load()["test"].any()


def test_the_last_layer_is_scaled_in_one_scaling_alone():
    losses = {s: execute(dataclasses.replace(RUN, scaling=s)).load()["losses"] for s in ("standard", "lr", "lr+ll")}
    assert losses["standard"][0] == losses["lr"][0] != losses["lr+ll"][0]
    assert losses["standard"][-1] != losses["lr"][-1]


def test_the_reference_is_the_spline_on_both_grids():
    record = execute(ReferenceRun(SIGNAL))
    for name, align in (("eval", "corners"), ("centers", "centers")):
        coarse, fine = (load("camera", size=size, space="gray", align=align) for size in (12, 24))
        assert record.metrics[f"{name}_snr_db"] == pytest.approx(snr_db(cubic_spline(coarse, fine), fine.values))
    assert record.metrics["centers_snr_db"] > record.metrics["eval_snr_db"]  # since the paper's grids are misaligned
    assert set(record.load()) == {"train", "test", "spline"}


def test_colours_are_drawn_as_rgb():
    lab = load("astronaut", size=8, space="lab")
    rgb = load("astronaut", size=8, space="rgb")
    difference = drawable(lab.values, lab).astype(int) - np.round(255 * rgb.values)
    assert np.abs(difference).max() <= 1  # the two roundings


def test_a_part_of_a_sound_keeps_the_distance_between_samples(monkeypatch):
    whole = Grid(np.arange(101.0)[:, None], extents=(-100.0, 100.0), align="corners", medium="sound", rate=44100.0)
    monkeypatch.setattr("uniphase.lab.fits.load", lambda name, align: whole)
    part = Signal("bach", size=11).field()
    assert part.extents == ((-10.0, 10.0),)
    np.testing.assert_array_equal(part.values[:, 0], np.arange(45.0, 56.0))


def test_runs_that_differ_in_rates_and_frequencies_have_one_shape():
    runs = [RUN, dataclasses.replace(RUN, rate=1.0), dataclasses.replace(RUN, seed=1)]
    assert len({run.shape for run in runs}) == 1
    sines = [dataclasses.replace(RUN, scheme=s, options=(("omega", w),)) for s, w in (("sm20", 1.0), ("cvp26-1", 2.0))]
    assert len({run.shape for run in sines}) == 1
    assert dataclasses.replace(RUN, width=16).shape != RUN.shape


def test_a_step_can_be_measured():
    assert 0 < FitRun.measure_step([RUN]) < 60


def test_only_images_have_a_bicubic_spline():
    """The words are for reading; the identity of a record does not depend on them."""
    image, sound = ReferenceRun(SIGNAL), ReferenceRun(Signal("bach", size=100))
    assert (image.label, sound.label) == ("camera/gray bicubic", "bach cubic spline")
    assert set(image.effective()) == set(sound.effective()) == {"signal"}
