"""Network files: a `CoordinateMLP` as a `.uniphase` file, which the PyTorch side reads and writes as well."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..initialization.blueprint import Blueprint
from ..signals.paths import FilePath
from ..storage.network_file import Saved, read_network, tensor_shapes, write_network
from .network import CoordinateMLP


def save_network(path: FilePath, saved: Saved[CoordinateMLP]) -> None:
    """Write a network to a `.uniphase` file, whole or not at all.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        network = CoordinateMLP(blueprint, key=jax.random.key(0))
        save_network("camera.uniphase", Saved.of(network, blueprint, field, training={"seed": 0}))
        ```
    """
    if jax.tree.structure(saved.network) != jax.tree.structure(_skeleton(saved.blueprint)):
        raise ValueError(f"{path}: the network does not follow the blueprint; pass the one that it was drawn from")
    tensors = {
        jax.tree_util.keystr(place, simple=True, separator="."): np.asarray(leaf, order="C")
        for place, leaf in jax.tree.leaves_with_path(saved.network)
    }
    write_network(path, saved, tensors, "jax")


def load_network(path: FilePath) -> Saved[CoordinateMLP]:
    """Read a network from a `.uniphase` file.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        network = CoordinateMLP(blueprint, key=jax.random.key(0))
        save_network("camera.uniphase", Saved.of(network, blueprint, field))
        saved = load_network("camera.uniphase")
        render(saved.network, (64, 64), extents=saved.domain.extents, align=saved.domain.align)
        ```
    """
    return read_network(path, _network)


def _skeleton(blueprint: Blueprint) -> CoordinateMLP:
    """A network with shapes in place of arrays."""
    return eqx.filter_eval_shape(CoordinateMLP, blueprint, key=jax.random.key(0))


def _network(blueprint: Blueprint, tensors: dict[str, np.ndarray]) -> CoordinateMLP:
    for name, tensor in tensors.items():
        if jax.dtypes.canonicalize_dtype(tensor.dtype) != tensor.dtype:
            raise ValueError(f"its tensor {name} is float64, for which jax_enable_x64 must be set")
    leaves = [jnp.array(tensors[name]) for name in tensor_shapes(blueprint)]
    return jax.tree.unflatten(jax.tree.structure(_skeleton(blueprint)), leaves)
