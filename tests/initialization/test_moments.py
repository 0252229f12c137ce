import inspect
import json
import math
import os
import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import scipy.ndimage

from helpers.markup import Seen
from helpers.waves import waves
from uniphase.initialization.moments import EPSILON, RELATIVE_RIDGE, Moments, estimate_moments, prescribe_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points, grid_coordinates

TASKS = json.loads((Path(__file__).parent / "data" / "moments.json").read_text())
KEYS = ("mean", "covariance", "structure_tensor")
FILES = {"skin": "skin.tif", "bach": "gt_bach.wav"}  # that are not bundled


def paper_moments(task: str) -> Moments:
    name, space = task.split("/")
    if name in FILES and not Path(os.environ.get("UNIPHASE_DATA", ""), FILES[name]).exists():
        pytest.skip(f"{FILES[name]} is not in the directory UNIPHASE_DATA")  # and downloading it takes its time to fail
    if space == "audio":
        return estimate_moments(load(name, align="corners"), epsilon=EPSILON)
    return estimate_moments(load(name, size=128, space=space, align="corners", extents=(-1.0, 1.0)), epsilon=EPSILON)


@pytest.mark.parametrize("task", TASKS)
def test_the_values_of_the_paper(task):
    """Every printed value to its last digit, and the full-precision values to their seven digits."""
    moments = paper_moments(task)
    for key in KEYS:
        ours = getattr(moments, key)
        np.testing.assert_allclose(ours, TASKS[task]["exact"][key], rtol=1e-5)
        for value, printed in zip(np.ravel(ours), np.ravel(TASKS[task].get("printed", {}).get(key, [])), strict=False):
            unit = Decimal(1).scaleb(int(Decimal(str(printed)).as_tuple().exponent))
            assert Decimal(float(value)).quantize(unit) == Decimal(str(printed))


def test_all_152_printed_values_are_compared():
    assert sum(np.size(task["printed"][key]) for task in TASKS.values() if "printed" in task for key in KEYS) == 152


def naive_moments(grid: Grid) -> Moments:
    """The estimator as its formula reads: every Jacobian at once, then the sum."""
    m, c, d = grid.samples, grid.out_size, grid.in_size
    values = grid.values.astype(np.float64)
    flat = values.reshape(m, c)
    covariance = np.atleast_2d(np.cov(flat.T, ddof=1))
    jacobians = np.zeros((m, c, d))
    for k in range(c):
        for a in range(d):
            slope = scipy.ndimage.sobel(values[..., k], axis=a) / (grid.spacing[a] * 2 * 4 ** (d - 1))
            jacobians[:, k, a] = slope.ravel()
    precision = np.linalg.inv(covariance + EPSILON * np.eye(c))
    omega = sum(j.T @ precision @ j for j in jacobians) / m + EPSILON * np.eye(d)
    return Moments(flat.mean(axis=0), covariance, omega, EPSILON)


