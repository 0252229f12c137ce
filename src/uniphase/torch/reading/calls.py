"""Calls of PyTorch's functions while a model runs, and what the rules for them share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import resolve_name

from .values import Constant, NotReadError, Opaque, Signal, plain

Value = Constant | Signal | Opaque

PLAIN_WEIGHTS = (
    "keep them as a parameter, with torch.nn.utils.parametrizations.weight_norm if they should be normalized; other "
    'parametrizations have to be removed first: torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")'
)
_GIVE_VALUES = "give the model values first, by model.to_empty(device=...) and reset_parameters"
_SYNONYMS = {"multiply": "mul", "true_divide": "div", "divide": "div", "subtract": "sub"}


class Call(NamedTuple):
    """A call of a function of PyTorch while a model runs.

    - `function`, `name`: the function, and its name without what only says how it was called.
    - `args`, `kwargs`: with values in place of tensors.
    - `given`: the positional arguments as they were.
    - `result`: what it returned.
    - `place`: the module that called it, in words.
    - `epsilon`: of the coarsest precision so far.
    """

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    given: tuple[Any, ...]
    result: Any
    place: str
    epsilon: float

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument that may be given by its position or by its name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


def operation_name(function: Callable[..., Any]) -> str:
    """The name of an operation, the same for functions, methods, operators and what works in place."""
    path = (resolve_name(function) or getattr(function, "__name__", "")).split(".")
    name = path[-2] if path[-1] == "__get__" and len(path) > 1 else path[-1]
    name = name.strip("_")
    return _SYNONYMS.get(name, name)


def values_of(call: Call) -> list[Value]:
    """All values among the arguments of a call."""
    given = [*call.args, *call.kwargs.values()]
    flat = [item for entry in given for item in (entry if isinstance(entry, tuple | list) else [entry])]
    return [value for value in flat if isinstance(value, Constant | Signal)]


def computed(call: Call) -> Constant:
    """A constant that was computed from others in a way that is not followed."""
    values = [value for value in values_of(call) if isinstance(value, Constant)]
    sources = [value.stored.name if value.stored else value.computed for value in values]
    names = ", ".join(dict.fromkeys(name for name in sources if name))
    matrix = any(value.of_weights or (value.stored is not None and value.stored.is_matrix) for value in values)
    return Constant(call.result, computed=names, of_weights=matrix)


def as_number(value: Any) -> float | None:
    """A number, or a tensor that holds only one."""
    if isinstance(value, Constant):
        return plain(value.tensor).item() if value.tensor.numel() == 1 else None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def per_feature(signal: Signal, value: Any, shape: torch.Size) -> Tensor:
    """A constant operand of a signal, for each feature."""
    if isinstance(value, Constant) and value.of_weights:
        raise NotReadError(f"combines its activations with numbers computed from {value.computed}", PLAIN_WEIGHTS)
    if isinstance(value, Constant) and value.tensor.is_meta:
        raise NotReadError(
            "combines its activations with a tensor on the device meta, which has no value", _GIVE_VALUES
        )
    number = as_number(value)
    if number is None and not isinstance(value, Constant):
        raise NotReadError("combines its activations with something that is not a number")
    numbers = torch.tensor(number, dtype=torch.float64) if number is not None else plain(value.tensor)
    return signal.by_feature(numbers, shape)


def shifted(signal: Signal, value: Any, factor: float, shape: torch.Size, *, added: bool) -> Signal:
    """A signal plus a constant, which is its bias if it is a vector of the model that can be drawn anew."""
    stored = value.stored if isinstance(value, Constant) else None
    own = stored is not None and (not added or isinstance(stored.tensor, torch.nn.Parameter))
    if stored is None or not own or signal.bias is not None or stored.index.numel() != signal.size:
        return replace(signal, shift=signal.shift + factor * per_feature(signal, value, shape))
    index = signal.by_feature(stored.index, shape)
    factors = torch.full((signal.size,), factor * value.factor, dtype=torch.float64)
    return replace(signal, bias=(replace(stored, index=index), factors))


def broadcast(signal: Signal, result: Tensor) -> Signal:
    """A signal in the shape of a result."""
    return signal.moved(torch.broadcast_to(signal.index, result.shape))
