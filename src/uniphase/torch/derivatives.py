"""Derivatives of a model by its coordinates, for many positions at once.

A row of the output depends on its own position alone, so the gradient of a sum over rows has the gradient of each row.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .evaluation import evaluate_rows


def gradient(model: nn.Module, x: Float[Tensor, "*batch in_size"]) -> Float[Tensor, "*batch out_size in_size"]:
    """The derivative of every channel by every coordinate, at one position or at many.

    It can be differentiated further, by the parameters for a loss that contains it, or by the coordinates.

    **Arguments:**

    - `model`: any module from positions to channels that treats each position by itself.
    - `x`: positions, a row for each.

    !!! example
        ```python
        gradient(model, torch.zeros(2))  # (out_size, 2)
        gradient(model, torch.rand(100, 2))  # (100, out_size, 2)
        ```
    """
    further = torch.is_grad_enabled()
    with torch.enable_grad():
        x, values = _values(model, x)
        slopes = [_slope(channel, x, further) for channel in values.unbind(-1)]
    return torch.stack(slopes, dim=-2)


def laplacian(model: nn.Module, x: Float[Tensor, "*batch in_size"]) -> Float[Tensor, "*batch out_size"]:
    """The sum of the second derivatives of every channel, at one position or at many.

    It can be differentiated further, by the parameters for a loss that contains it, or by the coordinates.

    **Arguments:** as for `gradient`.

    !!! example
        ```python
        residual = laplacian(model, torch.rand(100, 2))  # (100, out_size)
        residual.square().mean().backward()
        ```
    """
    further = torch.is_grad_enabled()
    with torch.enable_grad():
        x, values = _values(model, x)
        channels = [_trace(_slope(channel, x, True), x, further) for channel in values.unbind(-1)]
    return torch.stack(channels, dim=-1)


def _values(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The positions as they are differentiated by, and the channels there."""
    if x.ndim == 0 or not x.is_floating_point():
        raise ValueError(
            f"x has the shape {tuple(x.shape)} and the type {x.dtype}; pass positions (*batch, in_size), in the type "
            "of the model"
        )
    x = x if x.requires_grad else x.detach().requires_grad_()
    values = evaluate_rows(model, x.reshape(-1, x.shape[-1]))
    return x, values.reshape(*x.shape[:-1], -1)


def _slope(channel: Tensor, x: Tensor, further: bool) -> Tensor:
    slope = None
    if channel.requires_grad:
        (slope,) = torch.autograd.grad(channel.sum(), x, create_graph=further, retain_graph=True, allow_unused=True)
    if slope is None:
        raise ValueError(
            "the outputs of the model do not depend on its positions in a way that PyTorch can follow; if it detaches "
            "them, as SIREN's own code does, pass the part that does not, e.g. model.net"
        )
    return slope


def _trace(slope: Tensor, x: Tensor, further: bool) -> Tensor:
    """The sum over the coordinates of the second derivatives. Those of a function without curvature are zero."""
    total = torch.zeros_like(slope[..., 0])
    for i, component in enumerate(slope.unbind(-1) if slope.requires_grad else ()):
        (second,) = torch.autograd.grad(component.sum(), x, create_graph=further, retain_graph=True, allow_unused=True)
        total = total if second is None else total + second[..., i]
    return total
