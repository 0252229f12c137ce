"""Networks: a blueprint with its random numbers drawn, as a PyTorch module."""

import functools
from collections.abc import Callable
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from ..initialization.activations import get_activation, load_function
from ..initialization.blueprint import Blueprint, LayerPlan
from ..initialization.distributions import Distribution


@functools.cache
def activation_function(name: str) -> Callable[[Tensor], Tensor]:
    """The PyTorch function of an activation."""
    return load_function(get_activation(name).torch)


class Layer(nn.Module):
    """activation(omega · (W x + b)).

    What a blueprint freezes is a buffer: it moves and is saved with the module, but it is no parameter, so that neither
    an optimizer nor `requires_grad_` reaches it.
    """

    weight: Tensor
    bias: Tensor | None
    activation: str

    def __init__(self, plan: LayerPlan, *, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None):
        super().__init__()
        self.activation, self.omega, self.role, self.trainable = plan.activation, plan.omega, plan.role, plan.trainable
        self.laws = plan.weight, plan.bias
        self._function = activation_function(plan.activation)  # found here, as torch.compile does not follow imports
        shapes = (plan.rows, plan.columns), (plan.rows,)
        for name, law, shape in zip(("weight", "bias"), self.laws, shapes, strict=True):
            tensor = None if law is None else draw(law, shape, dtype, device, generator)
            if plan.trainable:
                self.register_parameter(name, None if tensor is None else nn.Parameter(tensor))
            else:
                self.register_buffer(name, tensor)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the weights and the biases again, in place."""
        for tensor, law in zip((self.weight, self.bias), self.laws, strict=True):
            if tensor is not None and law is not None:
                fill_(tensor, law, generator=generator)

    def forward(self, x: Float[Tensor, "*batch columns"]) -> Float[Tensor, "*batch out_size"]:
        columns = self.weight.shape[1]
        if x.ndim == 0 or x.shape[-1] != columns:
            raise ValueError(
                f"inputs have the shape {tuple(x.shape)}, but the layer takes {columns}; pass (*batch, {columns})"
            )
        z = F.linear(x, self.weight, self.bias)
        return self._function(z if self.omega == 1 else self.omega * z)

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"{columns} → {rows}, {self.activation}, omega={self.omega:g}, bias={self.bias is not None}"


class CoordinateMLP(nn.Module):
    """A network that maps positions to the channels there.

    It takes one position or any batch of them, `(*batch, in_size)`, and gives `(*batch, out_size)`. Its `state_dict`
    has the names of a `.uniphase` file: `layers.0.weight`, `layers.0.bias` and so on.

    **Arguments:**

    - `blueprint`: what to draw.
    - `dtype`, `device`: of the weights. Default: PyTorch's own.
    - `generator`: the randomness. Default: PyTorch's own. The numbers are drawn on its device, so that a seed gives the
        same network wherever the network lives.

    !!! example
        ```python
        network = CoordinateMLP(sm20((2, 3), width=64, depth=2), generator=torch.Generator().manual_seed(0))
        colors = network(torch.rand(100, 2))
        ```
    """

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        dtype = torch.get_default_dtype() if dtype is None else dtype
        device = torch.get_default_device() if device is None else torch.device(device)
        layers = [Layer(plan, dtype=dtype, device=device, generator=generator) for plan in blueprint.layers]
        self.layers = nn.Sequential(*layers)
        self.in_size, self.out_size, self.width = blueprint.in_size, blueprint.out_size, blueprint.width

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all weights and biases again, in place; on the device meta they must have been given memory before.

        **Arguments:**

        - `generator`: the randomness. Default: PyTorch's own. Its numbers are those of a new network.

        !!! example
            ```python
            network = CoordinateMLP(sm20((2, 3), width=64, depth=2), device="meta")
            network.to_empty(device="cpu").reset_parameters()
            ```
        """
        for layer in self.layers.children():
            cast(Layer, layer).reset_parameters(generator)

    def forward(self, x: Float[Tensor, "*batch in_size"]) -> Float[Tensor, "*batch out_size"]:
        if x.ndim == 0 or x.shape[-1] != self.in_size:
            raise ValueError(
                f"positions have the shape {tuple(x.shape)}, but the network takes {self.in_size} coordinates; "
                f"pass (*batch, {self.in_size}), with a row for each position"
            )
        return self.layers(x)


@torch.no_grad()
def fill_(tensor: Tensor, law: Distribution, *, factor: float = 1.0, generator: torch.Generator | None = None) -> None:
    """Draw a tensor in place, and multiply it by a factor."""
    sample = draw(law, tuple(tensor.shape), tensor.dtype, tensor.device, generator)
    tensor.copy_(sample if factor == 1 else factor * sample)


def draw(
    law: Distribution,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    generator: torch.Generator | None,
) -> Tensor:
    """A sample of a distribution."""
    source = device if generator is None else generator.device
    if law.standard == "normal":
        standard = torch.randn(shape, dtype=dtype, device=source, generator=generator)
    elif law.standard == "uniform":
        standard = torch.rand(shape, dtype=dtype, device=source, generator=generator)
    else:
        standard = torch.zeros(shape, dtype=dtype, device=source)
    return law.sample(standard, lambda numbers: torch.as_tensor(numbers, dtype=dtype, device=source)).to(device)
