import importlib
import inspect
import tracemalloc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import gelu, sm20, tanh_pe, uniform_phase
from uniphase.jax.network import CoordinateMLP
from uniphase.jax.render import grid_positions, render, render_domain
from uniphase.signals.fields import Grid, axis_coordinates, grid_coordinates
from uniphase.storage.network_file import Domain

module: Any = importlib.import_module("uniphase.jax.render")

SHAPES = {1: (37,), 2: (9, 14), 3: (4, 5, 6)}
EXTENTS = ((-1.0, 1.0), (0.0, 4.8), (-100.0, 100.0))


@eqx.filter_jit
def draw(blueprint, dtype=None):
    return CoordinateMLP(blueprint, dtype=dtype, key=jax.random.key(0))


def network(in_size=2, out_size=3, dtype=None):
    return draw(sm20((in_size, out_size), width=16, depth=1, omega=3.0), dtype)


def at(function, coordinates):
    return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(coordinates, jnp.result_type(float))))


@pytest.mark.parametrize("in_size", [1, 2, 3])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_positions_are_those_of_the_grid(in_size, align):
    shape, extents = SHAPES[in_size], EXTENTS[:in_size]
    expected = grid_coordinates(shape, extents, align)
    positions = grid_positions(jnp.arange(len(expected), dtype=jnp.int32), shape, extents, align)
    # the middle, the step, their product and the sum are rounded, each by half a unit of the largest coordinate
    assert (np.abs(positions - expected) <= 4 * 2.0**-24 * np.abs(expected).max(axis=0)).all()


@pytest.mark.parametrize("n", [2, 481, 2**24 - 1, 2**24, 158_760_000])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_positions_on_a_long_axis(n, align):
    """Samples at both ends and in the middle, against exact arithmetic: float64 has bits to spare."""
    indices = np.clip(np.r_[0:9, n // 2 - 9 : n // 2 + 1], 0, n - 1)
    indices = np.unique(np.r_[indices, n - 1 - indices])
    exact = (2 * indices - (n - 1)) / (n if align == "centers" else n - 1)
    positions = np.asarray(grid_positions(jnp.asarray(indices, jnp.int32), (n,), ((-1.0, 1.0),), align))[:, 0]
    np.testing.assert_allclose(positions, exact, rtol=3 * 2.0**-24)  # the count, the step and the product are rounded
    np.testing.assert_array_equal(positions, -positions[::-1])
    distinct = np.ones(len(indices), bool) if n <= 2**24 else np.abs(exact) < 0.01
    assert (np.diff(positions[distinct]) > 0).all()


def test_positions_of_a_large_image():
    shape, last = (8192, 8192), 8192 * 8192 - 1
    positions = grid_positions(jnp.array([0, 8191, 8192, last], jnp.int32), shape, ((-1.0, 1.0),) * 2, "centers")
    edge = 1 - 1 / 8192
    # a power of two: nothing is rounded
    np.testing.assert_array_equal(positions, [[-edge, -edge], [-edge, edge], [-edge + 2 / 8192, -edge], [edge, edge]])


def test_positions_in_double_precision(x64):
    expected = grid_coordinates((9, 14), EXTENTS[:2], "centers")
    positions = grid_positions(jnp.arange(126, dtype=jnp.int32), (9, 14), EXTENTS[:2], "centers")
    np.testing.assert_allclose(positions, expected, rtol=0, atol=1e-15)  # float64 rounding
    assert grid_positions(jnp.zeros(1, jnp.int32), (9,), EXTENTS[:1], "centers", dtype=jnp.float32).dtype == np.float32


@pytest.mark.parametrize("in_size", [1, 2, 3])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_values_are_those_of_the_network(in_size, align):
    shape, extents = SHAPES[in_size], EXTENTS[:in_size]
    net = network(in_size)
    values = render(net, shape, extents=extents, align=align)
    assert values.shape == (*shape, 3)
    assert values.dtype == np.float32
    expected = at(net, grid_coordinates(shape, extents, align)).reshape(values.shape)
    # A coordinate of 100 is rounded by 8e-6, and the phases go with three times that; other batches round elsewhere.
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("derivative", [None, "gradient", "laplacian"])
def test_chunks_cannot_be_seen(derivative, monkeypatch):
    net = network()
    whole = render(net, (9, 14), derivative=derivative)
    for samples in (1, 10, 125, 126):
        monkeypatch.setattr(module, "_chunk_size", lambda *_, size=samples: size)
        parts = render(net, (9, 14), derivative=derivative)
        # other batches are rounded elsewhere
        np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-5 * np.abs(whole).max())


def test_one_compilation_serves_all_chunks_and_regions(monkeypatch):
    traces, evaluate = [], module._evaluate
    monkeypatch.setattr(module, "_evaluate", lambda *arguments: traces.append(arguments) or evaluate(*arguments))
    monkeypatch.setattr(module, "_chunk_size", lambda *_: 10)
    render(network(), (9, 13))
    render(network(), (9, 13), region=((0.1, 0.2), (0.3, 0.4)), align="corners")
    assert len(traces) == 1


def test_a_finer_grid_is_not_shifted():
    """Every pixel of the coarse grid is the middle of its four finer ones, as their four centres say."""
    net = network(2, 1)
    fine = render(net, (16, 24), extents=EXTENTS[:2])
    rows, columns = (axis_coordinates(n, extent, "centers") for n, extent in zip((8, 12), EXTENTS[:2], strict=True))
    for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)):
        quarter = np.stack(np.meshgrid(rows + (i - 0.5) / 8, columns + (j - 0.5) * 0.2, indexing="ij"), axis=-1)
        np.testing.assert_allclose(fine[i::2, j::2, 0], at(net, quarter.reshape(-1, 2)).reshape(8, 12), atol=1e-5)


