"""Rendering: a network's values and derivatives on a grid of any size, in chunks of bounded memory."""

import itertools
import math
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..fitting.pictures import camera_options
from ..signals.fields import Align, Extent, Field, Grid
from ..signals.metrics import Metrics, evaluate
from ..signals.views import Derivative, View, grid_frame, require_grid
from ..storage.network_file import Domain
from .derivatives import gradient, laplacian
from .network import Network, dtype_of, evaluate_rows, require_vectors, widest_layer

# Memory for the activations of a chunk. Larger ones leave the cache, and take up to half as long again on a CPU.
_CHUNK_BYTES = 1 << 23


def render(
    network: Network,
    shape: Sequence[int],
    *,
    extents: Extent | Sequence[Extent] = (-1.0, 1.0),
    align: Align = "centers",
    region: Extent | Sequence[Extent] | None = None,
    derivative: Derivative | None = None,
    average: bool = False,
    nodes: int | Sequence[int] = 4,
) -> Float[np.ndarray, "..."]:
    """The values of a network on a grid, at any resolution.

    With the extents and alignment of the field that the network was fitted to, the shape of the field gives the
    positions it was fitted at. With `"centers"`, a shape twice as large gives the centres of half-pixels, so that the
    picture does not shift.

    **Arguments:**

    - `network`: what to render: a `CoordinateMLP` or any Equinox module that maps a position to channels.
    - `shape`: the number of samples along each coordinate axis.
    - `extents`, `align`: the domain, as for `Grid`.
    - `region`: what to show of the domain, or beyond: the interval `(low, high)` that the samples span along each axis,
        in the units of the extents. Default: all of it.
    - `derivative`: `"gradient"` for the derivative of every channel by every coordinate, `"laplacian"` for the sum of
        the second derivatives of every channel. Both are exact, by forward differentiation.
    - `average`: whether to take the mean over the cell around each sample, as a camera does, instead of the value in
        its middle. That is right for a network fitted to `Averages` at the size it was fitted at, and for any network
        at a smaller size, where detail finer than the cells would otherwise turn into patterns that are not there.
    - `nodes`: positions of Gauss and Legendre along each axis of a cell, or one number for each axis. Four are enough
        for cells of the fitted size, and cells that are k times wider need about 2k + 2.

    **Returns:**

    An array in the precision of the network, of shape `(*shape, out_size)`, or `(*shape, out_size, in_size)` for the
    gradient.

    !!! example
        ```python
        picture = render(network, (64, 64))
        corner = render(network, (64, 64), region=((-1.0, -0.9), (-1.0, -0.9)))
        edges = np.linalg.norm(render(network, (64, 64), derivative="gradient"), axis=-1)
        thumbnail = render(network, (8, 8), average=True, nodes=18)
        ```
    """
    require_vectors(network)
    view = View.of(
        shape,
        getattr(network, "in_size", len(shape)),
        extents=extents,
        align=align,
        region=region,
        derivative=derivative,
        average=average,
        nodes=nodes,
    )
    values = _collect(_view_chunks(network, view, derivative), math.prod(view.shape))
    return values.reshape(*view.shape, *values.shape[1:])


def _view_chunks(
    network: Network,
    view: View,
    derivative: Derivative | None = None,
    indices: Int[np.ndarray, " n"] | Int[Array, " n"] | None = None,
) -> Iterator[np.ndarray]:
    """The samples of a view in chunks: all of them, or those at some flat indices."""
    dtype, samples = dtype_of(network), math.prod(view.shape)
    middle, half_step = jnp.asarray(view.middle, dtype), jnp.asarray(view.half_step, dtype)
    rule = None if view.offsets is None else (jnp.asarray(view.offsets, dtype), jnp.asarray(view.weights, dtype))
    size, count = _chunk_size(network, samples, len(view.shape), derivative), samples
    if indices is not None:
        count, indices = len(indices), jnp.asarray(indices, jnp.int32)
    for start in range(0, count, size):
        # The last chunk is filled up with its last sample, so that one program serves all.
        places = jnp.minimum(start + jnp.arange(size, dtype=jnp.int32), count - 1)
        chosen = places if indices is None else indices[places]
        chunk = _render_chunk(network, chosen, view.shape, middle, half_step, derivative, rule)
        yield np.asarray(chunk)[: count - start]


