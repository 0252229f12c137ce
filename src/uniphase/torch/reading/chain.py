"""A model as its layers, from the coordinates to the channels."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from ...initialization.blueprint import Role
from ...initialization.squashing import MappedLayers, Squashing
from .stored import Stored

POSITIONS = -1  # in `ReadLayer.inputs`, in place of the number of a layer


@dataclass(frozen=True, eq=False)
class AffineMap:
    """scale · x + shift, with a number for each coordinate or channel, in float64."""

    scale: Float[Tensor, " size"]
    shift: Float[Tensor, " size"]

    @staticmethod
    def identity(size: int) -> "AffineMap":
        """What changes nothing."""
        return AffineMap(torch.ones(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64))

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return bool((self.scale == 1).all() and (self.shift == 0).all())

    def __call__(self, x: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        return x if self.is_identity else self.scale.to(x) * x + self.shift.to(x)


class Squash(NamedTuple):
    """The end of a model that bounds its outputs: a sigmoid or tanh, and an affine map of what it gives.

    - `activation`: its name.
    - `function`: the function itself.
    - `after`: the affine map.
    """

    activation: Squashing
    function: Callable[[Tensor], Tensor]
    after: AffineMap


@dataclass(frozen=True, eq=False)
class ReadLayer:
    """activation(omega · (W u + b) + shift), as a model computes it; u is a sum of outputs of earlier layers.

    - `name`: the path of its module in the model.
    - `weight`, `bias`: the model's own tensors; where it stores a matrix in another way (transposed, as the kernel of a
        convolution, with a weight norm), the matrix as it was computed from them.
    - `activation`, `omega`, `role`: as in a `LayerPlan`.
    - `function`: the activation itself; there are two functions called gelu.
    - `inputs`: the numbers of the layers whose outputs are added to u, each with its factor. `-1` are the positions.
    - `shift`: a constant inside the activation, or `None`.
    - `stored`, `stored_bias`: where the model stores them.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    activation: str
    omega: float
    role: Role
    function: Callable[[Tensor], Tensor] = field(repr=False)
    inputs: tuple[tuple[int, float], ...] = ()
    shift: Float[Tensor, " rows"] | None = None
    stored: Stored | None = field(default=None, repr=False)
    stored_bias: Stored | None = field(default=None, repr=False)

    @property
    def gain(self) -> float:
        """The factor of the layer's inputs: what multiplies the weights besides ω. Of a sum, the root mean square.

        Sines of uniform phases are uncorrelated, so a sum of them with factors a_j is √(Σ a_j²) times as large as one.
        """
        factors = [factor for _, factor in self.inputs]
        return factors[0] if len(factors) == 1 else float(np.linalg.norm(factors))


@dataclass(frozen=True, eq=False)
class Chain(MappedLayers):
    """A model as its layers, from the coordinates to the channels. Calling it computes what the model does.

    - `layers`: in an order in which each takes only outputs of earlier ones.
    - `before`: a map of the positions, such as 2x - 1. A mere factor is the first layer's `gain`.
    - `after`: a map of the last layer's outputs.
    - `squash`: a final sigmoid or tanh, or `None`.
    """

    layers: tuple[ReadLayer, ...]
    before: AffineMap
    after: AffineMap
    squash: Squash | None = None

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.layers[0].weight.shape[1]

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.layers[-1].weight.shape[0]

    @property
    def width(self) -> int:
        """Number of neurons before the last layer."""
        return self.layers[-1].weight.shape[1]

    def __call__(self, x: Float[Tensor, "*batch in_size"]) -> Float[Tensor, "*batch out_size"]:
        outputs = {POSITIONS: self.before(x)}
        for number, layer in enumerate(self.layers):
            u = sum(outputs[source] if factor == 1 else factor * outputs[source] for source, factor in layer.inputs)
            z = layer.omega * F.linear(torch.as_tensor(u), layer.weight, layer.bias)
            outputs[number] = layer.function(z if layer.shift is None else z + layer.shift.to(z))
        y = self.after(outputs[len(self.layers) - 1])
        return y if self.squash is None else self.squash.after(self.squash.function(y))
