"""Layers that a user states, for a model that computes in code that cannot be followed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as module_hooks

from ...initialization.activations import ACTIVATIONS
from ...initialization.blueprint import Role
from ..network import activation_function
from .chain import POSITIONS, AffineMap, Chain, ReadLayer
from .stored import Stored
from .values import agrees, plain


@dataclass(frozen=True, eq=False)
class StatedLayers:
    """A model together with its layers, for one that cannot be read, such as a scripted one.

    The list is compared with the model, and refused if both do not compute the same.

    **Arguments:**

    - `model`: a module that maps positions `(n, in_size)` to channels.
    - `layers`: each linear layer, the activation after it, and the factor ω inside the activation.

    !!! example
        ```python
        stated = StatedLayers(model, [(model[0], "sine", 30.0), (model[2], "sine", 1.0), (model[4], "linear", 1.0)])
        initialize_(stated, estimate_moments(field))
        ```
    """

    model: nn.Module
    layers: Sequence[tuple[nn.Module, str, float]]


def check_stated(
    model: nn.Module, stated: Sequence[tuple[nn.Module, str, float]], candidates: Iterable[Tensor]
) -> Chain:
    """The chain of stated layers, if it computes what the model does."""
    chain = _stated_chain(stated)
    fitting = [positions for positions in candidates if positions.shape[-1] == chain.in_size and positions.ndim == 2]
    if not fitting:
        raise ValueError(f"layer 0 of the list takes {chain.in_size} inputs, but no matrix of the model does")
    for positions in (fitting[0], -2 * fitting[0]):
        inputs, output = _run(model, [module for module, _, _ in stated], positions)
        _require_agreement(chain, positions, inputs, output)
    return chain


def _stated_chain(stated: Sequence[tuple[nn.Module, str, float]]) -> Chain:
    if not stated:
        raise ValueError("layers is an empty list; pass (linear, activation, omega) for each layer")
    layers, last = [], len(stated) - 1
    for i, (linear, activation, omega) in enumerate(stated):
        weight, bias = getattr(linear, "weight", None), getattr(linear, "bias", None)
        if not isinstance(weight, Tensor) or weight.ndim != 2 or activation not in ACTIVATIONS or not omega:
            raise ValueError(
                f"layer {i} of the list is ({type(linear).__name__}, {activation!r}, {omega!r}); pass a module with a "
                f"matrix as its weight, one of {', '.join(ACTIVATIONS)}, and a factor that is not zero"
            )
        role: Role = "output" if i == last else "hidden" if i else "input"
        stored = None if bias is None else Stored.whole(f"{i}.bias", bias)
        whole, inputs = Stored.whole(f"{i}.weight", weight), ((i - 1 if i else POSITIONS, 1.0),)
        function = activation_function(activation)
        layers.append(
            ReadLayer(str(i), weight, bias, activation, float(omega), role, function, inputs, None, whole, stored)
        )
    in_size, out_size = layers[0].weight.shape[1], layers[-1].weight.shape[0]
    return Chain(tuple(layers), AffineMap.identity(in_size), AffineMap.identity(out_size))


def _run(model: nn.Module, modules: Sequence[nn.Module], positions: Tensor) -> tuple[dict[int, Tensor], Tensor]:
    """What the model gives to each of the stated modules, as far as it calls them, and what it returns."""
    inputs: dict[int, Tensor] = {}
    numbers = {id(module): number for number, module in enumerate(modules)}

    def note(module: nn.Module, args: tuple[Any, ...]) -> None:
        if id(module) in numbers:
            inputs[numbers[id(module)]] = args[0].detach().clone()

    hook = module_hooks.register_module_forward_pre_hook(note)
    try:
        output = model(positions.clone())
    finally:
        hook.remove()
    return inputs, output[0] if isinstance(output, tuple | list) else output


def _require_agreement(chain: Chain, positions: Tensor, inputs: dict[int, Tensor], output: Any) -> None:
    """Compare the inputs of all layers and the output of the last with those in the model."""
    epsilon, h, bound = torch.finfo(positions.dtype).eps, plain(positions), plain(positions).abs()
    for number, layer in enumerate(chain.layers):
        before = f"gives other inputs to its layers than {_description(chain, number - 1)}"
        h = _compared(h, inputs.get(number, h), bound, epsilon, before)
        weight, bias = plain(layer.weight), None if layer.bias is None else plain(layer.bias)
        bound = abs(layer.omega) * F.linear(h.abs(), weight.abs(), None if bias is None else bias.abs())
        h = layer.function(layer.omega * F.linear(h, weight, bias))
    if not isinstance(output, Tensor):
        raise ValueError(
            f"the model returns a {type(output).__name__}, not a tensor; pass a module around it that does"
        )
    last = _description(chain, len(chain.layers) - 1)
    _compared(h, output, bound, epsilon, f"returns something else than {last}")


def _compared(found: Tensor, seen: Tensor, bound: Tensor, epsilon: float, otherwise: str) -> Tensor:
    """What the model computed, in the shape of what was expected, if both agree."""
    same_size = found.numel() == seen.numel()
    if not same_size or not agrees(found, plain(seen).reshape(found.shape), bound, epsilon):
        raise ValueError(f"the list of layers is not the model: the model {otherwise}; correct the list there")
    return plain(seen).reshape(found.shape)


def _description(chain: Chain, number: int) -> str:
    if number == POSITIONS:
        return "the positions"
    layer = chain.layers[number]
    rows, columns = layer.weight.shape
    return f"layer {number} of the list ({columns} → {rows}, {layer.activation}, omega {layer.omega:g})"
