import inspect
import json
import math

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from uniphase.signals import metrics
from uniphase.signals.fields import Grid, Points, slabs
from uniphase.signals.metrics import Metrics, evaluate, psnr_db, snr_db, ssim

RNG = np.random.default_rng(0)


def _pair(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    truth = RNG.uniform(0, 1, shape).astype(np.float32)
    return truth + RNG.normal(0, 0.1, shape).astype(np.float32), truth


def test_decibels_of_known_ratios():
    truth = np.array([[-1.0], [1.0]])
    assert snr_db(0.9 * truth, truth) == pytest.approx(20, abs=1e-12)  # rounding of 0.1
    assert psnr_db(0.9 * truth, truth, (-1.0, 1.0)) == pytest.approx(20 + 10 * math.log10(4), abs=1e-12)
    assert snr_db(np.zeros((2, 1)), truth) == 0


@pytest.mark.parametrize("shape", [(500, 3), (1 << 12, 300)])  # one slab, and several
def test_decibels_equal_their_definition(shape):
    prediction, truth = _pair(*shape)
    error = np.mean((prediction.astype(np.float64) - truth) ** 2)
    # float64 sums in another order
    assert snr_db(prediction, truth) == pytest.approx(10 * np.log10(np.var(truth, dtype=np.float64) / error), rel=1e-12)
    assert psnr_db(prediction, truth, (0.0, 2.0)) == pytest.approx(10 * np.log10(4 / error), rel=1e-12)


def test_a_large_mean_costs_no_accuracy():
    truth = 1e6 + np.array([[0.0], [1.0]], np.float32)
    assert snr_db(truth + np.float32(0.5), truth) == 0


def test_integers_are_subtracted_as_numbers():
    truth = np.array([[0], [255]], np.uint8)
    assert psnr_db(truth[::-1], truth, (0.0, 255.0)) == 0


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_perfect_and_hopeless_predictions(value):
    constant = np.full((8, 8, 1), value)
    assert snr_db(constant, constant) == psnr_db(constant, constant, (0.0, 1.0)) == math.inf
    assert snr_db(constant + 1, constant) == -math.inf
    assert snr_db(constant + math.inf, constant) == -math.inf
    assert math.isnan(snr_db(constant + math.nan, constant))


@pytest.mark.parametrize(
    ("shape", "window"), [((50,), 7), ((6,), 5), ((20, 30), 7), ((4, 30), 3), ((3, 3), 3), ((8, 9, 10), 7)]
)
@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_is_that_of_skimage(shape, window, channels):
    prediction, truth = _pair(*shape, channels)
    expected = structural_similarity(
        prediction.astype(np.float64), truth.astype(np.float64), win_size=window, channel_axis=-1, data_range=2.0
    )
    assert ssim(prediction, truth, (-1.0, 1.0)) == pytest.approx(expected, rel=1e-12)  # sums in another order


@pytest.mark.parametrize("shape", [(500,), (40, 9), (5, 6, 30)])
@pytest.mark.parametrize("limit", [1, 100])
def test_ssim_does_not_depend_on_the_slabs(shape, limit, monkeypatch):
    prediction, truth = _pair(*shape, 2)
    whole = ssim(prediction, truth, (0.0, 1.0))
    monkeypatch.setattr(metrics, "slabs", lambda shape, **_: slabs(shape, limit))
    # float64 running sums of skimage start anew in each slab
    assert ssim(prediction, truth, (0.0, 1.0)) == pytest.approx(whole, rel=1e-9)


def test_ssim_needs_a_window_and_a_range():
    assert ssim(np.zeros((2, 50, 1)), np.zeros((2, 50, 1)), (0.0, 1.0)) is None
    assert ssim(np.zeros((50, 1)), np.zeros((50, 1)), (0.0, 0.0)) is None
    assert ssim(np.zeros((50, 1)), np.zeros((50, 1)), (0.0, 1.0)) == 1


def test_evaluate_over_all_channels_and_for_each():
    prediction, truth = _pair(12, 16, 3)
    field = Grid(truth, medium="rgb")
    result = evaluate(prediction, field)
    assert evaluate(prediction.reshape(-1, 3), field) == result
    assert result.snr_db == snr_db(prediction, truth)
    assert result.psnr_db == psnr_db(prediction, truth, (0.0, 1.0))
    assert result.ssim == ssim(prediction, truth, (0.0, 1.0))
    assert result.mse == pytest.approx(np.mean([channel.mse for channel in result.channels]), rel=1e-12)
    assert result.channels[1] == evaluate(prediction[..., 1:2], Grid(truth[..., 1:2], medium="gray"))
    assert [channel.channels for channel in result.channels] == [()] * 3


def test_evaluate_at_scattered_points():
    prediction, truth = _pair(100, 2)
    result = evaluate(prediction, Points(RNG.uniform(size=(100, 2)), truth))
    assert result.snr_db == snr_db(prediction, truth)
    assert result.psnr_db == psnr_db(prediction, truth, (float(truth.min()), float(truth.max())))
    assert result.ssim is None
    assert [channel.ssim for channel in result.channels] == [None, None]


def test_a_dict_fits_json():
    field = Grid(RNG.uniform(size=(8, 9, 1)), medium="gray")
    perfect = evaluate(field.values, field).to_dict()
    assert perfect == {"mse": 0.0, "snr_db": None, "psnr_db": None, "ssim": pytest.approx(1)}
    several = Metrics(0.5, 1.0, math.nan, None, (Metrics(0.5, 1.0, -math.inf, 0.25),))
    assert json.loads(json.dumps(several.to_dict(), allow_nan=False)) == {
        **{"mse": 0.5, "snr_db": 1.0, "psnr_db": None, "ssim": None},
        **{"channels": [{"mse": 0.5, "snr_db": 1.0, "psnr_db": None, "ssim": 0.25}]},
    }


def test_a_prediction_that_does_not_fit_the_field():
    with pytest.raises(ValueError, match=r"prediction has shape \(20,\), but the field .* or \(20, 1\)"):
        evaluate(np.zeros(20), Grid(np.zeros((4, 5, 1))))


@pytest.mark.parametrize(("function", "options"), [(snr_db, ()), (psnr_db, ((0.0, 1.0),)), (ssim, ((0.0, 1.0),))])
def test_shapes_that_numpy_would_broadcast(function, options):
    with pytest.raises(ValueError, match=r"prediction has shape \(5, 1\), but truth has \(1, 5\); make them agree"):
        inspect.unwrap(function)(np.zeros((5, 1)), np.zeros((1, 5)), *options)  # below the tests' type checker


def test_missing_samples_do_not_count():
    rng = np.random.default_rng(0)
    truth, prediction = rng.normal(size=(2, 9, 9, 2))
    missing = rng.random((9, 9)) < 0.3
    found = evaluate(prediction, Grid(np.where(missing[..., None], np.nan, truth), value_range=(-1.0, 1.0)))
    error = (prediction - truth)[~missing]
    assert found.mse == pytest.approx(np.mean(error**2))
    assert found.snr_db == pytest.approx(10 * np.log10(np.var(truth[~missing]) / np.mean(error**2)))
    assert found.channels[1].mse == pytest.approx(np.mean(error[:, 1] ** 2))
    assert found.ssim is None
