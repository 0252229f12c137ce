"""Following a model's program: every equation in its order, those of the functions that it calls among them.

The program is evaluated at the same time, so that what was read can be compared with what the model computes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal

from .operations import apply, constant
from .values import Activation, Constant, NotReadError, Opaque, Pointwise, Product, Signal, Stored, Value

# Calls of other programs, and where their equations stand.
_CALLS = {
    **dict.fromkeys(("jit", "pjit", "closed_call", "checkpoint", "remat", "remat2"), "jaxpr"),
    **dict.fromkeys(("core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}


class Followed(NamedTuple):
    """What a variable stands for, and what the model computed for it."""

    value: Value
    seen: Any


class Follower:
    """Reads a program.

    - `seen`: for each activation, a signal of it alone, and what the model computed for that.
    - `constants`: arrays that the model holds outside of its tree, by the names that they are given here.
    """

    def __init__(self):
        self.seen: dict[Activation, tuple[Signal, Any]] = {}
        self.constants: dict[str, Any] = {}

    def follow(self, program: Any, operands: Sequence[Followed]) -> list[Followed]:
        """The values of a program's results, from those of its arguments.

        **Arguments:**

        - `program`: a `Jaxpr`, or one with its constants.
        - `operands`: a value for each argument.
        """
        constants = program.consts if isinstance(program, ClosedJaxpr) else []
        program = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        known = dict(zip(program.constvars, map(self._closed_over, constants), strict=True))
        known.update(zip(program.invars, operands, strict=True))

        def read(atom: Any) -> Followed:
            return _literal(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in program.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in program.outvars]

    def _closed_over(self, array: Any) -> Followed:
        """An array that a model holds outside of its tree: it can be read, but not replaced."""
        name = f"constant {len(self.constants)}"
        self.constants[name] = array
        if isinstance(array, Tracer):
            return Followed(unknown(name, array.shape), np.zeros(array.shape, array.dtype))
        stored = Stored.whole(name, np.shape(array)) if np.ndim(array) else None
        return Followed(Constant(np.shape(array), lambda: np.asarray(array), stored), array)

    def _equation(self, equation: Any, operands: Sequence[Followed]) -> list[Followed]:
        name, values = equation.primitive.name, [operand.value for operand in operands]
        if name == "scan":
            return self._scan(equation.params, operands)
        if name == "cond" and isinstance(values[0], Constant):
            return self.follow(equation.params["branches"][int(values[0].numbers)], operands[1:])
        if name in _CALLS:
            return self.follow(equation.params[_CALLS[name]], operands)
        seen = _evaluate(equation, [operand.seen for operand in operands])
        if equation.primitive.multiple_results:
            several = self._several(equation, values)
            return [Followed(value, part) for value, part in zip(several, seen, strict=True)]
        value = self._apply(equation, values)
        self._note(value, seen)
        return [Followed(value, seen)]

    def _apply(self, equation: Any, values: Sequence[Value]) -> Value:
        for value in values:
            if isinstance(value, Opaque):
                return value
        try:
            return apply(equation, values)
        except NotReadError as error:
            return Opaque(f"the model {error}{_place(values)}")

    def _several(self, equation: Any, values: Sequence[Any]) -> list[Value]:
        if all(isinstance(value, Constant) for value in values):
            return [constant(equation, values, output) for output in range(len(equation.outvars))]
        opaque = Opaque(f"the model computes {equation.primitive.name!r}{_place(values)}")
        return [next((value for value in values if isinstance(value, Opaque)), opaque)] * len(equation.outvars)

    def _note(self, value: Value, seen: Any) -> None:
        signal = value.signal if isinstance(value, Pointwise) else value
        if isinstance(signal, Signal) and isinstance(signal.atom, Activation):
            self.seen.setdefault(signal.atom, (signal, seen))

    def _scan(self, params: dict[str, Any], operands: Sequence[Followed]) -> list[Followed]:
        """A loop over stacked layers, one after the other."""
        consts, carries = params["num_consts"], params["num_carry"]
        fixed, carry, stacked = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]
        steps, outputs = range(params["length"]), []
        for step in reversed(steps) if params["reverse"] else steps:
            results = self.follow(params["jaxpr"], [*fixed, *carry, *(_row(operand, step) for operand in stacked)])
            carry = results[:carries]
            outputs.append([result.seen for result in results[carries:]])
        outputs = outputs[::-1] if params["reverse"] else outputs
        opaque = Opaque("the model stacks the results of a loop")
        return [*carry, *(Followed(opaque, jnp.stack(rows)) for rows in zip(*outputs, strict=True))]


def _evaluate(equation: Any, operands: Sequence[Any]) -> Any:
    try:
        return equation.primitive.bind(*operands, **equation.params)
    except Exception as error:  # an operation with a program of its own, of a kind that is not known
        raise NotReadError(f"computes {equation.primitive.name!r} ({error})") from error


def unknown(name: str, shape: tuple[int, ...]) -> Constant:
    """An array of the model whose numbers are not known, as under `jit`."""

    def compute() -> np.ndarray:
        raise NotReadError(f"computes with {name!r}, whose numbers are not known under jit, other than as weights")

    return Constant(shape, compute, Stored.whole(name, shape))


def _literal(value: Any) -> Followed:
    return Followed(Constant(np.shape(value), lambda: np.asarray(value)), value)


def _row(operand: Followed, step: int) -> Followed:
    value, seen = operand
    if not isinstance(value, Constant):
        return Followed(Opaque("the model loops over its positions"), seen[step])
    stored = None if value.stored is None else Stored(value.stored.name, value.stored.index[step])
    row = Constant(value.shape[1:], lambda: value.numbers[step], stored, value.factor, value.sources)
    return Followed(row, seen[step])


def _place(values: Sequence[Any]) -> str:
    """After which layer something happens, in words."""
    for value in values:
        signal = value.root if isinstance(value, Pointwise) else value
        while isinstance(signal, Signal):
            if isinstance(signal.atom, Product):
                return f" after {signal.atom.stored.name!r}"
            signal = getattr(signal.atom, "argument", None)
    return " of the positions" if any(isinstance(value, Signal | Pointwise) for value in values) else ""
