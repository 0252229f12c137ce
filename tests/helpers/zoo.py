"""Look-alikes of published coordinate networks, written from their formulas: two coordinates, three channels, sines.

Each entry of `READ` is one way to write a network that can be read, with what a reader finds: name, activation, ω and
gain of every layer. Each class of the second part does something that is not read.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from helpers.torch_models import InOneForward, OfficialSiren, Sine, SineLayer, Skipping, sequential

WIDTH = 16


def matrices(transposed: bool = False, widths: tuple[int, ...] = (2, WIDTH, WIDTH, 3)) -> nn.ParameterList:
    shapes = [(b, a) if not transposed else (a, b) for a, b in itertools.pairwise(widths)]
    return nn.ParameterList([nn.Parameter(torch.randn(shape) / math.sqrt(shape[1])) for shape in shapes])


def vectors(widths: tuple[int, ...] = (WIDTH, WIDTH, 3)) -> nn.ParameterList:
    return nn.ParameterList([nn.Parameter(torch.randn(size)) for size in widths])


class ByHand(nn.Module):
    """sin(ω z) between linear maps of bare parameters; `product` says how a map is written."""

    def __init__(self, product: Callable[[Tensor, Tensor, Tensor], Tensor], transposed: bool = False):
        super().__init__()
        self.product, self.omega = product, 30.0
        self.W, self.b = matrices(transposed), vectors()

    def forward(self, x: Tensor) -> Tensor:
        for W, b in zip(list(self.W)[:-1], list(self.b)[:-1], strict=True):
            x = torch.sin(self.omega * self.product(x, W, b))
        return self.product(x, self.W[-1], self.b[-1])


def meta_product(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """As in the layers of SIREN's code that take their weights from another network."""
    output = x.matmul(W.permute(*range(W.ndim - 2), -1, -2))
    output += b.unsqueeze(-2)
    return output


def in_columns(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    return (W @ x.T + b[:, None]).T


class Stacked(nn.Module):
    """All hidden matrices in one parameter."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(2, WIDTH), nn.Linear(WIDTH, 3)
        self.W, self.b = nn.Parameter(torch.randn(2, WIDTH, WIDTH)), nn.Parameter(torch.randn(2, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sin(self.first(x))
        for W, b in zip(self.W, self.b, strict=True):
            x = torch.sin(F.linear(x, W, b))
        return self.last(x)


class OmegaFirst(nn.Module):
    """ω multiplies the inputs of each layer, not the bias."""

    def __init__(self, omega: float = 30.0):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)])
        self.omega = omega

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = torch.sin(layer(self.omega * x))
        return self.layers[-1](x)


class OmegaTensor(nn.Module):
    """ω as a buffer of the first layer, and as an attribute that is no buffer for the others."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)])
        self.register_buffer("first_omega", torch.tensor([30.0]))
        self.omega = torch.tensor(4.0)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sin(self.first_omega * self.layers[0](x))
        x = torch.sin(self.layers[1](x) * self.omega.to(x))
        return self.layers[2](x)


class ScaledWeights(nn.Module):
    """The factor stands at the matrix, as where all parameters should have the same size."""

    def __init__(self):
        super().__init__()
        self.W, self.b = matrices(), vectors()

    def forward(self, x: Tensor) -> Tensor:
        for W, b in zip(list(self.W)[:-1], list(self.b)[:-1], strict=True):
            x = torch.sin(F.linear(x, W * 8.0, b))
        return F.linear(x, 0.5 * self.W[-1], self.b[-1])


class Around(nn.Module):
    """A SIREN with something before and after it."""

    def __init__(self, before=None, after=None):
        super().__init__()
        self.net = sequential(Sine(30.0), Sine(5.0), width=WIDTH)
        self.before, self.after = before or nn.Identity(), after or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.net(self.before(x)))


class Lambda(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Normalizing(nn.Module):
    """Subtracts a mean and divides by a spread, of each coordinate; or the other way round, of each channel."""

    def __init__(self, mean: list[float], std: list[float], inverse: bool = False):
        super().__init__()
        self.register_buffer("mean", torch.tensor([mean]))
        self.register_buffer("std", torch.tensor([std]))
        self.inverse = inverse

    def forward(self, x: Tensor) -> Tensor:
        return x * self.std + self.mean if self.inverse else (x - self.mean) * (1 / self.std)


class Averaging(nn.Module):
    """Residual blocks of two sines, (x + sin(B sin(A x))) / 2."""

    def __init__(self, blocks: int = 2):
        super().__init__()
        self.first, self.last = SineLayer(2, WIDTH, 30.0), nn.Linear(WIDTH, 3)
        layers = [nn.Sequential(SineLayer(WIDTH, WIDTH, 30.0), SineLayer(WIDTH, WIDTH, 3.0)) for _ in range(blocks)]
        self.blocks = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = 0.5 * (x + block(x))
        return self.last(x)


class Convolving(nn.Module):
    """Convolutions of one pixel, on positions in channels."""

    def __init__(self, inside: bool):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(2, WIDTH, 1), nn.Conv2d(WIDTH, WIDTH, 1), nn.Conv2d(WIDTH, 3, 1)])
        self.inside = inside

    def forward(self, x: Tensor) -> Tensor:
        x = x.T[None, :, :, None] if self.inside else x
        for layer in self.layers[:-1]:
            x = torch.sin(30 * layer(x))
        x = self.layers[-1](x)
        return x[0, :, :, 0].T if self.inside else x


