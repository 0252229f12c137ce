import sys
from dataclasses import replace

import numpy as np
import pytest

from helpers.fits import FIELD, assert_identical
from uniphase.jax.files import load_network
from uniphase.signals.fields import Points
from uniphase.signals.metrics import evaluate
from uniphase.training.fit import fit
from uniphase.training.result import Fit


@pytest.fixture(scope="module")
def result() -> Fit:
    return fit(FIELD, steps=20, width=16, depth=1, progress=False)


def test_a_network_is_saved_with_all_that_is_known(result, tmp_path):
    result.save(tmp_path / "camera.uniphase")
    file = load_network(tmp_path / "camera.uniphase")
    assert file.blueprint == result.blueprint
    assert file.training["steps"] == 20
    assert_identical(file.network, result.network)


def test_fewer_bits_are_measured_again(result, tmp_path):
    small = result.quantized(8)
    small.save(tmp_path / "camera.uniphase")
    file = load_network(tmp_path / "camera.uniphase")
    assert_identical(file.network, small.network)
    assert (file.bits, small.exact_metrics) == (8, result.metrics)
    assert file.metrics == evaluate(small.render(), FIELD).to_dict() != result.metrics.to_dict()
    assert small.quantized(8, test=FIELD).test_metrics == small.metrics


def test_other_networks_have_no_hidden_matrices_to_round(result):
    with pytest.raises(ValueError, match=r"^the network is a function, but only a CoordinateMLP is quantized$"):
        replace(result, network=lambda x: x).quantized(8)


def test_it_is_rendered_over_the_domain_of_its_field(result):
    np.testing.assert_array_equal(result.render(), result.prediction)
    assert result.render((5, 7), derivative="gradient").shape == (5, 7, 1, 2)


def test_it_is_drawn(result, monkeypatch):
    assert len(result.plot().axes) >= 3
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'^figures need matplotlib; pip install "uniphase\[cli\]"$'):
        result.plot()


@pytest.mark.parametrize("method", ["render", "plot"])
def test_without_a_field_there_is_no_domain(result, method):
    message = rf"{method} needs a field, and none was among the terms; call uniphase\.render\(result\.network, shape\)"
    with pytest.raises(ValueError, match=message):
        getattr(replace(result, field=None), method)()


def test_a_fit_to_scattered_points_has_a_picture():
    """With the fit between the points, as `render` gives it."""
    positions = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    points = Points(positions, np.sin(3 * positions[:, 0]))
    result = fit(points, width=8, depth=1, steps=2, progress=False)
    figure = result.plot()
    assert [axes.get_title() for axes in figure.axes[:4:2]] == ["truth", "|error|"]
    image = figure.axes[1].images[0].get_array()
    np.testing.assert_array_equal(image, result.render(image.shape[::-1])[..., 0].T)
