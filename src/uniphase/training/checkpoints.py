"""Checkpoints: the state of a training run, for it to be resumed bit by bit.

A state is a safetensors file with a JSON header. It holds the leaves of any pytree.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from safetensors.numpy import load_file

from ..signals.paths import FilePath, reading
from ..storage.network_file import read_metadata, write_tensors

_STATE_KEY, _STATE = "uniphase-state", ("a training state", "get a whole copy, or start the run anew")


def save_state(path: FilePath, tree: PyTree, header: Mapping[str, Any]) -> None:
    """Write a training state, whole or not at all: every bit of it comes back from `load_state`.

    **Arguments:**

    - `path`: where to.
    - `tree`: a pytree of arrays and random keys, e.g. a network with the state of its optimizer.
    - `header`: anything else, as JSON can hold it.

    !!! example
        ```python
        save_state("run.state", (network, jax.random.key(0)), {"step": 100})
        ```
    """
    leaves = _describe(tree)
    tensors = {str(i): np.asarray(_bits(leaf), order="C") for i, leaf in enumerate(jax.tree.leaves(tree))}
    write_tensors(path, tensors, _STATE_KEY, {"leaves": leaves, "header": header})


def load_state(path: FilePath, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """Read a training state that `save_state` wrote.

    **Arguments:**

    - `path`: where from.
    - `like`: a pytree with the structure, shapes and types of the one that was saved, e.g. the state of a fresh start.

    **Returns:**

    The tree and the header.

    !!! example
        ```python
        save_state("run.state", (network, jax.random.key(0)), {"step": 100})
        (network, key), header = load_state("run.state", (network, jax.random.key(1)))
        ```
    """
    expected = _describe(like)
    with reading(path, *_STATE):
        metadata, tensors = read_metadata(path, _STATE_KEY), load_file(path)
        stored, header = list(metadata["leaves"]), dict(metadata["header"])
    for ours, theirs in itertools.zip_longest(expected, stored, fillvalue="nothing"):
        if ours != theirs:
            raise ValueError(
                f"{path}: the checkpoint has {theirs}, but this run needs {ours}; resume with the settings of the "
                "saved run"
            )
    with reading(path, *_STATE):
        for i, leaf in enumerate(jax.tree.leaves(like)):
            _require_like(tensors[str(i)], _bits(leaf))
    leaves = [_from_bits(tensors[str(i)], leaf) for i, leaf in enumerate(jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header


class TreeFiles:
    """`save_state` and `load_state` for the loop. Of several processes, the first writes."""

    def save(self, path: FilePath, tree: PyTree, header: Mapping[str, Any]) -> None:
        if jax.process_index() == 0:
            save_state(path, tree, header)

    def load(self, path: FilePath, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
        return load_state(path, like)


def _describe(tree: PyTree) -> list[str]:
    """Where every leaf stands and what it is, to tell trees apart."""
    descriptions = []
    for path, leaf in jax.tree.leaves_with_path(tree):
        place = jax.tree_util.keystr(path)
        if not isinstance(leaf, jax.Array | np.ndarray):
            raise ValueError(f"tree has {leaf!r} at {place}; keep only arrays, with equinox.filter(tree, is_array)")
        descriptions.append(f"{leaf.dtype}{list(leaf.shape)} at {place}")
    return descriptions


def _is_key(leaf: jax.Array | np.ndarray) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _bits(leaf: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _require_like(tensor: np.ndarray, like: jax.Array | np.ndarray) -> None:
    if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
        raise ValueError(f"it declares {like.dtype}{list(like.shape)}, but has {tensor.dtype}{list(tensor.shape)}")


def _from_bits(tensor: np.ndarray, like: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(like, np.ndarray):
        return tensor
    array = jnp.array(tensor)
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(like)) if _is_key(like) else array