class Reshaping(nn.Module):
    """Casts, reshapes and squeezes between the layers."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        shape, dtype = x.shape, self.a.weight.dtype
        x = x.reshape(-1, shape[-1]).to(dtype).contiguous()
        x = torch.sin(30 * self.a(x)).unsqueeze(0).expand(1, -1, -1)
        x = torch.sin(self.b(x).mul_(3)).squeeze(0).view(-1, 4, WIDTH // 4).flatten(1)
        return self.c(x).transpose(0, 1).permute(1, 0).reshape(*shape[:-1], 3)


class OwnUnits(nn.Module):
    """Each coordinate is scaled by itself."""

    def __init__(self):
        super().__init__()
        self.net = sequential(Sine(30.0), Sine(), width=WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        row, column = x[..., 0:1] / 4, x[..., 1:2] * 3
        return self.net(torch.cat([row, column], dim=-1))


def weight_normed(norm: Callable[[nn.Module], nn.Module]) -> nn.Sequential:
    model = sequential(Sine(30.0), Sine(5.0), width=WIDTH)
    return nn.Sequential(*(norm(module) if isinstance(module, nn.Linear) else module for module in model))


def widths(*sizes: int) -> nn.Sequential:
    modules: list[nn.Module] = []
    for columns, rows in zip((2, *sizes), sizes, strict=False):
        modules += [nn.Linear(columns, rows), Sine(4.0)]
    return nn.Sequential(*modules, nn.Linear(sizes[-1], 3))


class Cosines(nn.Module):
    """cos z is a sine of another phase."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)])

    def forward(self, x: Tensor) -> Tensor:
        x = 2 * torch.cos(self.layers[0](x))
        return self.layers[2](torch.cos(30 * self.layers[1](x)))


class Entry(NamedTuple):
    """A model, and for each of its layers the name, the activation, ω and the gain."""

    make: Callable[[], nn.Module]
    layers: list[tuple[str, str, float, float]]


def sines(*layers: tuple[str, float, float], last: str) -> list[tuple[str, str, float, float]]:
    return [*((name, "sine", omega, gain) for name, omega, gain in layers), (last, "linear", 1.0, 1.0)]


BY_HAND = sines(("W.0", 30.0, 1.0), ("W.1", 30.0, 1.0), last="W.2")
NET = sines(("net.0", 30.0, 1.0), ("net.2", 5.0, 1.0), last="net.4")
PLAIN = sines(("0", 30.0, 1.0), ("2", 5.0, 1.0), last="4")

# The function of these is that of a blueprint's network with the same random numbers, to the last digits.
READ: dict[str, Entry] = {
    "SIREN, notebook": Entry(OfficialSiren, sines(*((f"net.{i}.linear", 30.0, 1.0) for i in range(3)), last="net.3")),
    "SIREN, layers for meta-learning": Entry(lambda: ByHand(meta_product), BY_HAND),
    "x @ W.T + b": Entry(lambda: ByHand(lambda x, W, b: x @ W.T + b), BY_HAND),
    "x @ W + b": Entry(lambda: ByHand(lambda x, W, b: x @ W + b, transposed=True), BY_HAND),
    "addmm": Entry(lambda: ByHand(lambda x, W, b: torch.addmm(b, x, W.t())), BY_HAND),
    "F.linear + b": Entry(lambda: ByHand(lambda x, W, b: b + F.linear(x, W)), BY_HAND),
    "columns": Entry(lambda: ByHand(in_columns), BY_HAND),
    "stacked": Entry(Stacked, sines(("first", 1.0, 1.0), ("W", 1.0, 1.0), ("W", 1.0, 1.0), last="last")),
    "ω first": Entry(OmegaFirst, sines(("layers.0", 1.0, 30.0), ("layers.1", 1.0, 30.0), last="layers.2")),
    "ω a tensor": Entry(OmegaTensor, sines(("layers.0", 30.0, 1.0), ("layers.1", 4.0, 1.0), last="layers.2")),
    "ω a parameter": Entry(
        InOneForward, sines(("first", 20.0, 1.0), ("hidden.0", 0.5, 1.0), ("hidden.1", 0.5, 1.0), last="last")
    ),
    "scaled weights": Entry(
        ScaledWeights,
        [("W.0", "sine", 1.0, 8.0), ("W.1", "sine", 1.0, 8.0), ("W.2", "linear", 1.0, 0.5)],
    ),
    "x π": Entry(
        lambda: Around(Lambda(lambda x: x * math.pi)),
        sines(("net.0", 30.0, math.pi), ("net.2", 5.0, 1.0), last="net.4"),
    ),
    "y/2 + 1/2": Entry(lambda: Around(after=Lambda(lambda y: y * 0.5 + 0.5)), NET),
    "y + 1/2": Entry(lambda: Around(after=Lambda(lambda y: y + 0.5)), NET),
    "1 - y": Entry(lambda: Around(after=Lambda(lambda y: 1 - y)), NET),
    "channels in their units": Entry(
        lambda: Around(after=Normalizing([5.0, -1.0, 0.0], [2.0, 0.1, 30.0], inverse=True)), NET
    ),
    "coordinates in their units": Entry(OwnUnits, sines(("net.0", 30.0, 1.0), ("net.2", 1.0, 1.0), last="net.4")),
    "flipped coordinates": Entry(lambda: Around(Lambda(lambda x: x.flip(-1))), NET),
    "casts and reshapes": Entry(Reshaping, sines(("a", 30.0, 1.0), ("b", 3.0, 1.0), last="c")),
    "convolutions": Entry(
        lambda: Convolving(inside=True), sines(("layers.0", 30.0, 1.0), ("layers.1", 30.0, 1.0), last="layers.2")
    ),
    "weight norm": Entry(lambda: weight_normed(nn.utils.parametrizations.weight_norm), PLAIN),
}

