"""Operations of JAX, and what they make of the values of a model's variables.

A rule takes an equation of the program and the values of its operands, and gives the value of its result; or it raises
a `NotReadError` that says what the equation does.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...initialization.activations import ACTIVATIONS
from .numerics import ELEMENTWISE, MOVES, evaluate
from .values import Activation, Candidates, Constant, NotReadError, Pointwise, Product, Signal, Stored, Value, as_signal

# The numbers at which functions are compared with activations, over more than a turn of the sine.
PROBES = np.linspace(-4, 4, 63)
# The form of GELU with tanh and that with erf differ by less; all other functions by more.
GELU_TOLERANCE = 2e-3

# Operations that leave all numbers as they are.
_UNCHANGED = {"copy", "copy_p", "stop_gradient", "optimization_barrier", "name", "sharding_constraint", "pvary"}
# Those that only put numbers in other places, drop or repeat some.
_MOVES = {*MOVES, "dynamic_slice", "gather"}


def apply(equation: Any, operands: Sequence[Value]) -> Value:
    """The value of what an equation computes."""
    name = equation.primitive.name
    if all(isinstance(value, Constant) for value in operands):
        return _constant(equation, operands)
    if name in _UNCHANGED or (name == "convert_element_type" and _is_cast(equation)):
        return operands[0]
    if name in _MOVES:
        return _move(equation, operands)
    if name in _RULES:
        return _RULES[name](equation, operands)
    if name in ELEMENTWISE:
        return _pointwise(equation, operands, None)
    raise NotReadError(f"computes {name!r}")


def _is_cast(equation: Any) -> bool:
    """Whether floating-point numbers stay such, in another precision."""
    kinds = [jnp.issubdtype(atom.aval.dtype, jnp.floating) for atom in (equation.invars[0], equation.outvars[0])]
    return all(kinds)


def _shape(equation: Any) -> tuple[int, ...]:
    return equation.outvars[0].aval.shape


def constant(equation: Any, operands: Sequence[Constant], output: int = 0) -> Constant:
    """A constant that was computed from others in a way that is not followed."""

    def compute() -> np.ndarray:
        found = evaluate(equation, [operand.numbers for operand in operands])
        return np.asarray(found[output] if equation.primitive.multiple_results else found)

    sources = dict.fromkeys(name for operand in operands for name in operand.origins)
    return Constant(equation.outvars[output].aval.shape, compute, sources=tuple(sources))


def _constant(equation: Any, operands: Sequence[Any]) -> Constant:
    """Where a model stores a constant is kept through casts, moves and factors."""
    name, first, result = equation.primitive.name, next(iter(operands), None), constant(equation, operands)
    if name in ("mul", "div") and (found := _multiple(*operands, power=1 if name == "mul" else -1)) is not None:
        return replace(result, stored=found.stored, factor=found.factor)
    if first is None or first.stored is None:
        return result
    if name in _UNCHANGED or (name == "convert_element_type" and _is_cast(equation)):
        return replace(result, stored=first.stored, factor=first.factor)
    if name == "neg":
        return replace(result, stored=first.stored, factor=-first.factor)
    if name in _MOVES:
        index = np.asarray(evaluate(equation, [first.stored.index, *(operand.numbers for operand in operands[1:])]))
        return replace(result, stored=Stored(first.stored.name, index), factor=first.factor)
    return result


def _multiple(left: Constant, right: Constant, power: int) -> Constant | None:
    """An array of the model times a number, which may be the second operand or, in a product, the first."""
    if power == 1 and (left.stored is None or right.stored is not None):
        left, right = right, left
    if left.stored is None or right.origins:
        return None
    number = right.number()
    return None if number is None else replace(left, factor=left.factor * number**power)


def _move(equation: Any, operands: Sequence[Any]) -> Value:
    """The same operation on the indices."""
    first, *others = operands
    if not all(isinstance(other, Constant) for other in others):
        raise NotReadError(f"computes {equation.primitive.name!r} with positions as indices")
    index = np.asarray(evaluate(equation, [first.index, *(other.numbers for other in others)]))
    if (index < 0).any() or (index >= as_size(first)).any():
        raise NotReadError(f"computes {equation.primitive.name!r} beyond the ends of its activations")
    return first.moved(index)


def as_size(value: Signal | Pointwise) -> int:
    """Number of features."""
    return value.size if isinstance(value, Signal) else value.root.size


def _dot_general(equation: Any, operands: Sequence[Any]) -> Value:
    (contracting, batch), shape = equation.params["dimension_numbers"], _shape(equation)
    if not any(isinstance(value, Constant) for value in operands):
        raise NotReadError("multiplies two activations")
    place = 0 if isinstance(operands[0], Constant) else 1
    weight, signal = operands[place], as_signal(operands[1 - place])
    if batch[0] or len(contracting[0]) != 1:
        raise NotReadError("computes a product over several axes, or of several matrices at once")
    matrix = _matrix(weight, contracting[place][0])
    order = np.moveaxis(signal.index, contracting[1 - place][0], -1).ravel()
    if not np.array_equal(np.sort(order), np.arange(signal.size)):
        raise NotReadError("multiplies a part of its features by a matrix")
    # The features may stand in another order, as flipped coordinates do: then columns are flipped.
    stored = Stored(matrix.name, matrix.index[:, np.argsort(order)])
    rows = len(stored.index)
    return Signal.of(Product(stored, weight.factor, signal), rows, np.arange(rows).reshape(shape))


def _matrix(weight: Constant, axis: int) -> Stored:
    """The weights of a linear map, with a row for each of its outputs."""
    if weight.stored is None:
        made = f"computed from {', '.join(weight.sources)}" if weight.sources else "no array of the model"
        raise NotReadError(f"has weights that are {made}")
    index = np.moveaxis(weight.stored.index, axis, -1)
    if sum(size > 1 for size in index.shape[:-1]) > 1:
        raise NotReadError(f"multiplies by weights of the shape {weight.shape}")
    return Stored(weight.stored.name, index.reshape(-1, index.shape[-1]))


def _scale(power: int) -> Callable[[Any, Sequence[Any]], Value]:
    def rule(equation: Any, operands: Sequence[Any]) -> Value:
        left, right = operands
        if isinstance(left, Constant) and power == 1:
            left, right = right, left
        if isinstance(left, Constant) or not isinstance(right, Constant):
            return _pointwise(equation, operands, None)
        return _with_signal(equation, operands, left, lambda signal: _scaled(signal, right, _shape(equation), power))

    return rule


def _scaled(signal: Signal, constant: Constant, shape: tuple[int, ...], power: int) -> Signal:
    factors = signal.by_feature(_known(constant), shape)
    return signal.moved(np.broadcast_to(signal.index, shape)).scaled(factors**power)


def _negative(equation: Any, operands: Sequence[Any]) -> Value:
    return _with_signal(equation, operands, operands[0], lambda signal: signal.scaled(-np.ones(signal.size)))


def _sum(sign: int) -> Callable[[Any, Sequence[Any]], Value]:
    """left + sign · right."""

    def rule(equation: Any, operands: Sequence[Any]) -> Value:
        left, right = operands
        if not isinstance(left, Constant) and not isinstance(right, Constant):
            return _pointwise(equation, operands, None)
        value, other, factor = (left, right, sign) if isinstance(right, Constant) else (right, left, 1)
        assert isinstance(value, Signal | Pointwise)
        own = 1.0 if value is left else float(sign)
        shape = _shape(equation)

        def shifted(signal: Signal) -> Signal:
            whole = signal.moved(np.broadcast_to(signal.index, shape)).scaled(np.full(signal.size, own))
            return _shifted(whole, other, float(factor), shape)

        return _with_signal(equation, operands, value, shifted)

    return rule


def _shifted(signal: Signal, constant: Constant, factor: float, shape: tuple[int, ...]) -> Signal:
    """A signal plus a constant, which is the bias if it is a vector of the model after a matrix."""
    stored = constant.stored
    follows = isinstance(signal.atom, Product) and signal.bias is None
    if stored is None or not follows or stored.index.size != signal.size:
        return replace(signal, shift=signal.shift + factor * signal.by_feature(_known(constant), shape))
    index = signal.by_feature(stored.index, shape)
    return replace(signal, bias=(Stored(stored.name, index), np.full(signal.size, factor * constant.factor)))


def _known(constant: Constant) -> np.ndarray:
    number = constant.number()
    return constant.numbers.astype(np.float64) if number is None else np.asarray(number)


def _with_signal(
    equation: Any, operands: Sequence[Any], value: Signal | Pointwise, function: Callable[[Signal], Signal]
) -> Value:
    """An affine function: of a signal a signal, of an unknown function of one another unknown function."""
    if isinstance(value, Signal):
        return replace(function(value), parent=value)
    signal = None if value.signal is None else function(value.signal)
    try:
        return _pointwise(equation, operands, signal)
    except NotReadError:
        if signal is None:
            raise
        return signal


def _pointwise(equation: Any, operands: Sequence[Any], signal: Signal | None) -> Value:
    """A function of each number of one signal. It is known by the values of all operations at the same numbers."""
    whole = [value for value in operands if not isinstance(value, Constant)]
    first = next((value for value in whole if isinstance(value, Pointwise)), whole[0])
    root = first.root if isinstance(first, Pointwise) else first
    tables, candidates = [], {(1.0, 0.0): root}
    for atom, value in zip(equation.invars, operands, strict=True):
        table, found = _table(value, root, first.index, atom.aval.dtype)
        tables.append(table)
        candidates.update(found)
    with np.errstate(all="ignore"):  # a function may have no value at some of the numbers
        table, multiples = evaluate(equation, tables), tuple(candidates.items())
    signal = signal or _recognized(table, multiples, first.index)
    return Pointwise(root, first.index, table, multiples, signal)


def _table(value: Any, root: Signal, index: np.ndarray, dtype: Any) -> tuple[Any, dict[tuple[float, float], Signal]]:
    """The values of an operand where the root has the values `PROBES`, and affine functions of the root in it."""
    if isinstance(value, Constant):
        number = value.numbers
        if value.number() is None:
            raise NotReadError("computes another function of each feature")
        return np.full(PROBES.shape, number.flat[0], dtype), {}
    if isinstance(value, Pointwise):
        if value.root is root and np.array_equal(value.index, index):
            return value.table, dict(value.candidates)
        raise NotReadError("combines different activations")
    base, found = root.moved(index), {}
    if value.relative_to(base) is None:
        raise NotReadError("combines different activations")
    signal = value
    while signal is not None and (relation := signal.moved(index).relative_to(base)) is not None:
        found.setdefault(relation, signal.moved(index))
        signal = signal.parent
    factor, shift = next(iter(found))
    return (factor * PROBES + shift).astype(dtype), found


def _recognized(table: Any, candidates: Candidates, index: np.ndarray) -> Signal | None:
    """The activation that a function is, with the least difference."""
    if not jnp.issubdtype(table.dtype, jnp.floating):
        return None
    epsilon, found = float(jnp.finfo(table.dtype).eps), np.asarray(table, np.float64)
    fits = []
    for (factor, shift), signal in candidates:
        probes = np.asarray((factor * PROBES + shift).astype(table.dtype), np.float64)
        for name, function in _functions().items():
            tolerance = max(1e-5, 16 * epsilon, GELU_TOLERANCE if name == "gelu" else 0.0)
            error = np.abs(function(probes) - found).max()
            if error < tolerance:
                fits.append((error, name, signal))
    if not fits:
        return None
    _, name, signal = min(fits, key=lambda fit: fit[0])
    return Signal.of(Activation(name, signal.moved(index)), signal.size, index)


def _concatenate(equation: Any, operands: Sequence[Any]) -> Value:
    if any(isinstance(value, Constant) for value in operands):
        raise NotReadError("joins its activations with constants")
    parts = [as_signal(value) for value in operands]
    if (whole := _sines_and_cosines(parts, _shape(equation))) is not None:
        return whole
    first = parts[0]
    if any(part.atom is not first.atom or part.bias is not None for part in parts):
        raise NotReadError("joins the activations of different layers, or these and positions")
    scale, shift = first.scale.copy(), first.shift.copy()
    for part in parts[1:]:
        scale[part.index], shift[part.index] = part.scale[part.index], part.shift[part.index]
    index = np.concatenate([part.index for part in parts], equation.params["dimension"])
    return Signal(index, first.atom, scale, shift)


def _sines_and_cosines(parts: Sequence[Signal], shape: tuple[int, ...]) -> Signal | None:
    """All sines, then all cosines, of the same argument: random Fourier features."""
    atoms = [part.atom for part in parts if isinstance(part.atom, Activation)]
    if len(parts) != 2 or len(atoms) != 2:
        return None
    sine, cosine = atoms
    plain = all((part.scale == 1).all() and not part.shift.any() for part in parts)
    if (sine.name, cosine.name) != ("sine", "cos") or sine.argument.relative_to(cosine.argument) != (1.0, 0.0):
        return None
    in_order = all(np.array_equal(part.index.ravel(), np.arange(part.size)) for part in parts)
    if not plain or not in_order:
        return None
    size = 2 * sine.argument.size
    return Signal.of(Activation("sincos", sine.argument), size, np.arange(size).reshape(shape))


def _functions() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """All activations that are known by now, and the cosine, which is a sine of another phase."""
    known = {name: entry.value for name, entry in ACTIVATIONS.items() if entry.outputs == 1 and name != "linear"}
    return {**known, "cos": np.cos}


_RULES: dict[str, Callable[[Any, Sequence[Any]], Value]] = {
    **{"mul": _scale(1), "div": _scale(-1), "neg": _negative, "add": _sum(1), "add_any": _sum(1), "sub": _sum(-1)},
    **{"dot_general": _dot_general, "concatenate": _concatenate},
}
