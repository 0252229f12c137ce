"""Reading: a user's model as the chain of layers that it computes.

The model is traced with `torch.export`, and its graph is followed from the output back to the input. So what counts is
what the model computes, not what its classes and attributes are called: a sine with its ω may be a module, a line of
`forward` or a parameter. The chain is then run beside the model, and both must give the same.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.nn import functional as F

from ..initialization.activations import ACTIVATIONS
from ..initialization.blueprint import Role
from .network import activation_function

# For a model that cannot be read: each linear layer, the activation after it, and the factor ω inside the activation.
Stated = Sequence[tuple[nn.Module, str, float]]
Model = nn.Module | Stated

_FIX = (
    "pass the part of it that maps positions (n, in_size) to channels, e.g. model.net, or its layers as a list: "
    '[(model.first, "sine", 30.0), …, (model.last, "linear", 1.0)]'
)
# Operations that leave a chain as it is. Dropout is off while a model is read.
_NEUTRAL = {"clone", "detach", "alias", "contiguous", "squeeze", "dropout", "feature_dropout", "alpha_dropout"}

# Name, weight, bias, activation, omega, function: a layer before its role is known.
_Parts = tuple[str, Tensor, Tensor | None, str, float, Callable[[Tensor], Tensor]]


@dataclass(frozen=True, eq=False)
class ReadLayer:
    """activation(omega · (W x + b)), as a model computes it.

    - `name`: the path of its module in the model.
    - `weight`, `bias`: the model's own tensors, not copies.
    - `activation`, `omega`, `role`: as in a `LayerPlan`.
    - `function`: the activation itself; there are two functions called gelu.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    activation: str
    omega: float
    role: Role
    function: Callable[[Tensor], Tensor] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Chain:
    """A model as its layers, from the coordinates to the channels. Calling it computes what the model does."""

    layers: tuple[ReadLayer, ...]

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.layers[0].weight.shape[1]

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.layers[-1].weight.shape[0]

    @property
    def width(self) -> int:
        """Number of neurons before the last layer."""
        return self.layers[-1].weight.shape[1]

    def __call__(self, x: Float[Tensor, "*batch in_size"]) -> Float[Tensor, "*batch out_size"]:
        for layer in self.layers:
            x = layer.function(layer.omega * F.linear(x, layer.weight, layer.bias))
        return x


def read_layers(model: Model) -> Chain:
    """Read a model as a chain of linear layers with activations between them.

    **Arguments:**

    - `model`: a module that maps positions `(n, in_size)` to channels; of a tuple of outputs the first counts. For one
        that cannot be read, a list of `(linear, activation, omega)`, which is used without a check.

    !!! example
        ```python
        for layer in read_layers(model).layers:
            print(layer.name, tuple(layer.weight.shape), layer.activation, layer.omega)
        ```
    """
    if not isinstance(model, nn.Module):
        return _stated_chain(model)
    with _evaluating(model):
        positions, outputs = _run(model)
        try:
            program = torch.export.export(model, (positions,), strict=False)
        except Exception as error:  # the model's own, or what the tracer does not support
            raise ValueError(f"the model {type(model).__name__} cannot be traced ({_reason(error)}); {_FIX}") from error
        chain = _as_chain(_Graph(model, program).layers())
        _require_agreement(model, chain, positions, outputs)
    return chain


def _run(model: nn.Module) -> tuple[Tensor, Tensor]:
    """A few positions and the outputs there. Some matrix has a column for each coordinate: each of them is tried."""
    matrices = [tensor for tensor in [*model.parameters(), *model.buffers()] if tensor.ndim == 2]
    failure = "it has no matrix"
    for in_size in dict.fromkeys(matrix.shape[1] for matrix in matrices):
        generator = torch.Generator().manual_seed(0)  # leaves the global state alone
        positions = (2 * torch.rand(7, in_size, generator=generator, dtype=torch.float64) - 1).to(matrices[0])
        try:
            outputs = model(positions)
        except Exception as error:  # a user's model may raise anything
            failure = _reason(error)
            continue
        outputs = outputs[0] if isinstance(outputs, tuple | list) else outputs
        if isinstance(outputs, Tensor):
            return positions, outputs
        failure = f"it returns a {type(outputs).__name__}"
    raise ValueError(
        f"the model {type(model).__name__} does not map positions (n, in_size) to channels ({failure}); {_FIX}"
    )


def _as_chain(layers: Sequence[_Parts]) -> Chain:
    last = len(layers) - 1
    roles: list[Role] = ["output" if i == last else "hidden" if i else "input" for i in range(len(layers))]
    return Chain(
        tuple(
            ReadLayer(name, weight, bias, activation, omega, role, function)
            for (name, weight, bias, activation, omega, function), role in zip(layers, roles, strict=True)
        )
    )


def _stated_chain(stated: Stated) -> Chain:
    if not stated:
        raise ValueError("model is an empty list; pass a module, or (linear, activation, omega) for each layer")
    layers: list[_Parts] = []
    for i, (linear, activation, omega) in enumerate(stated):
        weight, bias = getattr(linear, "weight", None), getattr(linear, "bias", None)
        if not isinstance(weight, Tensor) or activation not in ACTIVATIONS:
            raise ValueError(
                f"layer {i} of the list is ({type(linear).__name__}, {activation!r}); pass a module with a weight, "
                f"and one of {', '.join(ACTIVATIONS)}"
            )
        layers.append((str(i), weight, bias, activation, omega, activation_function(activation)))
    return _as_chain(layers)


