"""ONNX: a network as a model of matrix products and sines, for the runtimes of other languages."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..diagnosis.chain import LayerReading
from ..signals.sources import require_package
from ..storage.network_file import NetworkFile
from .networks import Tensors, chain_of

# Old enough for runtimes of 2021; all operators here have been the same since.
_OPSET, _IR_VERSION = 13, 8
_GELU = float(np.sqrt(2 / np.pi)), 0.044715


def make_model(path: str, title: str, file: NetworkFile[Tensors]) -> bytes:
    """The ONNX model of a network, serialized: `positions` of shape (batch, in_size) to `channels`, in float32.

    Its metadata have the domain and the range of the values as JSON.

    **Arguments:**

    - `path`: for which file, which errors name.
    - `title`: its name in the model.
    - `file`: the network.
    """
    onnx = require_package("onnx", "export", path)
    graph = _Graph(onnx)
    result = "positions"
    for i, layer in enumerate(chain_of(file.blueprint, file.network)):
        result = graph.add_layer(i, layer, result)
    graph.add("Identity", [result], "channels")
    sizes = {"positions": file.blueprint.in_size, "channels": file.blueprint.out_size}
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size])]
        for name, size in sizes.items()
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, title, *ends, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="uniphase",
    )
    onnx.helper.set_model_props(model, {key: json.dumps(value) for key, value in _notes(file).items()})
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _notes(file: NetworkFile[Any]) -> dict[str, Any]:
    domain = file.domain
    return {
        "shape": domain.shape,
        "extents": domain.extents,
        "align": domain.align,
        "medium": file.medium,
        "rate": file.rate,
        "value_range": file.value_range,
    }


class _Graph:
    """The nodes and constants of a graph that grows by one layer after the other."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: np.ndarray | float) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def add_layer(self, i: int, layer: LayerReading, x: str) -> str:
        """activation(ω (x Wᵀ + b)), rounded as the frameworks round it."""
        name = f"layers.{i}"
        z = self.add("MatMul", [x, self.constant(f"{name}.weight", layer.weight.T)], f"{name}.product")
        if layer.bias is not None:
            z = self.add("Add", [z, self.constant(f"{name}.bias", layer.bias)], f"{name}.sum")
        if layer.omega != 1:
            z = self.add("Mul", [z, self.constant(f"{name}.omega", layer.omega)], f"{name}.phase")
        return _ACTIVATIONS[layer.activation](self, z, name)


def _operator(operator: str) -> Callable[[_Graph, str, str], str]:
    return lambda graph, z, name: graph.add(operator, [z], f"{name}.{operator.lower()}")


def _sincos(graph: _Graph, z: str, name: str) -> str:
    parts = [graph.add(operator, [z], f"{name}.{operator.lower()}") for operator in ("Sin", "Cos")]
    return graph.add("Concat", parts, f"{name}.features", axis=-1)


def _silu(graph: _Graph, z: str, name: str) -> str:
    return graph.add("Mul", [z, graph.add("Sigmoid", [z], f"{name}.gate")], f"{name}.silu")


def _gelu(graph: _Graph, z: str, name: str) -> str:
    """z · sigmoid(2u), which is z (1 + tanh u) / 2, with u = √(2/π) (z + 0.044715 z³). ONNX has it only since 2023."""
    scale, cube = _GELU
    square = graph.add("Mul", [z, z], f"{name}.square")
    bend = graph.add("Mul", [square, graph.constant(f"{name}.cube", 2 * scale * cube)], f"{name}.bend")
    factor = graph.add("Add", [bend, graph.constant(f"{name}.scale", 2 * scale)], f"{name}.factor")
    gate = graph.add("Sigmoid", [graph.add("Mul", [z, factor], f"{name}.argument")], f"{name}.gate")
    return graph.add("Mul", [z, gate], f"{name}.gelu")


_ACTIVATIONS: dict[str, Callable[[_Graph, str, str], str]] = {
    "sine": _operator("Sin"),
    "sincos": _sincos,
    "tanh": _operator("Tanh"),
    "relu": _operator("Relu"),
    "silu": _silu,
    "gelu": _gelu,
    "linear": lambda graph, z, name: z,
}
