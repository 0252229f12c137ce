"""Rules for linear maps: products of a matrix of the model and the features of a signal."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .calls import PLAIN_WEIGHTS, Call, Value, computed, shifted
from .stored import WeightNorm
from .values import Constant, NotReadError, Product, Signal


def linear(call: Call) -> Value:
    x, weight, bias = (call.argument(i, name) for i, name in enumerate(("input", "weight", "bias")))
    if not isinstance(x, Signal):
        return computed(call)
    return _biased(call, _product(call, x, _matrix(weight, lambda index: index), axis=-1), bias)


def matmul(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other", call.argument(1, "mat2"))
    if isinstance(left, Signal) and isinstance(right, Signal):
        raise NotReadError("multiplies two activations")
    if isinstance(left, Signal):
        return _product(call, left, _matrix(right, lambda index: index.mT if index.ndim > 1 else index[None]), axis=-1)
    if isinstance(right, Signal):
        return _product(call, right, _matrix(left, torch.atleast_2d), axis=-2 if right.index.ndim > 1 else -1)
    return computed(call)


def rmatmul(call: Call) -> Value:
    return matmul(call._replace(args=call.args[::-1]))


def addmm(call: Call) -> Value:
    if float(call.kwargs.get("beta", 1)) != 1 or float(call.kwargs.get("alpha", 1)) != 1:
        raise NotReadError("computes 'addmm' with factors")
    product = matmul(call._replace(args=call.args[1:]))
    return _biased(call, product, call.args[0]) if isinstance(product, Signal) else computed(call)


def convolution(call: Call) -> Value:
    x, weight, bias = (call.argument(i, name) for i, name in enumerate(("input", "weight", "bias")))
    if not isinstance(x, Signal):
        return computed(call)
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
        raise NotReadError(f"has weights that are {made}", PLAIN_WEIGHTS)
    index = value.stored.index
    while index.ndim > 2 and index.shape[0] == 1:
        index = index[0]
    index = arranged(index)
    if index.ndim != 2:
        raise NotReadError(f"multiplies by weights of the shape {tuple(value.tensor.shape)}")
    return replace(value, stored=replace(value.stored, index=index))


def _product(call: Call, x: Signal, weight: Constant, axis: int) -> Signal:
    """A matrix times the features of a signal, all of which must stand along an axis, in the same order everywhere."""
    assert weight.stored is not None
    index, rows = x.index.movedim(axis, -1), len(weight.stored.index)
    order, position = index.reshape(-1, index.shape[-1])[0] % x.size, index[..., :1] // x.size
    whole = torch.equal(order.sort().values, torch.arange(x.size))
    if not whole or not torch.equal(index, position * x.size + order):
        raise NotReadError(f"computes {call.name!r} of a part of its features, or of features of different positions")
    stored = weight.stored
    if not torch.equal(order, torch.arange(x.size)):  # flipped coordinates are flipped columns
        stored = replace(stored, index=stored.index[:, order.argsort()])
    found = position * rows + torch.arange(rows)
    found = found.movedim(-1, axis) if found.ndim == call.result.ndim else found[..., 0]
    if found.shape != call.result.shape:
        raise NotReadError(f"computes {call.name!r} from {tuple(x.index.shape)} to {tuple(call.result.shape)}")
    return Signal.of(Product(stored, weight.factor, x, call.place), rows, found)


def _biased(call: Call, signal: Signal, bias: Any) -> Signal:
    return signal if bias is None else shifted(signal, bias, 1.0, call.result.shape, added=False)


def weight_norm(call: Call) -> Value:
    directions, lengths = call.args[:2]
    dim = call.argument(2, "dim", 0)
    stored = (directions.stored, lengths.stored)
    if any(part is None or not part.as_it_is for part in stored):
        return computed(call)
    return Constant(call.result, replace(stored[0], norm=WeightNorm(stored[1].tensor, dim)))
