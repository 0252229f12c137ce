"""Network files: a `CoordinateMLP` as a `.uniphase` file, which the PyTorch side reads and writes as well."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..initialization.blueprint import Blueprint
from ..signals.paths import FilePath
from ..storage.network_file import NOT_THE_BLUEPRINT, NetworkFile, read_network, write_network
from ..storage.quantization import dequantize_tensors, quantize_tensors
from ..storage.structure import read_structure, same_structure
from .network import CoordinateMLP


def save_network(path: FilePath, file: NetworkFile[CoordinateMLP]) -> None:
    """Write a network to a `.uniphase` file, whole or not at all.

    **Arguments:**

    - `path`: where to.
    - `file`: the network and what it represents, from `NetworkFile.of(network, field)`.

    !!! example
        ```python
        save_network("camera.uniphase", NetworkFile.of(network, field, training={"seed": 0}))
        ```
    """
    if not same_structure(read_structure(file.network), file.blueprint):
        raise ValueError(f"{path}: {NOT_THE_BLUEPRINT}")
    write_network(path, file, _numpy_arrays(file.network), "jax")


def load_network(path: FilePath) -> NetworkFile[CoordinateMLP]:
    """Read a network from a `.uniphase` file.

    !!! example
        ```python
        save_network("camera.uniphase", NetworkFile.of(network, field))
        file = load_network("camera.uniphase")
        render(file.network, (64, 64), extents=file.domain.extents, align=file.domain.align)
        ```
    """
    return read_network(path, _network)


def quantized_network(network: CoordinateMLP, bits: int) -> CoordinateMLP:
    """The network that a file with these `bits` gives back."""
    stored = quantize_tensors(_numpy_arrays(network), read_structure(network), bits)
    arrays = [jnp.asarray(tensor) for tensor in dequantize_tensors(stored).values()]
    return eqx.tree_at(lambda network: list(_arrays(network).values()), network, arrays)


def _numpy_arrays(network: CoordinateMLP) -> dict[str, np.ndarray]:
    return {name: np.asarray(array, order="C") for name, array in _arrays(network).items()}


def _arrays(network: CoordinateMLP) -> dict[str, Any]:
    """The arrays of a network, or their shapes, by their names in the file."""
    named = {
        f"layers.{i}.{name}": getattr(layer, name)
        for i, layer in enumerate(network.layers)
        for name in ("weight", "bias")
    }
    return {name: array for name, array in named.items() if array is not None}


def _network(blueprint: Blueprint, tensors: dict[str, np.ndarray]) -> CoordinateMLP:
    for name, tensor in tensors.items():
        if jax.dtypes.canonicalize_dtype(tensor.dtype) != tensor.dtype:
            raise ValueError(f"its tensor {name} is float64, for which jax_enable_x64 must be set")
    skeleton = eqx.filter_eval_shape(CoordinateMLP, blueprint, key=jax.random.key(0))
    arrays = [jnp.array(tensors[name]) for name in _arrays(skeleton)]
    return eqx.tree_at(lambda network: list(_arrays(network).values()), skeleton, arrays)
