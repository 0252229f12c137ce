"""Models as people write them, for the tests of the PyTorch side: each says what a reader should find in it."""

import math

import torch
from torch import Tensor, nn

torch.set_num_threads(1)  # on models this small, a second thread costs more than it brings


class Sine(nn.Module):
    def __init__(self, omega: float = 1.0):
        super().__init__()
        self.frequency = omega

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.frequency * x)


class SineLayer(nn.Module):
    """As in SIREN's own code: the linear layer and ω₀ within one module."""

    def __init__(self, columns: int, rows: int, omega_0: float):
        super().__init__()
        self.omega_0 = omega_0
        self.linear = nn.Linear(columns, rows)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.omega_0 * self.linear(x))


class OfficialSiren(nn.Module):
    """It returns its coordinates as well, to be differentiated by."""

    def __init__(self, sizes: tuple[int, int, int] = (2, 16, 3), omega_0: float = 30.0):
        super().__init__()
        in_size, width, out_size = sizes
        layers = [SineLayer(in_size, width, omega_0), *(SineLayer(width, width, omega_0) for _ in range(2))]
        self.net = nn.Sequential(*layers, nn.Linear(width, out_size))

    def forward(self, coordinates: Tensor) -> tuple[Tensor, Tensor]:
        coordinates = coordinates.clone().detach().requires_grad_(True)
        return self.net(coordinates), coordinates


class InOneForward(nn.Module):
    """No module for the sine, ω a parameter, the last layer made first."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(16, 3)
        self.hidden = nn.ModuleList([nn.Linear(16, 16), nn.Linear(16, 16)])
        self.first = nn.Linear(2, 16)
        self.omega = nn.Parameter(torch.tensor(20.0))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sin(self.first(x) * self.omega)
        for linear in self.hidden:
            x = linear(x).mul(2).div(4).sin()
        return self.last(x)


class FourierFeatures(nn.Module):
    """The frequencies are a buffer, and 2π stands before the matrix."""

    def __init__(self):
        super().__init__()
        self.register_buffer("B", torch.randn(8, 2))
        self.net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, x: Tensor) -> Tensor:
        z = (2 * math.pi * x) @ self.B.T
        return self.net(torch.cat([torch.sin(z), torch.cos(z)], dim=-1))


class Skipping(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.block, self.last = SineLayer(2, 16, 30.0), SineLayer(16, 16, 30.0), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(x + self.block(x))


def sequential(*activations: nn.Module, width: int = 16, bias: bool = True) -> nn.Sequential:
    """Two coordinates, an activation after each layer but the last, three channels."""
    sizes = [2, *[width] * len(activations), 3]
    modules: list[nn.Module] = [nn.Linear(sizes[0], sizes[1], bias=bias)]
    for i, activation in enumerate(activations, 1):
        modules += [activation, nn.Linear(sizes[i], sizes[i + 1], bias=bias)]
    return nn.Sequential(*modules)