@pytest.mark.parametrize("shape", [(50,), (7, 9), (2, 6), (5, 6, 7), (3, 4, 2, 5)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_grid_estimate_equals_its_formula(shape, channels, align):
    values = np.random.default_rng(0).normal(size=(*shape, channels)) + 100
    extents = tuple((0.0, 1.0 + a) for a in range(len(shape)))
    grid = Grid(values, extents=extents, align=align)
    for key in KEYS:
        exact = getattr(naive_moments(grid), key)
        # A variance of 1 on a mean of 100 loses four of sixteen digits in one pass; a nearly singular Σ some more.
        found = getattr(estimate_moments(grid, epsilon=EPSILON), key)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9 * np.abs(exact).max())


@pytest.mark.parametrize("shape", [(3000, 700, 1), (2, 1_500_000, 2), (400, 40, 100, 1)])
def test_slabs_change_nothing(shape):
    """These grids are cut into several slabs, along different axes."""
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    values = scipy.ndimage.gaussian_filter(values, 2, axes=range(len(shape) - 1))
    grid = Grid(values)
    slopes = [scipy.ndimage.sobel(values[..., 0].astype(float), axis=a) for a in range(grid.in_size)]
    if grid.out_size == 1:
        products = [[float((a * b).mean()) for b in slopes] for a in slopes]
        scale = np.array(grid.spacing) * 2 * 4 ** (grid.in_size - 1)
        omega = np.array(products) / np.outer(scale, scale) / (values.astype(float).var(ddof=1) + EPSILON)
        found = estimate_moments(grid, epsilon=EPSILON).structure_tensor - EPSILON * np.eye(grid.in_size)
        np.testing.assert_allclose(found, omega, rtol=1e-9, atol=1e-9 * np.trace(omega))
    flat = values.reshape(-1, grid.out_size).astype(np.float64)
    np.testing.assert_allclose(estimate_moments(grid).covariance, np.atleast_2d(np.cov(flat.T)), rtol=1e-9)


def test_integers_are_taken_as_they_are():
    values = np.random.default_rng(0).integers(0, 255, (20, 30, 2), dtype=np.uint8)
    ours, exact = estimate_moments(Grid(values)), estimate_moments(Grid(values.astype(np.float64)))
    for key in KEYS:
        np.testing.assert_array_equal(getattr(ours, key), getattr(exact, key))


def test_a_large_memory_map_is_read_in_bounded_memory(tmp_path):
    """25 megapixels, 100 MB on disk, in 50 MB of arrays."""
    path = tmp_path / "large.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(2_500, 10_000, 1))
    mapped[:] = np.sin(25 * np.linspace(-1, 1, 10_000, dtype=np.float32))[:, None]
    grid = Grid(np.load(path, mmap_mode="r"))
    tracemalloc.start()
    moments = estimate_moments(grid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6
    assert moments.structure_tensor[1, 1] == pytest.approx(25**2, rel=0.05)  # the last of 8 periods does not close


def test_a_constant_signal_gives_valid_moments_and_a_warning():
    with pytest.warns(UserWarning, match="constant, or nearly so: its variance 0 is not above"):
        moments = estimate_moments(Grid(np.full((8, 8, 2), 0.5)))
    np.testing.assert_allclose(moments.mean, 0.5)
    np.testing.assert_allclose(moments.structure_tensor, EPSILON * np.eye(2))
    np.linalg.cholesky(moments.regularized_covariance)


def test_a_signal_below_a_given_epsilon_warns():
    values = 1e-4 * np.random.default_rng(0).normal(size=(8, 8, 2))
    with pytest.warns(UserWarning, match=r"variance 9.*e-09 is not above ε = 1e-06. If .* leave epsilon out"):
        estimate_moments(Grid(values), epsilon=EPSILON)
    estimate_moments(Grid(values))


@pytest.mark.parametrize("value", [0.0, 1e-12, 0.1, 3.0, 1e12])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_one_constant_channel_is_no_reason_to_warn(value, scale):
    values = scale * np.random.default_rng(0).normal(size=(8, 8, 2))
    alone = estimate_moments(Grid(values[..., :1]))
    values[..., 1] = value
    moments = estimate_moments(Grid(values))
    np.testing.assert_allclose(moments.structure_tensor, alone.structure_tensor, rtol=1e-9)  # rounding
    np.linalg.cholesky(moments.regularized_covariance)
    # It starts within a thousandth of its own value and of the other channel, whichever is smaller.
    bound = 1e-6 * min(value**2 or np.inf, moments.covariance[0, 0])
    assert moments.regularized_covariance[1, 1] <= 1.01 * bound


def test_epsilon_must_be_positive():
    with pytest.raises(ValueError, match=r"epsilon is 0.0; it must be positive"):
        estimate_moments(Grid(np.zeros((2, 1))), epsilon=0.0)


def test_an_epsilon_too_small_for_the_values():
    gray = 1e9 * np.random.default_rng(0).normal(size=(8, 8, 1))
    with pytest.raises(
        ValueError, match=r"epsilon is too small .*; pass a larger epsilon, or leave it out .* --recipe paper"
    ):
        estimate_moments(Grid(np.tile(gray, 3)), epsilon=EPSILON)


# Without an epsilon the moments do not depend on the units of the values, nor on those of the coordinates. They differ
# by rounding: that of sums over the 600 samples of the grid grows as the root of their number, and in a direction in
# which Σ is singular it is divided by the ridge.
ROUNDING = np.sqrt(600) * np.finfo(np.float64).eps / RELATIVE_RIDGE


def fields(scale: float = 1.0, units: tuple[float, float] = (1.0, 1.0)) -> list[Grid | Points]:
    """A grid and points, three channels that depend on each other, one of which is constant."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 2))
    field = FourierField(rng, 2, out_size=2)
    grid = Grid(np.zeros((20, 30, 1)))
    tall, wide = units

    def values(x: np.ndarray) -> np.ndarray:
        a, b = field.values(x).T
        return scale * np.stack([a, b, a + b, 0 * a + 0.7], axis=-1)

    extents = ((-tall, tall), (-wide, wide))
    return [
        Grid(values(grid.coordinates()).reshape(20, 30, 4), extents=extents),
        Points(x * np.array(units), values(x)),
    ]


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_values_of_any_scale(scale):
    for before, after in zip(fields(), fields(scale), strict=True):
        ours, wanted = estimate_moments(after), estimate_moments(before)
        np.testing.assert_allclose(ours.structure_tensor, wanted.structure_tensor, rtol=ROUNDING)
        # 1e-16, where a constant channel has no covariance
        covariance = ours.regularized_covariance / scale**2
        np.testing.assert_allclose(covariance, wanted.regularized_covariance, rtol=1e-9, atol=1e-16)
        np.linalg.cholesky(ours.regularized_covariance)


@pytest.mark.parametrize("units", [(1e-3, 1e-3), (1e3, 1e3), (1e-9, 1e6)])
def test_coordinates_of_any_scale(units):
    for before, after in zip(fields(), fields(units=units), strict=True):
        ours, wanted = estimate_moments(after), estimate_moments(before)
        np.testing.assert_allclose(
            ours.structure_tensor * np.outer(units, units), wanted.structure_tensor, rtol=ROUNDING
        )
        np.linalg.cholesky(ours.structure_tensor)


def test_channels_in_different_units():
    """A pressure in pascals and a velocity in metres per second: neither drowns in the ridge of the other."""
    (grid, points), units = fields(), np.array([1e6, 1e-3, 1.0, 1.0])
    for field, other in ((grid, Grid(grid.values * units)), (points, Points(points.positions, points.values * units))):
        ours, wanted = estimate_moments(other), estimate_moments(field)
        np.testing.assert_allclose(ours.structure_tensor, wanted.structure_tensor, rtol=1e-9)
        found = ours.regularized_covariance / np.outer(units, units)
        np.testing.assert_allclose(found[:3, :3], wanted.regularized_covariance[:3, :3], rtol=1e-9, atol=1e-12)


def test_gray_stored_as_rgb():
    gray = load("camera", size=64).values
    alone = estimate_moments(Grid(gray)).structure_tensor
    for scale in (1.0, 255.0, 65535.0):
        omega = estimate_moments(Grid(scale * np.tile(gray, 3))).structure_tensor
        np.testing.assert_allclose(omega, alone, rtol=1e-6)  # the ridge, which counts once or three times


@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
def test_a_coordinate_on_which_nothing_depends(units):
    values = np.sin(np.linspace(0, 9, 40))[:, None, None] * np.ones((1, 30, 1))
    moments = estimate_moments(Grid(values, extents=((-1.0, 1.0), (-units, units))))
    np.linalg.cholesky(moments.structure_tensor)
    assert math.sqrt(moments.structure_tensor[1, 1]) * units == pytest.approx(1e-3)  # radians, over half of the domain


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.1, 1e9])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_constant_signal_of_any_size_can_be_drawn_from(value, channels):
    points = Points(np.random.default_rng(0).normal(size=(50, 2)), np.full((50, channels), value))
    for field in (Grid(np.full((9, 7, channels), value)), points):
        with pytest.warns(UserWarning, match="constant, or nearly so: its variance .* not above the rounding of its"):
            moments = estimate_moments(field)
        np.linalg.cholesky(moments.regularized_covariance)
        np.linalg.cholesky(moments.structure_tensor)
        uniform_phase(moments, width=4, depth=1)


class FourierField:
    """A sum of random waves, whose slopes are known."""

    def __init__(self, rng: np.random.Generator, in_size: int, out_size: int):
        self.waves = rng.normal(size=(20, in_size)) * 3
        self.amplitudes = rng.normal(size=(20, out_size)) + 1j * rng.normal(size=(20, out_size))

    def values(self, x: np.ndarray) -> np.ndarray:
        return (np.exp(1j * x @ self.waves.T) @ self.amplitudes).real

    def moments(self, x: np.ndarray) -> Moments:
        slopes = np.einsum("mw,wk,wa->mka", 1j * np.exp(1j * x @ self.waves.T), self.amplitudes, self.waves).real
        values = self.values(x)
        covariance = np.atleast_2d(np.cov(values.T))
        omega = np.einsum("mka,kl,mlb->ab", slopes, np.linalg.inv(covariance), slopes) / len(x)
        return Moments(values.mean(axis=0), covariance, omega)


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error of a quadratic form, over all directions."""
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(exact, found)) - 1).max())


