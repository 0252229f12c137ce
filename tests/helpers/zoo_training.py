"""Training a model of the zoo, as it is written and after `initialize_`."""

import math

import numpy as np
import torch

from helpers import zoo
from uniphase.initialization.moments import estimate_moments
from uniphase.signals.datasets import load
from uniphase.signals.fields import Points
from uniphase.torch.initialization import initialize_

STEPS, RATE, SIZE = 300, 3e-4, 64


def halves() -> tuple[Points, Points]:
    """The astronaut in color: every other pixel to be fitted, as on a chessboard, and those to be held back."""
    field = load("astronaut", size=SIZE)
    rows, columns = np.indices(field.shape)
    fitted = ((rows + columns) % 2 == 0).ravel()
    positions, values = field.coordinates(), field.flat_values()
    first, second = (Points(positions[part], values[part]) for part in (fitted, ~fitted))
    return first, second


def train(entry: zoo.Entry, seed: int, *, initialized: bool) -> tuple[float, float]:
    """The PSNR on both halves after full-batch steps of Adam, in dB."""
    torch.manual_seed(seed)
    model, (fitted, held_back) = entry.make(), halves()
    if initialized:
        initialize_(model, estimate_moments(fitted))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    x, y = _tensors(fitted)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (_channels(model, x) - y).square().mean().backward()
        optimizer.step()
    return _psnr(model, fitted), _psnr(model, held_back)


def _channels(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    result = model(x)
    return result[0] if isinstance(result, tuple) else result


def _tensors(part: Points) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = (torch.tensor(array, dtype=torch.float32) for array in (part.positions, part.values))
    return x, y


@torch.no_grad()
def _psnr(model: torch.nn.Module, part: Points) -> float:
    x, y = _tensors(part)
    return -10 * math.log10(float((_channels(model, x) - y).square().mean()))
