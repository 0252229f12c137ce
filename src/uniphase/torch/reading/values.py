"""What the tensors of a running model stand for.

While a model runs on a few positions, each tensor is a `Constant`, which does not depend on the positions; a `Signal`,
which does, in a way that is known; or `Opaque`. A signal is a sum of outputs of layers with factors, plus a constant.
Where each of its numbers belongs is tracked by an array of indices that goes through the same reshapes, transposes and
slices as the tensor itself. So any arrangement of positions and features is followed, and none has to be known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .stored import Stored

# Rounding of a sum of products, in units of ε times the sum of their sizes. It is a few even for thousands of terms.
_ROUNDING = 32.0


class NotReadError(Exception):
    """Why an operation of a model cannot be read.

    **Arguments:**

    - `reason`: what it computes.
    - `fix`: what to do about it, if not what helps with any operation.
    """

    def __init__(self, reason: str, fix: str = ""):
        super().__init__(reason)
        self.fix = fix


@dataclass(frozen=True, eq=False)
class Opaque:
    """The result of an operation that cannot be read, and all that depends on it."""

    reason: str
    fix: str = ""


@dataclass(frozen=True, eq=False)
class Constant:
    """What does not depend on the positions: a number, or a tensor of the model, perhaps rearranged and multiplied.

    - `tensor`: its numbers.
    - `stored`: where the model stores them, before they are multiplied by `factor`.
    - `computed`: from which tensors of the model, if they are stored nowhere.
    - `of_weights`: whether a matrix was among these, so that other weights would change the numbers.
    """

    tensor: Tensor
    stored: Stored | None = None
    factor: float = 1.0
    computed: str = ""
    of_weights: bool = False


@dataclass(frozen=True, eq=False)
class Positions:
    """The positions that a model is run on."""

    seen: Float[Tensor, "n size"]

    def values(self) -> Tensor:
        return self.seen

    def bound(self) -> Tensor:
        return self.seen.abs()


@dataclass(frozen=True, eq=False)
class Product:
    """factor · W u, for a stored matrix W and a signal u, at some place in the model."""

    stored: Stored
    factor: float
    argument: "Signal"
    place: str

    def values(self) -> Tensor:
        return self.factor * self.argument.values() @ plain(self.stored.numbers()).T

    def bound(self) -> Tensor:
        return abs(self.factor) * self.argument.bound() @ plain(self.stored.numbers()).abs().T


@dataclass(frozen=True, eq=False)
class Activation:
    """A function of each number of a signal; `seen` is what the model itself computed."""

    name: str
    function: Callable[[Tensor], Tensor]
    argument: "Signal"
    seen: Float[Tensor, "n size"]
    place: str

    def values(self) -> Tensor:
        return self.seen

    def bound(self) -> Tensor:
        return self.seen.abs()


Atom = Positions | Product | Activation


@dataclass(frozen=True, eq=False)
class Signal:
    """A sum of atoms with factors, plus a constant and a bias. It has a row for each position.

    - `index`: for each number of the model's tensor, `position · size + feature`.
    - `terms`: the factors of the atoms, one for each feature.
    - `shift`: the constant.
    - `bias`: a vector of the model, and the factors of its entries.
    """

    index: Int[Tensor, "..."]
    terms: Mapping[Atom, Float[Tensor, " size"]]
    shift: Float[Tensor, " size"]
    bias: tuple[Stored, Float[Tensor, " size"]] | None = None

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.shift)

    @staticmethod
    def of(atom: Atom, size: int, index: Int[Tensor, "..."]) -> "Signal":
        """An atom alone."""
        return Signal(index, {atom: torch.ones(size, dtype=torch.float64)}, torch.zeros(size, dtype=torch.float64))

    def moved(self, index: Int[Tensor, "..."]) -> "Signal":
        """The same numbers in other places."""
        return replace(self, index=index)

    def scaled(self, factors: Float[Tensor, " size"]) -> "Signal":
        """Multiplied by a number for each feature."""
        terms = {atom: factor * factors for atom, factor in self.terms.items()}
        bias = None if self.bias is None else (self.bias[0], self.bias[1] * factors)
        return Signal(self.index, terms, self.shift * factors, bias)

    def plus(self, other: "Signal") -> "Signal":
        """The sum of two signals in the same arrangement."""
        if self.size != other.size or not torch.equal(self.index, other.index):
            raise NotReadError("adds the features of one layer to other features of another")
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms[atom] + factor if atom in terms else factor
        if self.bias is not None and other.bias is not None:
            raise NotReadError("adds two linear layers")
        return Signal(self.index, terms, self.shift + other.shift, self.bias or other.bias)

    def values(self) -> Float[Tensor, "n size"]:
        """Its values, from what was read."""
        total = self.shift + sum(factor * atom.values() for atom, factor in self.terms.items())
        return total if self.bias is None else total + self.bias[1] * plain(self.bias[0].numbers())

    def bound(self) -> Float[Tensor, "n size"]:
        """The sum of the sizes of all that is added in `values`."""
        total = self.shift.abs() + sum(factor.abs() * atom.bound() for atom, factor in self.terms.items())
        return total if self.bias is None else total + (self.bias[1] * plain(self.bias[0].numbers())).abs()

    def sorted(self, tensor: Float[Tensor, "..."]) -> Float[Tensor, "n size"]:
        """The numbers of the model's tensor in rows of features."""
        count = next(iter(self.terms)).values().shape[0]
        flat = torch.full((count * self.size,), torch.nan, dtype=torch.float64)
        flat[self.index.flatten()] = plain(tensor).flatten()
        return flat.reshape(count, self.size)

    def by_feature(self, numbers: Tensor, shape: torch.Size) -> Tensor:
        """A tensor that was broadcast to a shape, as one number for each feature."""
        feature = torch.broadcast_to(self.index, shape).flatten() % self.size
        flat = torch.broadcast_to(numbers, shape).flatten()
        found = flat.new_zeros(self.size)
        found[feature] = flat
        if not torch.equal(found[feature], flat):
            raise NotReadError("combines each position with another constant")
        return found


def plain(tensor: Tensor) -> Tensor:
    """The numbers of a tensor in float64 on the CPU; on the device "meta" there are none."""
    if tensor.is_meta:
        return torch.full(tensor.shape, torch.nan, dtype=torch.float64)
    return tensor.detach().to("cpu", torch.float64)


def agrees(
    found: Float[Tensor, "..."], seen: Float[Tensor, "..."], bound: Float[Tensor, "..."], epsilon: float
) -> bool:
    """Whether two results are the same but for rounding. What is not finite, as after a divergence, says nothing.

    **Arguments:**

    - `found`, `seen`: from what was read, and from the model itself.
    - `bound`: the sum of the sizes of all that was added for them.
    - `epsilon`: of the model's precision.
    """
    close = (found - seen).abs() <= _ROUNDING * epsilon * (1 + bound)
    return bool((close | ~found.isfinite() | ~seen.isfinite()).all())