@pytest.mark.parametrize(("in_size", "samples"), [(1, 400), (2, 4_000), (3, 40_000)])
@pytest.mark.parametrize("seed", range(5))
def test_scattered_samples_meet_the_analytic_structure_tensor(in_size, samples, seed):
    """Within 10 % in every direction, at 20 and more samples per wavelength and axis."""
    rng = np.random.default_rng(seed)
    field = FourierField(rng, in_size, out_size=2)
    x = rng.uniform(-1, 1, (samples, in_size))
    found, exact = estimate_moments(Points(x, field.values(x))), field.moments(x)
    # A regression sees the mean slope over its neighbours: up to 0.1, 2 and 4 % are lost in 1, 2 and 3 dimensions.
    assert relative_error(found.structure_tensor, exact.structure_tensor) < 0.10
    np.testing.assert_allclose(found.mean, exact.mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, exact.covariance, rtol=1e-9)


def test_too_few_samples_underestimate_the_slopes():
    """The test above can fail: with two samples per wavelength the slopes are not there to be seen."""
    rng = np.random.default_rng(0)
    field = FourierField(rng, 2, out_size=1)
    x = rng.uniform(-1, 1, (60, 2))
    assert relative_error(estimate_moments(Points(x, field.values(x))).structure_tensor,
                          field.moments(x).structure_tensor) > 0.10  # fmt: skip