def test_a_shift_of_half_a_pixel_would_be_seen():
    net = network(2, 1)
    values = render(net, (9, 14))
    shifted = at(net, Grid(values).coordinates() + np.array([1 / 18, 0])).reshape(values.shape)
    assert np.abs(values - shifted).max() > 100 * 1e-5


def test_a_region_spans_its_part_of_the_grid():
    net = network()
    whole = render(net, (8, 12), extents=EXTENTS[:2])
    part = render(net, (2, 6), extents=EXTENTS[:2], region=((-0.5, 0.0), (0.0, 2.4)))
    np.testing.assert_allclose(part, whole[2:4, :6], atol=1e-5)  # other float32 rounding of the positions
    np.testing.assert_array_equal(render(net, (8, 12), region=(1.0, 3.0)), render(net, (8, 12), extents=(1.0, 3.0)))


def test_a_tiny_region_far_from_the_middle():
    span = (0.7, 0.7 + 1e-4)
    net = network(1, 1)
    values = render(net, (11,), region=(span,), align="corners")
    np.testing.assert_allclose(values, at(net, np.linspace(*span, 11)[:, None]), atol=1e-5)
    positions = grid_positions(jnp.arange(11, dtype=jnp.int32), (11,), (span,), "corners")[:, 0]
    np.testing.assert_allclose(positions, np.linspace(*span, 11), rtol=0, atol=2.0**-23)  # two roundings near 0.7


@pytest.mark.parametrize(("make", "in_size"), [(sm20, 1), (sm20, 2), (sm20, 3), (gelu, 2), (tanh_pe, 2)])
def test_derivatives(make, in_size):
    net = draw(make((in_size, 2), width=16, depth=1))
    shape = SHAPES[in_size]
    coordinates = grid_coordinates(shape, ((-1.0, 1.0),) * in_size, "centers")
    gradient = render(net, shape, derivative="gradient")
    assert gradient.shape == (*shape, 2, in_size)
    expected = at(jax.jacfwd(net), coordinates).reshape(gradient.shape)
    # Phases of up to 200 are rounded by 1e-5, and with them the derivatives.
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    laplacian = render(net, shape, derivative="laplacian")
    traces = at(lambda x: jnp.trace(jax.hessian(net)(x), axis1=1, axis2=2), coordinates)
    np.testing.assert_allclose(laplacian, traces.reshape(*shape, 2), rtol=0, atol=1e-4 * np.abs(traces).max())