class _Graph:
    """A traced model, read from its output back to its input."""

    def __init__(self, model: nn.Module, program: ExportedProgram):
        signature = program.graph_signature
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        tensors = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
        self.names = names  # of the model's tensors, by those of the graph
        self.tensors = {ours: tensors[theirs] for ours, theirs in names.items()}
        nodes = {node.name: node for node in program.graph.nodes}
        self.input, self.output = (nodes[next(iter(n))] for n in (signature.user_inputs, signature.user_outputs))

    def layers(self) -> list[_Parts]:
        layers: list[_Parts] = []
        node = self._skip(self.output)
        while node is not self.input:
            node, layer = self._layer(node)
            layers.insert(0, layer)
        return layers

    def _layer(self, node: fx.Node) -> tuple[fx.Node, _Parts]:
        node, activation, function = self._activation(node)
        node, omega = self._factors(node)
        x, weight, bias = self._linear(node)
        if bias is None:  # then a factor before the matrix is one behind it
            x, factor = self._factors(x)
            omega *= factor
        weight_name = self.names[weight.name].removesuffix("weight").removesuffix(".")
        tensors = self.tensors[weight.name], None if bias is None else self.tensors[bias.name]
        return self._skip(x), (weight_name or "weight", *tensors, activation, omega, function)

    def _activation(self, node: fx.Node) -> tuple[fx.Node, str, Callable[[Tensor], Tensor]]:
        """The argument of an activation, its name, and the function itself."""
        operation = _operation(node)
        if operation == "cat" and node.args[1:] in ((-1,), (1,)):
            parts = [self._skip(part) for part in _nodes(node.args[0])]
            if [_operation(part) for part in parts] == ["sin", "cos"] and parts[0].args == parts[1].args:
                return self._skip(_nodes(parts[0].args)[0]), "sincos", activation_function("sincos")
        by_operator = {entry.operator: name for name, entry in ACTIVATIONS.items() if entry.operator is not None}
        if operation not in by_operator:
            return node, "linear", activation_function("linear")
        of, *others = node.args  # further arguments choose the form of the function, as for GELU
        packet = cast(Any, node.target).overloadpacket

        def function(z: Tensor) -> Tensor:
            return packet(z, *others, **node.kwargs)

        return self._skip(_nodes([of])[0]), by_operator[operation], function

    def _factors(self, node: fx.Node) -> tuple[fx.Node, float]:
        """What is multiplied by numbers, and their product."""
        product = 1.0
        while _operation(node) in ("mul", "div"):
            left, right = node.args[:2]
            value, number = (left, right) if self._number(right) is not None else (right, left)
            factor = self._number(number)
            if factor is None or not isinstance(value, fx.Node) or (_operation(node) == "div" and value is right):
                break
            product *= factor if _operation(node) == "mul" else 1 / factor
            node = self._skip(value)
        return node, product

    def _number(self, argument) -> float | None:
        if isinstance(argument, fx.Node) and argument.name in self.tensors:
            argument = self.tensors[argument.name]
            argument = argument.item() if argument.numel() == 1 else None
        return float(argument) if isinstance(argument, float | int) else None

    def _linear(self, node: fx.Node) -> tuple[fx.Node, fx.Node, fx.Node | None]:
        """The input of a linear map, its weight and its bias."""
        operands = _nodes(node.args)
        if _operation(node) == "matmul" and _operation(operands[1]) in ("numpy_T", "t", "permute", "transpose"):
            operands[1] = _nodes(operands[1].args)[0]
        elif _operation(node) != "linear":
            raise ValueError(f"{_place(node)}, which is not a linear layer or a known activation; {_FIX}")
        x, weight, bias = operands[0], operands[1], operands[2] if len(operands) > 2 else None
        for tensor in (weight, bias):
            if tensor is not None and tensor.name not in self.tensors:
                raise ValueError(f"{_place(node)} with weights that are not a parameter or buffer of the model; {_FIX}")
        return x, weight, bias

    def _skip(self, node: fx.Node) -> fx.Node:
        while _operation(node) in _NEUTRAL:
            node = _nodes(node.args)[0]
        return node


def _operation(node: fx.Node) -> str:
    """The name of the operation of a node, the same for its in-place form."""
    packet = getattr(node.target, "overloadpacket", None)
    return node.op if packet is None else packet.__name__.removesuffix("_")


def _nodes(arguments) -> list[fx.Node]:
    return [argument for argument in arguments if isinstance(argument, fx.Node)]


def _place(node: fx.Node) -> str:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = stack[-1] if stack else ("", "the model")
    kind = kind if isinstance(kind, str) else kind.__name__
    where = f"module {path!r} ({kind.rpartition('.')[2]})" if path else f"the model {kind.rpartition('.')[2]}"
    return f"{where} computes {_operation(node)!r}"


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and gradients off for a while."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


def _require_agreement(model: nn.Module, chain: Chain, positions: Tensor, outputs: Tensor) -> None:
    # The same operations, of which some in another order: phases of a few hundred are rounded to some hundred ε.
    tolerance = 1e3 * torch.finfo(outputs.dtype).eps * float(outputs.abs().max())
    found = chain(positions)
    same_size = found.numel() == outputs.numel()
    if math.isfinite(tolerance) and not (same_size and (found - outputs.view_as(found)).abs().max() <= tolerance):
        names = ", ".join(layer.name for layer in chain.layers)
        raise ValueError(
            f"the model {type(model).__name__} was read as the layers {names}, but these give other outputs; {_FIX}"
        )