def _collect(chunks: Iterator[np.ndarray], samples: int) -> np.ndarray:
    first, start = next(chunks), 0
    values = np.empty((samples, *first.shape[1:]), first.dtype)
    for chunk in itertools.chain((first,), chunks):
        values[start : start + len(chunk)] = chunk
        start += len(chunk)
    return values


def render_domain(
    network: Network,
    domain: Domain,
    shape: Sequence[int],
    *,
    region: Extent | Sequence[Extent] | None = None,
    derivative: Derivative | None = None,
    average: bool | None = None,
    nodes: int | Sequence[int] | None = None,
) -> Float[np.ndarray, "..."]:
    """The values of a network on a grid over the domain that it was fitted on, as a camera would see them.

    **Arguments:**

    - `network`, `shape`, `region`, `derivative`: as for `render`.
    - `domain`: where the field was sampled, and as what.
    - `average`: whether to take means over cells. Default: by `camera_nodes`.
    - `nodes`: for these means, as for `render`. Default: as many as cells of their size need.

    !!! example
        ```python
        from uniphase.jax.render import render_domain
        from uniphase.storage.network_file import Domain

        thumbnail = render_domain(network, Domain.of(field), (4, 4))  # of averages
        corner = render_domain(network, Domain.of(field), (64, 64), region=(-1.0, -0.9))  # of points
        ```
    """
    options = camera_options(domain, shape, region=region, average=average, nodes=nodes)
    return render(network, shape, derivative=derivative, **options)


def grid_positions(
    indices: Int[Array, " n"],
    shape: tuple[int, ...],
    extents: tuple[Extent, ...],
    align: Align,
    *,
    dtype: jnp.dtype | type | None = None,
) -> Float[Array, "n in_size"]:
    """The positions of some samples of a grid, by their flat indices: rows of `Grid.coordinates()`, never stored.

    Each axis is counted from its middle in whole numbers, so that positions there are as fine as the type allows: in
    float32 no two of 2²⁴ samples on (-1, 1) fall together.

    **Arguments:**

    - `indices`: flat indices in int32, the last axis running fastest.
    - `shape`, `extents`, `align`: of the grid, which has fewer than 2³¹ samples.
    - `dtype`: of the positions. Default: JAX's default floating-point type.

    !!! example
        ```python
        grid_positions(jnp.array([0, 3]), field.shape, field.extents, field.align)  # field.coordinates()[[0, 3]]
        ```
    """
    require_grid(shape, align)
    dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
    return _positions(indices, shape, *(jnp.asarray(each, dtype) for each in grid_frame(shape, extents, align)))


def _positions(indices: Array, shape: tuple[int, ...], middle: Array, half_step: Array) -> Array:
    axes = []
    for n in reversed(shape):
        indices, i = jnp.divmod(indices, n)
        axes.append(i - (n - 1 - i))  # 2i - (n - 1) half-steps from the middle, within int32
    return middle + half_step * jnp.stack(axes[::-1], axis=-1).astype(middle.dtype)


@eqx.filter_jit
def _render_chunk(
    network: Network,
    indices: Int[Array, " n"],
    shape: tuple[int, ...],
    middle: Array,
    half_step: Array,
    derivative: Derivative | None,
    rule: tuple[Array, Array] | None,
) -> Array:
    centers = _positions(indices, shape, middle, half_step)
    if rule is None:
        return _evaluate(network, centers, derivative)

    # The weights add up to 1: the mean is one value, plus that of the differences from it, which are rounded like the
    # detail and not like an offset.
    first, *others = rule[0][0], rule[0][1:], rule[1][1:]
    start = _evaluate(network, centers + half_step * first, derivative)

    def add_node(total, node):
        offset, weight = node
        return total + weight * (_evaluate(network, centers + half_step * offset, derivative) - start), None

    return start + jax.lax.scan(add_node, jnp.zeros_like(start), others)[0]


