"""Rules for products with numbers, and for sums."""

from dataclasses import replace
from typing import Any

import torch

from .calls import Call, Value, as_number, broadcast, computed, per_feature, shifted
from .values import Constant, NotReadError, Signal


def mul(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    signals = [value for value in (left, right) if isinstance(value, Signal)]
    if len(signals) == 2:
        raise NotReadError("multiplies two activations")
    if not signals:
        return _scaled_constant(call, left, right, 1)
    factors = per_feature(signals[0], right if signals[0] is left else left, call.result.shape)
    return broadcast(signals[0], call.result).scaled(factors)


def div(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    if isinstance(right, Signal) or call.kwargs.get("rounding_mode"):
        raise NotReadError("divides by its activations, or rounds them")
    if not isinstance(left, Signal):
        return _scaled_constant(call, left, right, -1)
    return broadcast(left, call.result).scaled(1 / per_feature(left, right, call.result.shape))


def _scaled_constant(call: Call, left: Any, right: Any, power: int) -> Constant:
    """A tensor of the model times a number, which may be the second operand or, in a product, the first."""
    if power == 1 and (not isinstance(left, Constant) or left.stored is None or as_number(right) is None):
        left, right = right, left
    number = None if isinstance(right, Constant) and right.of_weights else as_number(right)
    if not isinstance(left, Constant) or left.stored is None or number is None:
        return computed(call)
    return replace(left, tensor=call.result, factor=left.factor * number**power)


def neg(call: Call) -> Value:
    return mul(call._replace(args=(call.args[0], -1.0)))


def add(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    return _sum(call, left, right, 1.0, float(call.kwargs.get("alpha", 1)))


def sub(call: Call) -> Value:
    left, right = call.argument(0, "input"), call.argument(1, "other")
    return _sum(call, left, right, 1.0, -float(call.kwargs.get("alpha", 1)))


def rsub(call: Call) -> Value:
    return _sum(call, call.args[0], call.args[1], -1.0, 1.0)


def _sum(call: Call, left: Any, right: Any, times: float, plus: float) -> Value:
    """times · left + plus · right."""
    parts = []
    for value, factor in ((left, times), (right, plus)):
        if isinstance(value, Signal):
            value = broadcast(value, call.result)
            parts.append(value.scaled(torch.full((value.size,), factor, dtype=torch.float64)))
    if len(parts) == 2:
        return parts[0].plus(parts[1])
    if not parts:
        return computed(call)
    other, factor = (right, plus) if isinstance(left, Signal) else (left, times)
    return shifted(parts[0], other, factor, call.result.shape, added=True)
