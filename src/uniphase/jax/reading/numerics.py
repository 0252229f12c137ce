"""Operations of JAX in NumPy, for small arrays: to compile each of them by itself would take a second or more."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def evaluate(equation: Any, operands: Sequence[Any]) -> Any:
    """What an equation gives for concrete operands, also while another program is traced."""
    function = MOVES.get(equation.primitive.name) or ELEMENTWISE.get(equation.primitive.name)
    if function is not None and len(operands) > 0:
        return function(equation.params, *operands)
    with jax.ensure_compile_time_eval():
        return equation.primitive.bind(*map(jnp.asarray, operands), **equation.params)


def _broadcast_in_dim(params: Any, x: np.ndarray) -> np.ndarray:
    x, axes = np.asarray(x), params["broadcast_dimensions"]
    shape = [x.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(params["shape"]))]
    return np.broadcast_to(x.reshape(shape), params["shape"])


def _slice(params: Any, x: np.ndarray) -> np.ndarray:
    strides = params["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _reshape(params: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(x).reshape(params["new_sizes"])


def _round(params: Any, x: np.ndarray) -> np.ndarray:
    even = int(params["rounding_method"]) == 1
    return np.rint(x) if even else np.trunc(x + np.copysign(np.asarray(0.5, x.dtype), x))


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(x.astype(np.float64)).astype(x.dtype)


def _logistic(x: np.ndarray) -> np.ndarray:
    return (np.asarray(1, x.dtype) + np.tanh(x / np.asarray(2, x.dtype))) / np.asarray(2, x.dtype)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that depends on its operands alone."""
    return lambda params, *operands: function(*operands)


# What only puts numbers in other places, drops or repeats some.
MOVES: dict[str, Callable[..., Any]] = {
    "reshape": _reshape,
    "transpose": lambda params, x: np.transpose(x, params["permutation"]),
    "squeeze": lambda params, x: np.squeeze(x, params["dimensions"]),
    "broadcast_in_dim": _broadcast_in_dim,
    "slice": _slice,
    "rev": lambda params, x: np.flip(x, params["dimensions"]),
}
# What gives each number of the result from the same place of each operand.
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{name: _plain(getattr(np, name)) for name in ("sin", "cos", "tan", "tanh", "sinh", "cosh", "abs", "sign")},
    **{name: _plain(getattr(np, name)) for name in ("floor", "ceil", "exp", "exp2", "expm1", "log", "log1p", "sqrt")},
    **{name: _plain(getattr(np, name)) for name in ("cbrt", "square", "nextafter")},
    **{"add": _plain(np.add), "add_any": _plain(np.add), "sub": _plain(np.subtract), "mul": _plain(np.multiply)},
    **{"div": _plain(np.divide), "neg": _plain(np.negative), "pow": _plain(np.power), "atan2": _plain(np.arctan2)},
    **{
        "max": _plain(np.maximum),
        "min": _plain(np.minimum),
        "clamp": _plain(lambda low, x, high: np.clip(x, low, high)),
    },
    **{"eq": _plain(np.equal), "ne": _plain(np.not_equal), "lt": _plain(np.less), "le": _plain(np.less_equal)},
    **{"gt": _plain(np.greater), "ge": _plain(np.greater_equal), "is_finite": _plain(np.isfinite)},
    **{"and": _plain(np.bitwise_and), "or": _plain(np.bitwise_or), "xor": _plain(np.bitwise_xor)},
    **{"not": _plain(np.bitwise_not), "shift_left": _plain(np.left_shift)},
    **{"asin": _plain(np.arcsin), "acos": _plain(np.arccos), "atan": _plain(np.arctan)},
    **{"asinh": _plain(np.arcsinh), "acosh": _plain(np.arccosh), "atanh": _plain(np.arctanh)},
    **{"logistic": _plain(_logistic), "erf": _plain(_erf), "rsqrt": _plain(lambda x: 1 / np.sqrt(x))},
    **{"erfc": _plain(lambda x: np.asarray(1, x.dtype) - _erf(x))},
    "round": _round,
    "integer_pow": lambda params, x: x ** params["y"],
    "select_n": _plain(lambda which, *cases: np.choose(which.astype(np.int32), cases)),
    "convert_element_type": lambda params, x: np.asarray(x).astype(params["new_dtype"]),
    "bitcast_convert_type": lambda params, x: np.ascontiguousarray(x).view(params["new_dtype"]),
}