@pytest.mark.parametrize("derivative", [None, "gradient", "laplacian"])
def test_double_precision(derivative, x64):
    net = network()
    values = render(net, (9, 14), derivative=derivative)
    assert values.dtype == np.float64
    function = {
        None: net,
        "gradient": jax.jacfwd(net),
        "laplacian": lambda x: jnp.trace(jax.hessian(net)(x), axis1=1, axis2=2),
    }[derivative]
    expected = at(function, grid_coordinates((9, 14), ((-1.0, 1.0),) * 2, "centers")).reshape(values.shape)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13 * np.abs(expected).max())  # float64 rounding


def test_a_single_precision_network_where_double_is_enabled(x64):
    assert render(network(dtype=jnp.float32), (3, 4)).dtype == np.float32


@pytest.mark.parametrize("derivative", [None, "gradient", "laplacian"])
@pytest.mark.parametrize("width", [32, 512])
def test_memory_on_the_device_is_bounded(width, derivative):
    """What the compiler sets aside for a chunk of 8192 × 8192 pixels."""
    net = draw(sm20((2, 3), width=width, depth=2))
    size = module._chunk_size(net, 8192 * 8192, 2, derivative)
    origin = jnp.zeros(2)
    indices = jnp.zeros(size, jnp.int32)
    lowered = module._render_chunk.lower(net, indices, (8192, 8192), origin, origin, derivative, None)
    memory = lowered.compile().compiled.memory_analysis()
    # the activations, and as much again for what the compiler does not keep in place
    assert memory.temp_size_in_bytes + memory.output_size_in_bytes < 2 * module._CHUNK_BYTES


def test_memory_on_the_host_is_that_of_the_result():
    net = network(2, 1)
    render(net, (512, 512))
    tracemalloc.start()
    try:
        values = render(net, (512, 512))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * values.nbytes  # the positions alone would be twice the values


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((8,), {}, r"shape is \(8,\), but the network has 2 coordinates; pass a positive number for each"),
        ((8, 0), {}, r"shape is \(8, 0\)"),
        ((8, -3), {}, r"shape is \(8, -3\)"),
        ((8, 1), {"align": "corners"}, r"shape is \(8, 1\), but align='corners' includes both ends; pass at least 2"),
        ((2**16, 2**15), {}, r"shape is \(65536, 32768\), or 2,147,483,648 samples; cut it into regions"),
        ((8, 8), {"align": "left"}, "align is 'left'; it must be 'centers' or 'corners'"),
        ((8, 8), {"extents": (1.0, 1.0)}, r"extents is \(1.0, 1.0\); .* low < high"),
        ((8, 8), {"extents": ((0.0, 1.0),) * 3}, r"extents is .* one for each of 2 coordinates"),
        ((8, 8), {"region": ((0.0, 1.0), (3.0, 2.0))}, r"region is \(\(0.0, 1.0\), \(3.0, 2.0\)\); .* low < high"),
        ((8, 8), {"region": (0.0, np.inf)}, r"region is \(0.0, inf\); pass a finite"),
        ((8, 8), {"derivative": "hessian"}, "derivative is 'hessian'; it must be None, 'gradient' or 'laplacian'"),
    ],
)
def test_bad_requests(shape, options, message):
    with pytest.raises(ValueError, match=message):
        inspect.unwrap(render)(network(), shape, **options)  # below the tests' type checker


def test_one_sample_along_an_axis_is_a_slice():
    net = network(3, 1)
    plane = render(net, (1, 5, 6), region=((0.2, 0.4), (-1.0, 1.0), (-1.0, 1.0)))
    coordinates = grid_coordinates((1, 5, 6), ((0.2, 0.4), (-1.0, 1.0), (-1.0, 1.0)), "centers")
    np.testing.assert_allclose(plane.reshape(-1, 1), at(net, coordinates), atol=1e-5)


def test_the_grid_of_positions_is_checked():
    with pytest.raises(ValueError, match="cut it into regions"):
        grid_positions(jnp.zeros(1, jnp.int32), (2**31,), ((0.0, 1.0),), "centers")
    assert eqx.filter_eval_shape(
        grid_positions, jnp.zeros(1, jnp.int32), (2**31 - 1,), ((0.0, 1.0),), "corners"
    ).shape == (1, 1)


