"""What the variables of a model's program stand for.

A variable is a `Constant`, which does not depend on the position; a `Signal`, which is the output of a layer with
factors and a constant; a `Pointwise` function of a signal that may still become an activation; or `Opaque`. Where each
number belongs is tracked by an array of indices that goes through the same reshapes, transposes and slices as the
variable. So any arrangement of features is followed, and none has to be known.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int


class NotReadError(Exception):
    """Why an operation of a model cannot be read."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A matrix or a bias as a tree of parameters stores it.

    - `name`: the path of the array in the tree.
    - `index`: for each entry of the matrix, the place of its number in the flattened array.
    """

    name: str
    index: Int[np.ndarray, "..."]

    @staticmethod
    def whole(name: str, shape: tuple[int, ...]) -> "Stored":
        """An array as it is."""
        return Stored(name, np.arange(int(np.prod(shape))).reshape(shape))

    @functools.cached_property
    def order(self) -> tuple[int, ...] | None:
        """The axes of the matrix in the order in which all of them fill the array; `None` if they do not."""
        for axes in (tuple(range(self.index.ndim)), tuple(range(self.index.ndim))[::-1]):
            if np.array_equal(self.index.transpose(axes).ravel(), np.arange(self.index.size)):
                return axes
        return None

    def arrange(self, array: Any) -> Any:
        """What has the shape of the stored array, such as its gradient, in the shape of the matrix."""
        if self.order is None or array.size != self.index.size:
            return array.reshape(-1)[self.index]
        return array.reshape(self.index.transpose(self.order).shape).transpose(self.order)

    def restore(self, matrix: Any, array: Any) -> Any:
        """A copy of an array of the stored shape, with a matrix in the places that belong to it."""
        if self.order is not None and array.size == self.index.size:
            return matrix.transpose(self.order).reshape(array.shape)
        return array.reshape(-1).at[self.index.ravel()].set(matrix.ravel()).reshape(array.shape)

    def overlaps(self, other: "Stored") -> bool:
        """Whether both use a number of the model."""
        return self.name == other.name and bool(np.isin(self.index, other.index).any())


@dataclass(frozen=True, eq=False)
class Opaque:
    """The result of an operation that cannot be read, and all that depends on it."""

    reason: str


@dataclass(frozen=True, eq=False)
class Constant:
    """What does not depend on the position: a number, or an array of the model, perhaps rearranged and multiplied.

    - `shape`: of the variable.
    - `compute`: gives its numbers; it raises a `NotReadError` where they are not known, as under `jit`.
    - `stored`: where the model stores them, before they are multiplied by `factor`.
    - `sources`: from which arrays of the model they were computed, if they are stored nowhere.
    """

    shape: tuple[int, ...]
    compute: Callable[[], np.ndarray]
    stored: Stored | None = None
    factor: float = 1.0
    sources: tuple[str, ...] = ()

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        return np.asarray(self.compute())

    @property
    def origins(self) -> tuple[str, ...]:
        """The names of the arrays that it comes from."""
        return self.sources if self.stored is None else (self.stored.name,)

    def number(self) -> float | None:
        """The number that all of its entries are, as it was written: 0.1, not the nearest one in float32."""
        numbers = self.numbers
        if numbers.size == 0 or not (numbers == numbers.flat[0]).all():
            return None
        return float(str(numbers.flat[0]))


@dataclass(frozen=True, eq=False)
class Positions:
    """The position that a model is run on."""


@dataclass(frozen=True, eq=False)
class Product:
    """factor · W u, for a stored matrix W and a signal u."""

    stored: Stored
    factor: float
    argument: "Signal"


@dataclass(frozen=True, eq=False)
class Activation:
    """A function of each number of a signal."""

    name: str
    argument: "Signal"


Atom = Positions | Product | Activation


@dataclass(frozen=True, eq=False)
class Signal:
    """scale · atom + shift, plus a bias.

    - `index`: for each number of the variable, its feature.
    - `scale`, `shift`: a number for each feature.
    - `bias`: a vector of the model, and the factors of its entries.
    - `parent`: the signal that it was computed from, if any.
    """

    index: Int[np.ndarray, "..."]
    atom: Atom
    scale: Float[np.ndarray, " size"]
    shift: Float[np.ndarray, " size"]
    bias: tuple[Stored, Float[np.ndarray, " size"]] | None = None
    parent: "Signal | None" = None

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.shift)

    @staticmethod
    def of(atom: Atom, size: int, index: Int[np.ndarray, "..."]) -> "Signal":
        """An atom alone."""
        return Signal(index, atom, np.ones(size), np.zeros(size))

    def moved(self, index: Int[np.ndarray, "..."]) -> "Signal":
        """The same numbers in other places."""
        return replace(self, index=index)

    def scaled(self, factors: Float[np.ndarray, " size"]) -> "Signal":
        """Multiplied by a number for each feature."""
        bias = None if self.bias is None else (self.bias[0], self.bias[1] * factors)
        return Signal(self.index, self.atom, self.scale * factors, self.shift * factors, bias)

    def by_feature(self, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """An array that is broadcast to a shape, as one number for each feature."""
        feature, flat = np.broadcast_to(self.index, shape).ravel(), np.broadcast_to(numbers, shape).ravel()
        found = np.zeros(self.size, flat.dtype)
        found[feature] = flat
        if not np.array_equal(found[feature], flat, equal_nan=True):
            raise NotReadError("combines a feature with several constants")
        return found

    def sorted(self, seen: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n size"]:
        """The numbers of the variable, at several positions, in rows of features."""
        rows = np.full((len(seen), self.size), np.nan)
        rows[:, self.index.ravel()] = seen.reshape(len(seen), -1)
        return rows

    def relative_to(self, other: "Signal") -> tuple[float, float] | None:
        """The numbers (a, c) for which it is a · other + c, if there are any."""
        if self.atom is not other.atom or not np.array_equal(self.index, other.index) or not other.scale.all():
            return None
        ratio = self.scale / other.scale
        rest = self.shift - ratio * other.shift
        biases = [None if s.bias is None else (s.bias[0].name, s.bias[0].index.tolist()) for s in (self, other)]
        same = biases[0] == biases[1] and (
            self.bias is None or other.bias is None or np.allclose(self.bias[1], ratio * other.bias[1])
        )
        uniform = np.allclose(ratio, ratio[0]) and np.allclose(rest, rest[0])
        return (float(ratio[0]), float(rest[0])) if same and uniform else None


Candidates = tuple[tuple[tuple[float, float], Signal], ...]


@dataclass(frozen=True, eq=False)
class Pointwise:
    """A function of each number of a signal, known by its values at some numbers.

    - `root`: the signal.
    - `index`: as for a signal.
    - `table`: the function's values at `PROBES`.
    - `candidates`: signals a · root + c that the function was computed from, by (a, c); it may be an activation of one.
    - `signal`: the function as an activation with factors, if it is one.
    """

    root: Signal
    index: Int[np.ndarray, "..."]
    table: Any
    candidates: Candidates
    signal: Signal | None = None

    def moved(self, index: Int[np.ndarray, "..."]) -> "Pointwise":
        """The same numbers in other places."""
        return replace(self, index=index, signal=None if self.signal is None else self.signal.moved(index))


Value = Constant | Signal | Pointwise | Opaque


def as_signal(value: Any) -> Signal:
    """A signal, if it is one or an activation."""
    if isinstance(value, Pointwise):
        if value.signal is None:
            raise NotReadError("computes a function of its activations that is not known")
        return value.signal
    assert isinstance(value, Signal)
    return value
