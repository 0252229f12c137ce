"""Sampling: a field on the devices that train on it, and the batches drawn from it.

Every device holds an equal part of the samples, a shard, and gives its part of every batch; the gradients are summed by
the compiler. One device is the case of one shard. It works across processes started with `jax.distributed`, too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from ..jax.render import grid_positions
from ..signals.fields import Align, Extent, Field, Grid

# Activations of one layer in memory at once. More of them leave the cache of a CPU, where an accelerator wants more.
_BLOCK_CPU, _BLOCK_ACCELERATOR = 1 << 19, 1 << 24


class Samples(eqx.Module):
    """The samples, one shard to a device. The positions of a grid are made from its indices and never stored."""

    values: Array  # (shards, samples of a shard, out_size), in the type they were given in
    positions: Array | None  # (shards, samples of a shard, in_size)
    grid: tuple[tuple[int, ...], tuple[Extent, ...], Align] | None = eqx.field(static=True)
    count: int = eqx.field(static=True)  # of all samples; the last shard may be padded
    dtype: jnp.dtype = eqx.field(static=True)

    @staticmethod
    def of(field: Field, dtype: jnp.dtype) -> "Samples":
        values = field.flat_values()
        values = _sharded(values.astype(dtype, copy=False) if values.dtype.kind == "f" else values)
        if isinstance(field, Grid):
            return Samples(values, None, (field.shape, field.extents, field.align), field.samples, dtype)
        return Samples(values, _sharded(field.positions.astype(dtype)), None, field.samples, dtype)

    def draw(self, key: PRNGKeyArray, n: int) -> tuple[Int[Array, " drawn"], Float[Array, " drawn"]]:
        """Indices of about `n` samples, and what each counts: 1 on average, and 0 for the padding of a shard."""
        shards, size, _ = self.values.shape
        keys = jax.random.split(key, shards)
        local = jax.vmap(lambda key: choose(key, size, min(size, -(-n // shards))))(keys)  # (shards, drawn of a shard)
        starts = size * jnp.arange(shards, dtype=jnp.int32)
        indices = (local + starts[:, None]).ravel()
        weights = (indices < self.count).astype(self.dtype)
        return indices, weights / weights.mean()

    def at(self, indices: Int[Array, " n"]) -> tuple[Float[Array, "n in_size"], Float[Array, "n out_size"]]:
        """Positions and values of some samples."""
        shards, size, _ = self.values.shape
        if shards == 1:
            values = self.values[0, indices]
        else:  # the indices of a shard stand together, so every device looks up its own
            local = (indices % size).reshape(shards, -1)
            values = jax.vmap(lambda shard, i: shard[i])(self.values, local).reshape(len(indices), -1)
        if self.grid is not None:
            return grid_positions(indices, *self.grid, dtype=self.dtype), values.astype(self.dtype)
        assert self.positions is not None
        if shards == 1:
            return self.positions[0, indices], values.astype(self.dtype)
        positions = jax.vmap(lambda shard, i: shard[i])(self.positions, (indices % size).reshape(shards, -1))
        return positions.reshape(len(indices), -1), values.astype(self.dtype)


def choose(key: PRNGKeyArray, samples: int, batch: int) -> Int[Array, " batch"]:
    """Some indices below `samples`: all of them, or one at random from each of as many equal runs."""
    if batch == samples:
        return jnp.arange(samples, dtype=jnp.int32)
    run = samples // batch
    within, shift = jax.random.split(key)
    indices = jnp.arange(batch, dtype=jnp.int32) * run + jax.random.randint(within, (batch,), 0, run)
    left = samples - jax.random.randint(shift, (), 0, samples)  # those from here on wrap around; all stays within int32
    return jnp.where(indices < left, indices + (samples - left), indices - left)


def block_size(width: int) -> int:
    """How many samples a network of some width takes at once."""
    return max(1, (_BLOCK_CPU if jax.default_backend() == "cpu" else _BLOCK_ACCELERATOR) // width)


def cut(batch: PyTree, size: int, block: int) -> tuple[PyTree, Float[Array, "blocks n"] | None]:
    """A batch of `size` observations in equal blocks, along a new first axis, and what each observation counts.

    Every device has its share of every block. A block may repeat observations to be as long as the others; they count
    0 then. `None` if none is repeated.
    """
    shards = jax.device_count() if size % jax.device_count() == 0 else 1
    share = size // shards
    blocks = -(-size // block)
    rows = -(-share // blocks)

    def in_blocks(leaf: Array) -> Array:
        shape = leaf.shape[1:]
        leaf = leaf.reshape(shards, share, *shape)
        if rows * blocks > share:
            leaf = leaf[:, jnp.minimum(jnp.arange(rows * blocks, dtype=jnp.int32), share - 1)]
        return jnp.swapaxes(leaf.reshape(shards, blocks, rows, *shape), 0, 1).reshape(blocks, shards * rows, *shape)

    batch = jax.tree.map(in_blocks, batch)
    if rows * blocks == share:
        return batch, None
    counted = (jnp.arange(rows * blocks, dtype=jnp.int32) < share).reshape(blocks, rows)
    return batch, jnp.tile(counted, (1, shards)).astype(jnp.result_type(float))


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
