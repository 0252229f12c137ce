"""Where the weights of a layer are stored: which entries of which tensor of the model, under a weight norm or not."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# What stands behind the name of a layer in the names of its tensors, those of both forms of a weight norm among them.
_ENDINGS = (".parametrizations.weight.original1", "weight_v", "weight", ".")


class WeightNorm(NamedTuple):
    """The length of each vector of a weight that is written as length times direction.

    - `lengths`: the parameter that holds them.
    - `dim`: the axis along which they are counted.
    """

    lengths: Tensor
    dim: int


@dataclass(frozen=True, eq=False)
class Stored:
    """A matrix or a bias as a model stores it.

    - `name`: the path of the tensor in the model.
    - `tensor`: a parameter, a buffer or an attribute of the model, not a copy.
    - `index`: for each entry of the matrix, the place of its number in the flattened tensor.
    - `norm`: for a weight norm, the lengths; `tensor` then holds the directions.
    """

    name: str
    tensor: Tensor
    index: Int[Tensor, "..."]
    norm: WeightNorm | None = None

    @staticmethod
    def whole(name: str, tensor: Tensor) -> "Stored":
        """A tensor as it is."""
        return Stored(name, tensor, torch.arange(tensor.numel()).reshape(tensor.shape))

    @property
    def layer_name(self) -> str:
        """The path of the module that it belongs to, or its own name."""
        name = self.name
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        return name or self.name

    @property
    def is_matrix(self) -> bool:
        """Whether the tensor has more than one row and more than one column."""
        return sum(size > 1 for size in self.tensor.shape) > 1

    @property
    def trained(self) -> tuple[Tensor, ...]:
        """The parameters that hold it."""
        tensors = (self.tensor,) if self.norm is None else (self.tensor, self.norm.lengths)
        return tuple(tensor for tensor in tensors if isinstance(tensor, nn.Parameter))

    @functools.cached_property
    def in_order(self) -> bool:
        """Whether the tensor has the entries of the matrix in their places: not transposed, not only a part of it."""
        return self.index.shape == self.tensor.shape and bool((self.index.flatten().diff() == 1).all())

    @property
    def as_it_is(self) -> bool:
        """Whether the matrix is the tensor itself, without a weight norm."""
        return self.norm is None and self.in_order

    def arrange(self, tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """What has the shape of the stored tensor, such as its gradient, in the shape of the matrix."""
        return tensor.flatten()[self.index.to(tensor.device)]

    def restore(self, matrix: Float[Tensor, "..."], tensor: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """A copy of a tensor of the stored shape, with a matrix in the places that belong to it."""
        flat = tensor.detach().clone().flatten()
        flat[self.index.flatten().to(flat.device)] = matrix.to(flat).flatten()
        return flat.reshape(tensor.shape)

    def numbers(self) -> Float[Tensor, "..."]:
        """The matrix that the model uses: the tensor itself, or computed from it where it is stored in another way."""
        if self.as_it_is:
            return self.tensor
        if self.norm is None:
            return self.arrange(self.tensor)
        return self.arrange(torch.ops.aten._weight_norm(self.tensor, self.norm.lengths, self.norm.dim))

    @torch.no_grad()
    def write_(self, matrix: Float[Tensor, "..."]) -> None:
        """Change the model's tensors such that it uses this matrix."""
        whole = self.restore(matrix, self.tensor)
        self.tensor.copy_(whole)
        if self.norm is not None:  # directions of the lengths that are stated beside them
            self.norm.lengths.copy_(torch.norm_except_dim(whole, 2, self.norm.dim))

    def overlaps(self, other: "Stored") -> bool:
        """Whether both use a number of the model."""
        if self.tensor is not other.tensor:
            return False
        return bool(torch.isin(self.index.flatten(), other.index.flatten()).any())
