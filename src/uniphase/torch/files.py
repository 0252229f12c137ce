"""Network files: a `CoordinateMLP` as a `.uniphase` file, which the JAX side reads and writes as well."""

import copy
from typing import cast

import numpy as np
import torch
from torch import Tensor

from ..initialization.blueprint import Blueprint
from ..signals.paths import FilePath
from ..storage.network_file import NOT_THE_BLUEPRINT, NetworkFile, read_network, write_network
from ..storage.quantization import dequantize_tensors, quantize_tensors
from ..storage.structure import read_structure, same_structure
from .network import CoordinateMLP, Layer


def save_network(path: FilePath, file: NetworkFile[CoordinateMLP]) -> None:
    """Write a network to a `.uniphase` file, whole or not at all.

    **Arguments:**

    - `path`: where to.
    - `file`: the network and what it represents, from `uniphase.NetworkFile.of(network, field)`.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        save_network("camera.uniphase", NetworkFile.of(CoordinateMLP(blueprint), field))
        ```
    """
    if not same_structure(read_structure(file.network), file.blueprint):
        raise ValueError(f"{path}: {NOT_THE_BLUEPRINT}")
    write_network(path, file, _numpy_arrays(path, file.network), "torch")


def load_network(path: FilePath, *, device: torch.device | str | None = None) -> NetworkFile[CoordinateMLP]:
    """Read a network from a `.uniphase` file, in the precision that it was saved in.

    **Arguments:**

    - `path`: where from.
    - `device`: where the tensors should be. Default: PyTorch's own.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        save_network("camera.uniphase", NetworkFile.of(CoordinateMLP(blueprint), field))
        file = load_network("camera.uniphase")
        values = file.network(torch.rand(100, 2))
        ```
    """

    def build(blueprint: Blueprint, tensors: dict[str, np.ndarray]) -> CoordinateMLP:
        network = CoordinateMLP(blueprint, device="meta")
        state = {name: torch.tensor(tensor, device=device) for name, tensor in tensors.items()}
        network.load_state_dict(state, assign=True)
        return network

    file = read_network(path, build)
    for layer, plan in zip(file.network.layers.children(), file.blueprint.layers, strict=True):
        cast(Layer, layer).laws = plan.weight, plan.bias  # it was built with zeros
    return file


def quantized_network(network: CoordinateMLP, bits: int) -> CoordinateMLP:
    """The network that a file with these `bits` gives back."""
    stored = quantize_tensors(_numpy_arrays("bits", network), read_structure(network), bits)
    rounded = copy.deepcopy(network)
    rounded.load_state_dict({name: torch.tensor(tensor) for name, tensor in dequantize_tensors(stored).items()})
    return rounded


def _numpy_arrays(path: FilePath, network: CoordinateMLP) -> dict[str, np.ndarray]:
    return {name: _to_numpy(path, name, tensor) for name, tensor in network.state_dict().items()}


def _to_numpy(path: FilePath, name: str, tensor: Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        raise ValueError(f"{path}: {name} is bfloat16, which NumPy does not have; save network.float()")
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
