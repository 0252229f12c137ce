"""Sampling: a field on the devices that train on it, and the batches drawn from it.

Every device holds an equal part of the samples, a shard, and gives its part of every batch; the gradients are summed by
the compiler. One device is the case of one shard. It works across processes started with `jax.distributed`, too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Shaped

from ..fitting.batches import round_steps, run_starts, run_strides
from ..jax.render import grid_positions
from ..signals.fields import Align, Extent, Field, Grid

# Activations of one layer in memory at once. More of them leave the cache of a CPU, where an accelerator wants more.
_BLOCK_CPU, _BLOCK_ACCELERATOR = 1 << 19, 1 << 24


class Samples(eqx.Module):
    """The samples that are known, one shard to a device. Positions of a grid are made from indices and never stored."""

    values: Array  # (shards, samples of a shard, out_size), in the type they were given in
    positions: Array | None  # (shards, samples of a shard, in_size)
    numbers: Array | None  # (shards, samples of a shard, 1): which of all observations these are, if some are missing
    grid: tuple[tuple[int, ...], tuple[Extent, ...], Align] | None = eqx.field(static=True)
    count: int = eqx.field(static=True)  # of all samples; the last shard may be padded
    dtype: jnp.dtype = eqx.field(static=True)

    @staticmethod
    def of(field: Field, dtype: jnp.dtype) -> "Samples":
        samples = Samples.of_rows(field.flat_values(), dtype, missing=field.missing)
        if isinstance(field, Grid):
            grid = field.shape, field.extents, field.align
            return Samples(samples.values, None, samples.numbers, grid, samples.count, dtype)
        positions = _sharded(field.positions.astype(dtype))
        return Samples(samples.values, positions, None, None, samples.count, dtype)

    @staticmethod
    def of_rows(
        values: Shaped[np.ndarray, "samples out_size"],
        dtype: jnp.dtype,
        missing: Bool[np.ndarray, " samples"] | None = None,
    ) -> "Samples":
        """Values without positions. Those that are missing are left out."""
        numbers = None
        if missing is not None:
            known = np.flatnonzero(~missing).astype(np.int32)
            values, numbers = values[known], _sharded(known[:, None])
        stored = _sharded(values.astype(dtype, copy=False) if values.dtype.kind == "f" else values)
        return Samples(stored, None, numbers, None, len(values), dtype)

    def draw(
        self, key: PRNGKeyArray, n: int, step: int | Int[Array, ""] = 0
    ) -> tuple[Int[Array, " drawn"], Float[Array, " drawn"]]:
        """Indices of about `n` samples, and the weight of each: 1 on average, and 0 for the padding of a shard.

        With one key, the steps visit all samples in turn.
        """
        shards, size, _ = self.values.shape
        keys, each = jax.random.split(key, shards), min(size, -(-n // shards))
        local = jax.vmap(lambda key: choose(key, size, each, step))(keys)  # (shards, drawn of a shard)
        starts = size * jnp.arange(shards, dtype=jnp.int32)
        indices = (local + starts[:, None]).ravel()
        weights = (indices < self.count).astype(self.dtype)
        return indices, weights / weights.mean()

    def at(self, indices: Int[Array, " n"]) -> tuple[Float[Array, "n in_size"], Float[Array, "n out_size"]]:
        """The positions and the values of some samples."""
        return self.positions_at(indices), self.values_at(indices)

    def values_at(self, indices: Int[Array, " n"]) -> Float[Array, "n out_size"]:
        """The values of some samples."""
        return self._rows(self.values, indices).astype(self.dtype)

    def positions_at(self, indices: Int[Array, " n"]) -> Float[Array, "n in_size"]:
        """The positions of some samples."""
        if self.grid is not None:
            return grid_positions(self.numbers_at(indices), *self.grid, dtype=self.dtype)
        assert self.positions is not None
        return self._rows(self.positions, indices)

    def numbers_at(self, indices: Int[Array, " n"]) -> Int[Array, " n"]:
        """Which of all observations these samples are, counting those that are missing."""
        return indices if self.numbers is None else self._rows(self.numbers, indices)[:, 0]

    def _rows(self, array: Array, indices: Int[Array, " n"]) -> Array:
        shards, size, _ = array.shape
        if shards == 1:
            return array[0, indices]
        # The indices of a shard stand together, so every device looks up its own.
        local = (indices % size).reshape(shards, -1)
        return jax.vmap(lambda shard, i: shard[i])(array, local).reshape(len(indices), -1)


def choose(key: PRNGKeyArray, samples: int, batch: int, step: int | Int[Array, ""] = 0) -> Int[Array, " batch"]:
    """The indices of a step below `samples`: all of them, or one of each run, in the order of `fitting.batches`."""
    if batch == samples:
        return jnp.arange(samples, dtype=jnp.int32)
    number, visit = jnp.divmod(jnp.asarray(step, jnp.int32), round_steps(samples, batch))
    first, stride, shift = jax.random.split(jax.random.fold_in(key, number), 3)
    run, strides = samples // batch, jnp.asarray(run_strides(samples, batch), jnp.int32)
    strides = strides[jax.random.randint(stride, (batch,), 0, len(strides), jnp.int32)]
    within = (jax.random.randint(first, (batch,), 0, run, jnp.int32) + strides * visit) % run
    indices = run_starts(samples, batch) + within
    left = samples - jax.random.randint(shift, (), 0, samples, jnp.int32)  # those from here on wrap around
    return jnp.where(indices < left, indices + (samples - left), indices - left)  # all stays within int32


def block_size(width: int) -> int:
    """How many samples a network of some width takes at once."""
    return max(1, (_BLOCK_CPU if jax.default_backend() == "cpu" else _BLOCK_ACCELERATOR) // width)


def cut(batch: PyTree, size: int, block: int) -> tuple[PyTree, Float[Array, "blocks n"] | None]:
    """A batch of `size` observations in equal blocks, along a new first axis, and the weight of each observation.

    Every device has its share of every block. A block may repeat observations to be as long as the others, with the
    weight 0. No weights, `None`, if none is repeated.
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
