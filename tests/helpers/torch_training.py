"""A small field, networks for it, and a plain loop that trains them by an optimizer of PyTorch."""

import dataclasses

import numpy as np
import torch

from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.fields import Grid
from uniphase.torch.network import CoordinateMLP

FIELD = Grid(np.random.default_rng(0).normal(size=(12, 16, 3)), extents=((2.0, 5.0), (-1.0, 9.0)))
MOMENTS = estimate_moments(FIELD)
X, Y = torch.tensor(FIELD.coordinates()), torch.tensor(FIELD.flat_values())


def loss(model):
    prediction = model(X)
    prediction = prediction[0] if isinstance(prediction, tuple) else prediction
    return (prediction - Y).square().mean()


def train(model, optimizer, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def uneven(*widths: int) -> CoordinateMLP:
    """A uniform-phase network whose hidden layers differ in width; each has the distribution of its inputs' number."""
    plans = [uniform_phase(MOMENTS, width=width, depth=1).layers for width in widths]
    hidden = [dataclasses.replace(plan[1], rows=rows) for plan, rows in zip(plans, widths[1:], strict=False)]
    blueprint = Blueprint("uneven", (plans[0][0], *hidden, plans[-1][2]))
    return CoordinateMLP(blueprint, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