def _evaluate(network: Network, x: Float[Array, "n in_size"], derivative: Derivative | None) -> Array:
    if derivative is None:
        return evaluate_rows(network, x)
    return gradient(network, x) if derivative == "gradient" else laplacian(network, x)


def predict(network: Network, field: Field, *, average: bool = False) -> Float[np.ndarray, "..."]:
    """The values of a network at the samples of a field, in the shape of its values.

    **Arguments:**

    - `network`, `field`: what to evaluate, and where.
    - `average`: whether the samples of a grid are means over their cells, as for `render`.

    !!! example
        ```python
        from uniphase.jax.render import predict

        error = predict(network, field) - field.values
        ```
    """
    values = _collect(predict_chunks(network, field, average=average), field.samples)
    return values.reshape(*field.values.shape[:-1], values.shape[-1])


def predict_chunks(
    network: Network, field: Field, indices: Int[np.ndarray, " n"] | None = None, *, average: bool = False
) -> Iterator[Float[np.ndarray, "_ out_size"]]:
    """The values of a network at the samples of a field, a chunk at a time, in the order of `field.flat_values()`.

    **Arguments:**

    - `network`, `field`, `average`: as for `predict`.
    - `indices`: of some of the samples, in place of all.

    !!! example
        ```python
        from uniphase.jax.render import predict_chunks

        for values in predict_chunks(network, field, np.arange(0, field.samples, 2)):
            print(len(values))
        ```
    """
    require_vectors(network)
    if isinstance(field, Grid):
        in_size, domain = getattr(network, "in_size", field.in_size), {"extents": field.extents, "align": field.align}
        view = View.of(field.shape, in_size, **domain, region=None, derivative=None, average=average, nodes=4)
        return _view_chunks(network, view, None, indices)
    if average:
        raise ValueError("scattered points have no cells to average over; pass average=False")
    return _point_chunks(network, field.positions if indices is None else field.positions[indices], field.samples)


def _point_chunks(network: Network, positions: Float[np.ndarray, "n in_size"], samples: int) -> Iterator[np.ndarray]:
    size = _chunk_size(network, samples, positions.shape[1], None)
    for start in range(0, len(positions), size):
        places = np.minimum(np.arange(start, start + size), len(positions) - 1)
        chunk = _evaluate_chunk(network, jnp.asarray(positions[places], dtype_of(network)))
        yield np.asarray(chunk)[: len(positions) - start]


def evaluate_network(network: Network, field: Field, *, average: bool = False) -> Metrics:
    """The metrics of a network over all samples of a field.

    **Arguments:** as for `predict`.

    !!! example
        ```python
        evaluate_network(network, field).snr_db
        ```
    """
    return evaluate(predict(network, field, average=average), field)


@eqx.filter_jit
def _evaluate_chunk(network: Network, positions: Float[Array, "n in_size"]) -> Array:
    return evaluate_rows(network, positions)


def _chunk_size(network: Network, samples: int, in_size: int, derivative: Derivative | None) -> int:
    """Samples per chunk: chunks of equal size within `_CHUNK_BYTES`, so that little of the last is wasted."""
    arrays = {None: 1, "gradient": 1 + in_size, "laplacian": 2 + in_size}[derivative]
    bytes_per_sample = 2 * widest_layer(network) * arrays * dtype_of(network).itemsize  # inputs and outputs of a layer
    return math.ceil(samples / math.ceil(samples * bytes_per_sample / _CHUNK_BYTES))
