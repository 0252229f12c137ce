"""Operations of PyTorch, and what they make of the values of a running model.

A rule takes the arguments of a call, with tensors replaced by their values, and gives the value of the result; or it
raises a `NotReadError` that says what the operation does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import resolve_name

from ..initialization.activations import ACTIVATIONS
from .stored import Stored, WeightNorm
from .values import Activation, Constant, NotReadError, Opaque, Product, Signal, agrees, plain

Value = Constant | Signal | Opaque


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


def apply(call: Call) -> Value | tuple[Value, ...]:
    """The value of what a call returned."""
    if call.name in _UNCHANGED:
        return call.args[0]
    if call.name in _MOVES:
        return _move(call)
    if call.name in _RULES:
        return _RULES[call.name](call)
    if call.name in _operators():
        return _activation(call)
    if all(not isinstance(value, Signal) for value in _values_of(call)):
        return _computed(call)
    raise NotReadError(f"computes {call.name!r}")


_SYNONYMS = {"multiply": "mul", "true_divide": "div", "divide": "div", "subtract": "sub"}
# Operations that leave all numbers as they are. Dropout is off while a model is read; if it is not, that is noticed.
_UNCHANGED = {
    *("clone", "detach", "contiguous", "alias", "data", "requires_grad", "positive", "to", "type", "type_as", "cpu"),
    *("cuda", "float", "double", "half", "bfloat16", "dropout", "feature_dropout", "alpha_dropout", "retain_grad"),
}
# Operations that only put numbers in other places, drop or repeat some.
_MOVES = {
    *("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "ravel", "squeeze", "unsqueeze", "T", "mT"),
    *("t", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis", "expand", "expand_as", "repeat"),
    *("broadcast_to", "getitem", "select", "narrow", "chunk", "split", "unbind", "flip", "index_select", "tile"),
}
_PLAIN_WEIGHTS = (
    "keep them as a parameter, with torch.nn.utils.parametrizations.weight_norm if they should be normalized; other "
    'parametrizations have to be removed first: torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")'
)
_LIKE = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_tensor")


def _operators() -> dict[str, str]:
    """Activations by the names of their operators."""
    return {entry.operator: name for name, entry in ACTIVATIONS.items() if entry.operator} | {"cos": "cos"}


def _values_of(call: Call) -> list[Value]:
    given = [*call.args, *call.kwargs.values()]
    flat = [item for entry in given for item in (entry if isinstance(entry, tuple | list) else [entry])]
    return [value for value in flat if isinstance(value, Constant | Signal)]


def _computed(call: Call) -> Constant:
    """A constant that was computed from others in a way that is not followed."""
    sources = [value.stored.name if value.stored else value.computed for value in _values_of(call)]
    names = ", ".join(dict.fromkeys(name for name in sources if name))
    return Constant(call.result, computed=names)


def _move(call: Call) -> Value | tuple[Value, ...]:
    """The same operation on the indices."""
    first = call.args[0]
    if call.name in ("getitem", "index_select") and any(isinstance(v, Signal) for v in _values_of(call)[1:]):
        raise NotReadError(f"computes {call.name!r} with positions as indices")
    index = first.index if isinstance(first, Signal) else None if first.stored is None else first.stored.index
    if index is None:
        return _computed(call)
    moved = call.function(index, *call.given[1:], **call.kwargs)
    if isinstance(moved, Tensor):
        return _at(first, moved, call.result)
    return tuple(_at(first, part, result) for part, result in zip(moved, call.result, strict=True))


def _at(value: Signal | Constant, index: Tensor, tensor: Tensor) -> Value:
    if isinstance(value, Signal):
        return value.moved(index)
    assert value.stored is not None
    return replace(value, stored=replace(value.stored, index=index), tensor=tensor)


def _number(value: Any) -> float | None:
    """A number, or a tensor that holds only one."""
    if isinstance(value, Constant):
        return plain(value.tensor).item() if value.tensor.numel() == 1 else None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _factors(signal: Signal, value: Any, shape: torch.Size) -> Tensor:
    """A constant operand of a signal, for each feature."""
    number = _number(value)
    if number is None and not isinstance(value, Constant):
        raise NotReadError("combines its activations with something that is not a number")
    numbers = torch.tensor(number, dtype=torch.float64) if number is not None else plain(value.tensor)
    return signal.by_feature(numbers, shape)


def _mul(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    signals = [value for value in (left, right) if isinstance(value, Signal)]
    if len(signals) == 2:
        raise NotReadError("multiplies two activations")
    if not signals:
        return _scaled_constant(call, left, right, 1)
    factors = _factors(signals[0], right if signals[0] is left else left, call.result.shape)
    return _broadcast(signals[0], call.result).scaled(factors)


def _div(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    if isinstance(right, Signal) or call.kwargs.get("rounding_mode"):
        raise NotReadError("divides by its activations, or rounds them")
    if not isinstance(left, Signal):
        return _scaled_constant(call, left, right, -1)
    return _broadcast(left, call.result).scaled(1 / _factors(left, right, call.result.shape))


def _scaled_constant(call: Call, left: Any, right: Any, power: int) -> Constant:
    """A tensor of the model times a number, which may be the second operand or, in a product, the first."""
    if power == 1 and (not isinstance(left, Constant) or left.stored is None or _number(right) is None):
        left, right = right, left
    number = _number(right)
    if not isinstance(left, Constant) or left.stored is None or number is None:
        return _computed(call)
    return replace(left, tensor=call.result, factor=left.factor * number**power)


def _neg(call: Call) -> Value:
    return _mul(call._replace(args=(call.args[0], -1.0)))


def _add(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    return _sum(call, left, right, 1.0, float(call.kwargs.get("alpha", 1)))


def _sub(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    return _sum(call, left, right, 1.0, -float(call.kwargs.get("alpha", 1)))


def _rsub(call: Call) -> Value:
    return _sum(call, call.args[0], call.args[1], -1.0, 1.0)


def _sum(call: Call, left: Any, right: Any, times: float, plus: float) -> Value:
    """times · left + plus · right."""
    parts = []
    for value, factor in ((left, times), (right, plus)):
        if isinstance(value, Signal):
            value = _broadcast(value, call.result)
            parts.append(value.scaled(torch.full((value.size,), factor, dtype=torch.float64)))
    if len(parts) == 2:
        return parts[0].plus(parts[1])
    if not parts:
        return _computed(call)
    other, factor = (right, plus) if isinstance(left, Signal) else (left, times)
    return _shifted(parts[0], other, factor, call.result.shape, added=True)


def _shifted(signal: Signal, value: Any, factor: float, shape: torch.Size, *, added: bool) -> Signal:
    """A signal plus a constant, which is its bias if it is a vector of the model that can be drawn anew."""
    stored = value.stored if isinstance(value, Constant) else None
    own = stored is not None and (not added or isinstance(stored.tensor, torch.nn.Parameter))
    if stored is None or not own or signal.bias is not None or stored.index.numel() != signal.size:
        return replace(signal, shift=signal.shift + factor * _factors(signal, value, shape))
    index = signal.by_feature(stored.index, shape)
    factors = torch.full((signal.size,), factor * value.factor, dtype=torch.float64)
    return replace(signal, bias=(replace(stored, index=index), factors))


def _broadcast(signal: Signal, result: Tensor) -> Signal:
    return signal.moved(torch.broadcast_to(signal.index, result.shape))


def _linear(call: Call) -> Value:
    x, weight, bias = (call.argument(i, name) for i, name in enumerate(("input", "weight", "bias")))
    if not isinstance(x, Signal):
        return _computed(call)
    return _biased(call, _product(call, x, _matrix(weight, lambda index: index), axis=-1), bias)


def _matmul(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other", call.argument(1, "mat2"))
    if isinstance(left, Signal) and isinstance(right, Signal):
        raise NotReadError("multiplies two activations")
    if isinstance(left, Signal):
        return _product(call, left, _matrix(right, lambda index: torch.atleast_2d(index.mT)), axis=-1)
    if isinstance(right, Signal):
        return _product(call, right, _matrix(left, torch.atleast_2d), axis=-2 if right.index.ndim > 1 else -1)
    return _computed(call)


def _rmatmul(call: Call) -> Value:
    return _matmul(call._replace(args=call.args[::-1]))


def _addmm(call: Call) -> Value:
    if float(call.kwargs.get("beta", 1)) != 1 or float(call.kwargs.get("alpha", 1)) != 1:
        raise NotReadError("computes 'addmm' with factors")
    product = _matmul(call._replace(args=call.args[1:]))
    return _biased(call, product, call.args[0]) if isinstance(product, Signal) else _computed(call)


def _convolution(call: Call) -> Value:
    x, weight, bias = (call.argument(i, name) for i, name in enumerate(("input", "weight", "bias")))
    if not isinstance(x, Signal):
        return _computed(call)
    if weight.tensor[0, 0].numel() != 1 or call.argument(6, "groups", 1) != 1:
        raise NotReadError(f"computes {call.name!r} over neighbouring positions, or in groups")
    axis = 1 if x.index.ndim == weight.tensor.ndim else 0  # without a batch, channels come first
    product = _product(call, x, _matrix(weight, lambda index: index.flatten(1)), axis)
    shape = [1] * call.result.ndim
    shape[axis] = product.size
    return _biased(call, product, None if bias is None else _at_shape(bias, shape))


def _at_shape(value: Constant, shape: Sequence[int]) -> Constant:
    if value.stored is None:
        return replace(value, tensor=value.tensor.reshape(shape))
    stored = replace(value.stored, index=value.stored.index.reshape(shape))
    return replace(value, tensor=value.tensor.reshape(shape), stored=stored)


def _matrix(value: Any, arranged: Callable[[Tensor], Tensor]) -> Constant:
    """The weights of a linear map, with a row for each of its outputs."""
    if not isinstance(value, Constant) or value.stored is None:
        source = value.computed if isinstance(value, Constant) else ""
        made = f"computed from {source}" if source else "no parameter, buffer or attribute of the model"
        raise NotReadError(f"has weights that are {made}", _PLAIN_WEIGHTS)
    index = value.stored.index
    while index.ndim > 2 and index.shape[0] == 1:
        index = index[0]
    index = arranged(index)
    if index.ndim != 2:
        raise NotReadError(f"multiplies by weights of the shape {tuple(value.tensor.shape)}")
    return replace(value, stored=replace(value.stored, index=index))


def _product(call: Call, x: Signal, weight: Constant, axis: int) -> Signal:
    """A matrix times the features of a signal, which must stand along an axis in their order."""
    assert weight.stored is not None
    index, rows = x.index.movedim(axis, -1), len(weight.stored.index)
    first = index[..., :1]
    if index.shape[-1] != x.size or not torch.equal(index, first - first % x.size + torch.arange(x.size)):
        raise NotReadError(f"computes {call.name!r} of a part of its features, or of features of different positions")
    found = first // x.size * rows + torch.arange(rows)
    found = found.movedim(-1, axis) if found.ndim == call.result.ndim else found[..., 0]
    if found.shape != call.result.shape:
        raise NotReadError(f"computes {call.name!r} from {tuple(x.index.shape)} to {tuple(call.result.shape)}")
    return Signal.of(Product(weight.stored, weight.factor, x, call.place), rows, found)


def _biased(call: Call, signal: Signal, bias: Any) -> Signal:
    return signal if bias is None else _shifted(signal, bias, 1.0, call.result.shape, added=False)


def _activation(call: Call) -> Value:
    x, *others = call.args
    if not isinstance(x, Signal):
        return _computed(call)

    def function(z: Tensor) -> Tensor:  # further arguments choose the form of the function, as for GELU
        return call.function(z, *others, **call.kwargs)

    return activate(call, _operators()[call.name], function, x)


def activate(call: Call, name: str, function: Callable[[Tensor], Tensor], x: Signal) -> Signal:
    """An activation of a signal, after a check that the model computed what was read."""
    seen = x.sorted(call.result)
    if not agrees(_pure(function)(x.values()), seen, x.bound(), call.epsilon):
        raise NotReadError(f"computes {call.name!r} of something other than what was read")
    return Signal.of(Activation(name, _pure(function), x, seen, call.place), x.size, x.index)


def _pure(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function without effect on its argument, as that of an operation in place may have."""
    return lambda z: function(z.clone())