@pytest.mark.parametrize("in_size", [1, 2, 3])
def test_a_grid_read_as_points_gives_nearly_the_same_moments(in_size):
    shape = {1: (200,), 2: (60, 70), 3: (24, 26, 28)}[in_size]
    x = grid_coordinates(shape, ((-1.0, 1.0),) * in_size, "centers")
    field = FourierField(np.random.default_rng(3), in_size, 2)
    values = field.values(x)
    on_grid = estimate_moments(Grid(values.reshape(*shape, 2)))
    # Sobel smooths over three samples and halves the slopes at the border: by 19 % of Ω with 24 samples along an axis.
    assert relative_error(estimate_moments(Points(x, values)).structure_tensor, on_grid.structure_tensor) < 0.25


def test_repeated_positions_are_averaged():
    x = np.linspace(-1, 1, 200)
    once = estimate_moments(Points(x, np.sin(9 * x)))
    twice = estimate_moments(Points(np.tile(x, 2), np.tile(np.sin(9 * x), 2)))
    np.testing.assert_allclose(once.structure_tensor, twice.structure_tensor, rtol=0.01)  # ddof=1 of 200 and of 400


def test_points_on_a_line_have_the_slope_along_it():
    """Two tracks through the plane: each sees one direction, and nothing is made up for the other."""
    t = np.linspace(-1, 1, 500)
    tracks = np.concatenate([np.stack([t, 0 * t], 1), np.stack([0 * t + 3, t], 1)])
    moments = estimate_moments(Points(tracks, tracks[:, 0] * 2 + tracks[:, 1] * 5))
    assert np.isfinite(moments.structure_tensor).all()


def test_three_points_have_the_slope_of_their_plane():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    moments = estimate_moments(Points(corners, corners @ [2.0, 5.0]), epsilon=1e-12)
    expected = np.outer([2, 5], [2, 5]) / np.var([0, 2, 5], ddof=1)
    np.testing.assert_allclose(moments.structure_tensor, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.zeros((10, 2)), r"positions has 1 distinct rows; the slopes in 2 coordinates need at least 3"),
        (np.arange(2.0)[:, None] * [1, 2], r"positions has 2 distinct rows"),
        (np.arange(3.0)[:, None] * [1, 2], r"positions lie in fewer than 2 dimensions"),
        (np.arange(9.0)[:, None] * [1, 2], r"positions lie in fewer than 2 dimensions"),
        (np.arange(9.0)[:, None] * [1, 0], r"positions lie in fewer than 2 dimensions"),
    ],
)
def test_positions_that_show_no_slope(positions, message):
    with pytest.raises(ValueError, match=message):
        estimate_moments(Points(positions, np.arange(float(len(positions)))))


def test_prescribed_length_scales_hold_for_every_channel():
    moments = prescribe_moments(mean=[1.0, 2.0], covariance=[4.0, 9.0], length_scale=[0.5, 0.1])
    np.testing.assert_allclose(moments.mean, [1, 2])
    np.testing.assert_allclose(moments.covariance, np.diag([4, 9]))
    np.testing.assert_allclose(moments.structure_tensor, np.diag([2 / 0.25, 2 / 0.01]))
    assert moments.epsilon == 0


def test_a_wave_has_the_length_scale_of_its_wavelength_over_two_pi():
    x = np.linspace(-1, 1, 20_001)
    wavelength = 0.1
    estimated = estimate_moments(Grid(np.sin(2 * math.pi * x / wavelength)[:, None], align="corners"))
    prescribed = prescribe_moments(length_scale=wavelength / (2 * math.pi))
    np.testing.assert_allclose(estimated.structure_tensor, prescribed.structure_tensor, rtol=1e-3)  # end effects