# Averages over cells.


@pytest.mark.parametrize("in_size", [1, 2, 3])
@pytest.mark.parametrize("align", ["centers", "corners"])
def test_averages_over_cells(in_size, align):
    """Against the mean of many points in every cell."""
    net, shape = network(in_size), (5, 6, 4)[:in_size]
    extents = ((-1.0, 1.0), (0.0, 2.4), (-1.5, 1.5))[:in_size]
    found = render(net, shape, extents=extents, align=align, average=True, nodes=8)
    half = np.array(Grid(np.zeros((*shape, 1)), extents=extents, align=align).spacing) / 2 * (align == "corners")
    cells = [(low - h, high + h) for (low, high), h in zip(extents, half, strict=True)]  # all of them, side by side
    many = {1: 1000, 2: 60, 3: 24}[in_size]
    fine = render(net, [n * many for n in shape], extents=cells)
    parts = [m for n in shape for m in (n, many)]
    means = fine.reshape(*parts, -1).mean(axis=tuple(range(1, 2 * in_size, 2)), dtype=np.float64)
    # The midpoint rule is off by h²/24 of the second derivatives, which ω = 3 keeps below 100 per unit of a cell.
    np.testing.assert_allclose(found, means, rtol=0, atol=100 / (24 * many**2) + 1e-5)


def test_an_average_is_as_fine_as_its_values():
    """An offset is rounded once, and not with each of the 512 nodes."""
    laws = (
        uniform_phase(prescribe_moments(mean=mean, covariance=1.0, length_scale=[0.5] * 3), width=16, depth=1)
        for mean in (16384.0, 0.0)
    )
    found, expected = (render(draw(law), (3, 3, 3), average=True, nodes=8) for law in laws)
    unit = 2.0**-9  # of float32 between 16384 and 32768
    np.testing.assert_allclose(found.astype(np.float64) - 16384, expected, rtol=0, atol=2 * unit)


def test_an_average_over_small_cells_is_the_value():
    net = network()
    region = ((0.1, 0.1 + 1e-4), (0.2, 0.2 + 1e-4))
    options = {"extents": EXTENTS[:2], "region": region}
    np.testing.assert_allclose(render(net, (3, 3), average=True, **options), render(net, (3, 3), **options), atol=1e-5)


def test_nodes_along_each_axis():
    """One node is a point; and the average of a function along one axis alone is that of its means."""
    net = network()
    np.testing.assert_allclose(render(net, (4, 4), average=True, nodes=1), render(net, (4, 4)), atol=1e-6)
    along = render(net, (4, 4), average=True, nodes=(1, 12))
    fine = render(net, (4, 400)).reshape(4, 4, 100, -1).mean(axis=2)
    np.testing.assert_allclose(along, fine, atol=1e-3)  # of 100 midpoints
    for nodes in (0, (1, 2, 3)):
        with pytest.raises(ValueError, match="pass a positive number, or one for each of 2 coordinates"):
            render(net, (4, 4), average=True, nodes=nodes)


def test_the_domain_of_a_field_as_a_camera_would_see_it():
    net, domain = network(), Domain((8, 8), EXTENTS[:2], "centers", "averages")
    quarter = tuple((low, (low + high) / 2) for low, high in domain.extents)
    for options, average, nodes in (
        ({"region": quarter}, True, (4, 6)),
        ({"region": quarter, "nodes": 3}, True, 3),
        ({"region": quarter, "average": False}, False, 1),
        ({}, True, (6, 10)),
    ):
        expected = render(net, (4, 2), extents=options.get("region", domain.extents), average=average, nodes=nodes)
        np.testing.assert_array_equal(render_domain(net, domain, (4, 2), **options), expected)
    for shape in ((4,), (4, 0)):
        with pytest.raises(ValueError, match="the network has 2 coordinates; pass a positive number for each"):
            render_domain(net, domain, shape)


def test_a_network_of_scalars_is_refused():
    model = eqx.nn.MLP("scalar", "scalar", 8, 1, key=jax.random.key(0))
    with pytest.raises(
        ValueError, match="the MLP has in_size='scalar', but a position is a vector; make it with in_size=1"
    ):
        render(model, (8,))