def _cat(call: Call) -> Value:
    parts = call.argument(0, "tensors")
    signals = [part for part in parts if isinstance(part, Signal)]
    if not signals:
        return _computed(call)
    if len(signals) < len(parts):
        raise NotReadError("joins its activations with constants")
    if (whole := _sines_and_cosines(call, signals)) is not None:
        return whole
    kwargs = {name: value for name, value in call.kwargs.items() if name != "tensors"}
    index = call.function([part.index for part in signals], *call.args[1:], **kwargs)
    return _joined(signals, index)


def _joined(parts: Sequence[Signal], index: Tensor) -> Signal:
    """Parts of one signal, each with its own factors."""
    first = parts[0]
    if any(part.bias is not None or set(part.terms) != set(first.terms) for part in parts):
        raise NotReadError("joins the activations of different layers, or these and positions")
    terms, shift = {atom: factor.clone() for atom, factor in first.terms.items()}, first.shift.clone()
    for part in parts[1:]:
        features = part.index.flatten().unique() % first.size
        shift[features] = part.shift[features]
        for atom, factor in part.terms.items():
            terms[atom][features] = factor[features]
    return Signal(index, terms, shift)


def _sines_and_cosines(call: Call, parts: Sequence[Signal]) -> Signal | None:
    """All sines, then all cosines, of the same argument: random Fourier features."""
    atoms = [atom for part in parts for atom in part.terms]
    if len(parts) != 2 or len(atoms) != 2 or not all(isinstance(atom, Activation) for atom in atoms):
        return None
    sine, cosine = atoms
    if (sine.name, cosine.name) != ("sine", "cos") or not same_signal(sine.argument, cosine.argument):
        return None
    if any(not torch.equal(part.terms[atom], torch.ones(part.size)) for part, atom in zip(parts, atoms, strict=True)):
        return None
    size, count = 2 * parts[0].size, len(sine.seen)
    index = torch.arange(count * size).reshape(call.result.shape) if call.result.numel() == count * size else None
    if index is None or call.result.shape[-1] != size:
        return None
    seen = torch.cat([sine.seen, cosine.seen], dim=-1)
    atom = Activation("sincos", lambda z: torch.cat([z.sin(), z.cos()], -1), sine.argument, seen, call.place)
    return Signal.of(atom, size, index)