# Of these the distribution is the blueprint's, but not with the same numbers.
IN_LAW: dict[str, Entry] = {
    "2x - 1": Entry(lambda: Around(Lambda(lambda x: 2 * x - 1)), NET),
    "normalized positions": Entry(lambda: Around(Normalizing([0.3, -2.0], [4.0, 0.5])), NET),
    "residual": Entry(
        Skipping,
        [
            ("first.linear", "sine", 30.0, 1.0),
            ("block.linear", "sine", 30.0, 1.0),
            ("last", "linear", 1.0, math.sqrt(2)),
        ],
    ),
    "averaging residual": Entry(
        Averaging,
        [
            ("first.linear", "sine", 30.0, 1.0),
            ("blocks.0.0.linear", "sine", 30.0, 1.0),
            ("blocks.0.1.linear", "sine", 3.0, 1.0),
            ("blocks.1.0.linear", "sine", 30.0, math.sqrt(1 / 4 + 1 / 4)),
            ("blocks.1.1.linear", "sine", 3.0, 1.0),
            ("last", "linear", 1.0, math.sqrt(1 / 16 + 1 / 16 + 1 / 4)),
        ],
    ),
    "widths": Entry(lambda: widths(8, 16, 8), sines(("0", 4.0, 1.0), ("2", 4.0, 1.0), ("4", 4.0, 1.0), last="6")),
    "cosines": Entry(Cosines, sines(("layers.0", 1.0, 1.0), ("layers.1", 30.0, 2.0), last="layers.2")),
}

# The law holds before the squash.
SQUASHED: dict[str, Entry] = {
    "sigmoid": Entry(lambda: Around(after=nn.Sigmoid()), NET),
    "tanh/2 + 1/2": Entry(lambda: Around(after=Lambda(lambda y: torch.tanh(y) * 0.5 + 0.5)), NET),
}

EVERY = {**READ, **IN_LAW, **SQUASHED}

# Not read.


class Modulated(nn.Module):
    """Each neuron has its own frequency and phase, learned."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(2, WIDTH), nn.Linear(WIDTH, 3)
        self.frequency = nn.Parameter(torch.linspace(1, 30, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.sin(self.frequency * self.first(x)))


class Multiplicative(nn.Module):
    """A product of filters, one for each layer."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.hidden, self.last = (
            nn.Linear(2, WIDTH),
            nn.Linear(2, WIDTH),
            nn.Linear(WIDTH, WIDTH),
            nn.Linear(WIDTH, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(torch.sin(self.a(x))) * torch.sin(self.b(x)))


class Concatenating(nn.Module):
    """The positions are given to a later layer again."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(2, WIDTH), nn.Linear(WIDTH + 2, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sin(30 * self.first(x))
        return self.last(torch.sin(self.second(torch.cat([h, x], dim=-1))))


class NormedByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.v, self.last = nn.Parameter(torch.randn(WIDTH, 2)), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.sin(30 * F.linear(x, self.v / self.v.norm(dim=1, keepdim=True))))


class InDictionaries(nn.Module):
    """As the networks of SIREN's repository that its training loops call."""

    def __init__(self):
        super().__init__()
        self.net = sequential(Sine(30.0), Sine(30.0), width=WIDTH)

    def forward(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        coordinates = given["coords"].clone().detach().requires_grad_(True)
        return {"model_in": coordinates, "model_out": self.net(coordinates)}


class Unpacked(nn.Module):
    """What the message says to write around `InDictionaries`."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model({"coords": x})["model_out"]


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = sequential(Sine(30.0), width=WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) if x.sum() > 0 else self.net(-x)
