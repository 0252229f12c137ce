import importlib

import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import sm20, uniform_phase
from uniphase.signals.fields import Grid, Points
from uniphase.signals.metrics import evaluate

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from helpers.torch_models import OfficialSiren  # noqa: E402
from uniphase.torch.derivatives import gradient, laplacian  # noqa: E402
from uniphase.torch.network import CoordinateMLP  # noqa: E402
from uniphase.torch.render import evaluate_network, predict, render  # noqa: E402

GRID = Grid(np.random.default_rng(0).normal(size=(5, 7, 3)), extents=((2.0, 5.0), (-1.0, 9.0)), align="corners")


def network():
    generator = torch.Generator().manual_seed(0)
    return CoordinateMLP(sm20((2, 3), width=8, depth=1, omega=3.0), dtype=torch.float64, generator=generator)


def test_the_shape_of_a_field_gives_its_positions(monkeypatch):
    model, x = network(), torch.tensor(GRID.coordinates())
    expected = model(x).detach().numpy().reshape(5, 7, 3)
    np.testing.assert_allclose(predict(model, GRID), expected, rtol=0, atol=1e-12)  # float64 rounding of positions
    monkeypatch.setattr(importlib.import_module("uniphase.torch.render"), "_CHUNK", 4)  # the last chunk is short
    np.testing.assert_allclose(predict(model, GRID), expected, rtol=0, atol=1e-12)
    points = Points(GRID.coordinates(), GRID.flat_values())
    np.testing.assert_allclose(predict(model, points), expected.reshape(-1, 3), rtol=0, atol=1e-12)
    assert evaluate_network(model, GRID) == evaluate(predict(model, GRID), GRID)


def test_derivatives_and_regions():
    model, region = network(), ((2.0, 3.0), (0.0, 1.0))
    x = torch.tensor(Grid(np.zeros((4, 6, 1)), extents=region).coordinates())
    for name, function in (("gradient", gradient), ("laplacian", laplacian)):
        found = render(model, (4, 6), extents=GRID.extents, region=region, derivative=name)
        expected = function(model, x).detach().numpy()
        np.testing.assert_allclose(found, expected.reshape(4, 6, *expected.shape[1:]), rtol=0, atol=1e-11)


def test_an_average_is_as_fine_as_its_values():
    """An offset is rounded once, and not with each of the 1,600 nodes."""
    laws = (
        uniform_phase(prescribe_moments(mean=mean, covariance=1.0, length_scale=[0.5] * 2), width=8, depth=1)
        for mean in (16384.0, 0.0)
    )
    models = (CoordinateMLP(law, generator=torch.Generator().manual_seed(0)) for law in laws)
    found, expected = (render(model, (3, 4), average=True, nodes=40) for model in models)
    unit = 2.0**-9  # of float32 between 16384 and 32768
    np.testing.assert_allclose(found.astype(np.float64) - 16384, expected, rtol=0, atol=2 * unit)


def test_averages_are_means_over_cells():
    model = network()
    found = render(model, (3, 4), average=True, nodes=8)
    fine = render(model, (3 * 60, 4 * 60)).reshape(3, 60, 4, 60, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(found, fine, rtol=0, atol=1e-3)  # of 3,600 midpoints
    with pytest.raises(ValueError, match="scattered points have no cells"):
        predict(model, Points(np.eye(2), np.eye(2)), average=True)


def test_other_modules_in_other_precisions():
    siren = OfficialSiren().train()
    assert render(siren, (4, 4)).dtype == np.float32
    assert siren.training
    assert render(siren.bfloat16(), (4, 4)).dtype == np.float32  # NumPy has no bfloat16
    assert render(torch.nn.Identity(), (4, 4)).shape == (4, 4, 2)  # which has no parameters


@pytest.mark.parametrize(
    ("model", "shape", "options", "message"),
    [
        (network(), (4,), {}, r"shape is \(4,\), but the network has 2 coordinates"),
        (network(), (4, 4), {"nodes": 0, "average": True}, "nodes is 0; pass a positive number"),
        (network(), (4, 4), {"region": ((1.0, 0.0), (0.0, 1.0))}, "region is .* low < high"),
        (torch.nn.Flatten(0), (4, 4), {}, r"the model returns the shape \(32,\) for 16 positions; return a row"),
    ],
)
def test_bad_requests(model, shape, options, message):
    with pytest.raises(ValueError, match=message):
        render(model, shape, **options)
