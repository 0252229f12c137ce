"""Parameters as the matrices that a model computes with, whether or not they are under a weight norm."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Held(NamedTuple):
    """The numbers that a parameter stands for.

    Under a weight norm these are lengths times directions. Their gradient follows from those of both, and a step of
    the numbers is one of both; so a model takes the same steps with a weight norm and without.

    - `parameter`: the numbers themselves, or their directions.
    - `lengths`: those of the directions, or `None`. Lengths that are frozen keep their values.
    - `dim`: the axis along which the lengths are counted.
    """

    parameter: Tensor
    lengths: Tensor | None = None
    dim: int = 0

    def numbers(self) -> Float[Tensor, "..."]:
        """What the model computes with, in the shape of the parameter."""
        if self.lengths is None:
            return self.parameter
        return self.parameter * (self.lengths / self._sizes())

    def gradient(self) -> Float[Tensor, "..."]:
        """The gradient of a loss by these numbers."""
        gradient = self.parameter.grad
        assert gradient is not None
        if self.lengths is None:
            return gradient
        sizes = self._sizes()
        across = torch.where(self.lengths == 0, 0.0, sizes / self.lengths) * gradient
        along = self.lengths.grad
        return across if along is None else across + along * self.parameter / sizes

    def subtract_(self, step: Float[Tensor, "..."]) -> None:
        """Move the parameters such that the numbers change by a step."""
        if self.lengths is None:
            self.parameter.sub_(step)
            return
        self.parameter.copy_(self.numbers() - step)
        if self.lengths.requires_grad:
            self.lengths.copy_(self._sizes())

    def _sizes(self) -> Tensor:
        return torch.norm_except_dim(self.parameter, 2, self.dim)


def arranged(tensor: Float[Tensor, "..."], index: Tensor | None) -> Float[Tensor, "..."]:
    """The matrix of a layer, from a tensor that holds its numbers in the places of an index."""
    return tensor if index is None else tensor.flatten()[index.to(tensor.device)]


def spread(matrix: Float[Tensor, "..."], index: Tensor | None, like: Tensor) -> Float[Tensor, "..."]:
    """The inverse of `arranged`, with zeros in all other places."""
    if index is None:
        return matrix
    flat = torch.zeros_like(like).flatten()
    flat[index.to(like.device).flatten()] = matrix.flatten()
    return flat.reshape(like.shape)
