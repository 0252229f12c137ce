"""Operations of PyTorch, and what they make of the values of a running model.

A rule takes the arguments of a call, with tensors replaced by their values, and gives the value of the result; or it
raises a `NotReadError` that says what the operation does.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ...initialization.activations import ACTIVATIONS
from ..functions import sincos
from . import arithmetic, products
from .calls import Call, Value, computed, values_of
from .values import Activation, Constant, NotReadError, Signal, agrees

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
_LIKE = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_tensor")


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
    if all(not isinstance(value, Signal) for value in values_of(call)):
        return computed(call)
    raise NotReadError(f"computes {call.name!r}")


def _operators() -> dict[str, str]:
    """Activations by the names of their operators."""
    return {entry.operator: name for name, entry in ACTIVATIONS.items() if entry.operator} | {"cos": "cos"}


def _move(call: Call) -> Value | tuple[Value, ...]:
    """The same operation on the indices."""
    first = call.args[0]
    if call.name in ("getitem", "index_select") and any(isinstance(v, Signal) for v in values_of(call)[1:]):
        raise NotReadError(f"computes {call.name!r} with positions as indices")
    index = first.index if isinstance(first, Signal) else None if first.stored is None else first.stored.index
    if index is None:
        return computed(call)
    moved = call.function(index, *call.given[1:], **call.kwargs)
    if isinstance(moved, Tensor):
        return _at(first, moved, call.result)
    return tuple(_at(first, part, result) for part, result in zip(moved, call.result, strict=True))


def _at(value: Signal | Constant, index: Tensor, tensor: Tensor) -> Value:
    if isinstance(value, Signal):
        return value.moved(index)
    assert value.stored is not None
    return replace(value, stored=replace(value.stored, index=index), tensor=tensor)


def _activation(call: Call) -> Value:
    x, *others = call.args
    if not isinstance(x, Signal):
        return computed(call)

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
        return computed(call)
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
    atoms = [atom for part in parts for atom in part.terms if isinstance(atom, Activation)]
    if len(parts) != 2 or len(atoms) != 2 or any(len(part.terms) != 1 for part in parts):
        return None
    sine, cosine = atoms
    if (sine.name, cosine.name) != ("sine", "cos") or not same_signal(sine.argument, cosine.argument):
        return None
    if any(bool((part.terms[atom] != 1).any()) for part, atom in zip(parts, atoms, strict=True)):
        return None
    seen = torch.cat([sine.seen, cosine.seen], dim=-1)
    if call.result.shape[-1] != seen.shape[-1] or call.result.numel() != seen.numel():
        return None
    atom = Activation("sincos", sincos, sine.argument, seen, call.place)
    whole = Signal.of(atom, seen.shape[-1], torch.arange(seen.numel()).reshape(call.result.shape))
    return whole if agrees(seen, whole.sorted(call.result), whole.bound(), call.epsilon) else None


def same_signal(a: Signal, b: Signal) -> bool:
    """Whether two signals are the same sum of the same atoms."""
    same = set(a.terms) == set(b.terms) and torch.equal(a.shift, b.shift) and (a.bias is None) == (b.bias is None)
    return same and all(torch.equal(factor, b.terms[atom]) for atom, factor in a.terms.items())


def _like(call: Call) -> Value:
    return Constant(call.result)


_RULES: dict[str, Callable[[Call], Value]] = {
    **{"mul": arithmetic.mul, "div": arithmetic.div, "neg": arithmetic.neg, "negative": arithmetic.neg},
    **{"add": arithmetic.add, "sub": arithmetic.sub, "rsub": arithmetic.rsub},
    **{"linear": products.linear, "addmm": products.addmm, "rmatmul": products.rmatmul},
    **dict.fromkeys(("matmul", "mm", "bmm"), products.matmul),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), products.convolution),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _cat),
    **{"weight_norm": products.weight_norm},
    **dict.fromkeys(_LIKE, _like),
}