def same_signal(a: Signal, b: Signal) -> bool:
    """Whether two signals are the same sum of the same atoms."""
    same = set(a.terms) == set(b.terms) and torch.equal(a.shift, b.shift) and (a.bias is None) == (b.bias is None)
    return same and all(torch.equal(factor, b.terms[atom]) for atom, factor in a.terms.items())


def _weight_norm(call: Call) -> Value:
    directions, lengths = call.args[:2]
    dim = call.argument(2, "dim", 0)
    stored = (directions.stored, lengths.stored)
    if any(part is None or not part.as_it_is for part in stored):
        return _computed(call)
    return Constant(call.result, replace(stored[0], norm=WeightNorm(stored[1].tensor, dim)))


def _like(call: Call) -> Value:
    return Constant(call.result)


_RULES: dict[str, Callable[[Call], Value]] = {
    **{"mul": _mul, "rmul": _mul, "div": _div, "neg": _neg, "negative": _neg},
    **{"add": _add, "radd": _add, "sub": _sub, "rsub": _rsub},
    **{"linear": _linear, "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "rmatmul": _rmatmul, "addmm": _addmm},
    **{"conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution},
    **{"cat": _cat, "concat": _cat, "concatenate": _cat, "stack": _cat, "weight_norm": _weight_norm},
    **dict.fromkeys(_LIKE, _like),
}