def test_prescribed_scalars_and_matrices():
    moments = prescribe_moments(
        mean=3.0, covariance=[[2.0, 1.0], [1.0, 2.0]], structure_tensor=[[5.0, 1.0], [1.0, 5.0]]
    )
    np.testing.assert_allclose(moments.mean, [3, 3])
    assert (moments.in_size, moments.out_size) == (2, 2)
    assert prescribe_moments(structure_tensor=7.0).structure_tensor.tolist() == [[7.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "length_scale is None and structure_tensor is None; pass exactly one"),
        ({"length_scale": 1.0, "structure_tensor": 1.0}, "pass exactly one"),
        ({"length_scale": [1.0, -1.0]}, r"length_scale is \[1.0, -1.0\]; every length must be positive"),
        (
            {"length_scale": 1.0, "covariance": -1.0},
            "covariance has the eigenvalue -1, but it must be positive definite",
        ),
        ({"length_scale": 1.0, "covariance": [[1.0, 2.0], [0.0, 1.0]]}, "covariance is not symmetric"),
        ({"length_scale": 1.0, "covariance": np.zeros((2, 3))}, r"covariance has shape \(2, 3\); pass a finite square"),
        (
            {"length_scale": 1.0, "mean": [1.0, 2.0], "covariance": np.eye(3)},
            "mean has 2 channels but covariance has 3",
        ),
        ({"length_scale": 1.0, "mean": [math.nan]}, r"mean is \[nan\]; pass a finite number"),
        ({"structure_tensor": [[1.0, 0.0], [0.0, -1.0]]}, "structure_tensor has the eigenvalue -1.*semidefinite"),
    ],
)
def test_bad_prescriptions(options, message):
    with pytest.raises(ValueError, match=message):
        prescribe_moments(**options)


def test_moments_print():
    text = str(prescribe_moments(length_scale=0.5))
    assert "mean" in text
    assert "structure tensor" in text


def test_a_notebook_shows_the_numbers():
    moments = prescribe_moments(mean=[0.25, 0.5], covariance=[2.0, 3.0], length_scale=0.5)
    seen = Seen(moments._repr_html_())
    assert seen.words[0] == "moments: 1 → 2"
    assert [word for word in seen.words if word in "μΣΩε"] == ["μ", "Σ", "Ω", "ε"]
    assert {"[0.25 0.5 ]", "[[2. 0.]\n [0. 3.]]", "[[8.]]"} <= set(seen.words)
    many = prescribe_moments(mean=np.zeros(500), length_scale=0.5)
    assert len(many._repr_html_()) < 5_000


# Missing samples.


@pytest.mark.parametrize("shape", [(400,), (40, 60)])
def test_moments_of_what_is_known(shape):
    """Statistics over the known samples, and slopes where no sample of their stencil is missing."""
    clean = waves(shape, 2)
    missing = np.random.default_rng(1).random(shape) < 0.05
    grid = Grid(np.where(missing[..., None], np.nan, clean.values))
    found, known = estimate_moments(grid), clean.values[~missing]
    np.testing.assert_allclose(found.mean, known.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(known.T))
    whole = ~scipy.ndimage.binary_dilation(missing, np.ones((3,) * len(shape)))
    slopes = np.stack(
        [[scipy.ndimage.sobel(clean.values[..., c], axis=a)[whole] for a in range(len(shape))] for c in range(2)]
    )  # (channels, axes, samples)
    slopes /= (np.array(clean.spacing) * 2 * 4 ** (len(shape) - 1))[:, None]
    products = np.einsum("kam,lbm->kalb", slopes, slopes) / whole.sum()
    expected = np.einsum("kalb,kl->ab", products, np.linalg.inv(np.cov(known.T)))
    np.testing.assert_allclose(found.structure_tensor, expected, rtol=1e-4)  # the ridges are 1e-6


def test_with_few_whole_stencils_slopes_are_those_of_scattered_points():
    clean = waves((40, 40))
    missing = np.random.default_rng(1).random((40, 40)) < 0.7
    grid = Grid(np.where(missing[..., None], np.nan, clean.values))
    points = Points(clean.coordinates()[~missing.ravel()], clean.values[~missing])
    np.testing.assert_allclose(
        estimate_moments(grid).structure_tensor, estimate_moments(points).structure_tensor, rtol=1e-5
    )  # the least entries of Ω differ with the extents


def test_something_that_is_no_field():
    unchecked = inspect.unwrap(estimate_moments)  # without the check of types that tests have
    with pytest.raises(ValueError, match=r"field is a ndarray; pass Grid\(values\) with values of shape .* or Points"):
        unchecked(np.zeros((4, 4, 1)))
