"""Evaluation: a user's module as a function from positions to channels, wherever it lives and whatever it returns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


def place_of(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the type of a model's numbers; of a model that has none, PyTorch's own."""
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.get_default_device(), torch.get_default_dtype()


def require_module(model: Any) -> None:
    """Raise an error for anything but a module."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}; pass a torch.nn.Module from positions to channels")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout and the like off for a while."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def evaluate_rows(model: nn.Module, x: Float[Tensor, "n in_size"]) -> Float[Tensor, "n out_size"]:
    """The channels at each of some positions. Of several outputs the first counts; one channel may lack its axis."""
    outputs = model(x)
    outputs = outputs[0] if isinstance(outputs, tuple | list) and outputs else outputs
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"the model returns a {type(outputs).__name__}; wrap it in a module that returns the channels, "
            "(n, out_size), alone"
        )
    if outputs.shape == x.shape[:1]:
        return outputs[:, None]
    if outputs.ndim != 2 or len(outputs) != len(x):
        raise ValueError(
            f"the model returns the shape {tuple(outputs.shape)} for {len(x)} positions; return a row of channels for "
            "each, (n, out_size)"
        )
    return outputs
