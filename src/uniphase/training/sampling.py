"""Samples: a field on the devices that train on it, and the batches drawn from it.

Every device holds an equal part of the samples, a shard, and gives its part of every batch; the gradients are summed by
the compiler. One device is the case of one shard. It works across processes started with `jax.distributed`, too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

from ..jax.render import grid_positions
from ..signals.fields import Align, Extent, Field, Grid

# Activations of one layer in memory at once. More of them leave the cache of a CPU, where an accelerator wants more.
_BLOCK_CPU, _BLOCK_ACCELERATOR = 1 << 19, 1 << 24


class Samples(eqx.Module):
    """The samples, one shard to a device. The positions of a grid are made from its indices and never stored."""

    values: Array  # (shards, samples of a shard, out_size), in the type they were given in
    positions: Array | None  # (shards, samples of a shard, in_size)
    grid: tuple[tuple[int, ...], tuple[Extent, ...], Align] | None = eqx.field(static=True)
    count: int = eqx.field(static=True)  # of all samples; the last shard may hold a few that are none

    @staticmethod
    def of(field: Field, dtype: jnp.dtype) -> "Samples":
        values = field.flat_values()
        values = _sharded(values.astype(dtype, copy=False) if values.dtype.kind == "f" else values)
        if isinstance(field, Grid):
            return Samples(values, None, (field.shape, field.extents, field.align), field.samples)
        return Samples(values, _sharded(field.positions.astype(dtype)), None, field.samples)

    def at(self, indices: Array, dtype: jnp.dtype) -> tuple[Array, Array]:
        """Positions and values for `(shards, n)` indices, each counted from the start of its shard."""
        values = jax.vmap(lambda shard, i: shard[i])(self.values, indices).astype(dtype)
        if self.positions is None:
            assert self.grid is not None
            positions = grid_positions(self.global_indices(indices).ravel(), *self.grid, dtype=dtype)
        else:
            positions = jax.vmap(lambda shard, i: shard[i])(self.positions, indices)
        return positions.reshape(-1, positions.shape[-1]), values.reshape(-1, values.shape[-1])

    def global_indices(self, indices: Array) -> Array:
        shards, size, _ = self.values.shape
        starts = size * jnp.arange(shards, dtype=jnp.int32)
        return indices + starts.reshape(-1, *[1] * (indices.ndim - 1))


def _devices() -> jax.sharding.Mesh | None:
    """All devices of all processes, if there are several."""
    if jax.device_count() == 1:
        return None
    return jax.make_mesh((jax.device_count(),), ("samples",), axis_types=(jax.sharding.AxisType.Auto,))


def _sharded(rows: np.ndarray) -> Array:
    """Rows cut into as many equal shards as there are devices; a process reads only the rows of its own devices."""
    mesh = _devices()
    if mesh is None:
        return jax.device_put(rows[None], may_alias=True)  # jnp.asarray would make a second copy on the way
    size = -(-len(rows) // mesh.size)

    def shard(index) -> np.ndarray:
        number = index[0].start or 0
        part = rows[number * size : (number + 1) * size]
        return np.pad(part, ((0, size - len(part)), (0, 0)))[None]

    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("samples"))
    return jax.make_array_from_callback((mesh.size, size, rows.shape[1]), sharding, shard)


def replicate(tree: PyTree) -> PyTree:
    """The same arrays on every device."""
    mesh = _devices()
    if mesh is None:
        return tree
    arrays, static = eqx.partition(tree, eqx.is_array)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return eqx.combine(jax.device_put(jax.tree.map(np.asarray, arrays), sharding), static)


def block_size(width: int) -> int:
    """How many samples a network of some width takes at once."""
    return max(1, (_BLOCK_CPU if jax.default_backend() == "cpu" else _BLOCK_ACCELERATOR) // width)


def draw_batch(key: PRNGKeyArray, samples: Samples, batch: int, block: int) -> tuple[Array, Array]:
    """Indices and weights of a step, `(blocks, shards, n)`. Every shard gives its part of the batch."""
    shards, size, _ = samples.values.shape
    keys = jax.random.split(key, shards)
    indices = jax.vmap(lambda key: choose(key, size, min(size, -(-batch // shards))))(keys)  # (shards, chosen)
    chosen = indices.shape[1]
    weights = (samples.global_indices(indices) < samples.count).astype(jnp.result_type(float))
    blocks = -(-chosen * shards // block)
    block = -(-chosen // blocks)  # equal blocks, so that little of the last is wasted
    shape = (shards, blocks, block)
    pad = ((0, 0), (0, blocks * block - chosen))
    indices, weights = (jnp.pad(a, pad).reshape(shape).swapaxes(0, 1) for a in (indices, weights))
    return indices, weights / weights.sum()


def choose(key: PRNGKeyArray, samples: int, batch: int) -> Array:
    """Some indices below `samples`: all of them, or one at random from each of as many equal runs."""
    if batch == samples:
        return jnp.arange(samples, dtype=jnp.int32)
    run = samples // batch
    within, shift = jax.random.split(key)
    indices = jnp.arange(batch, dtype=jnp.int32) * run + jax.random.randint(within, (batch,), 0, run)
    left = samples - jax.random.randint(shift, (), 0, samples)  # those from here on wrap around; all stays within int32
    return jnp.where(indices < left, indices + (samples - left), indices - left)
