"""What stands around a model, and what a model must have before it can be read."""

from typing import cast

from torch import nn
from torch.nn.parameter import is_lazy

_SHARDED = "FullyShardedDataParallel"
_WRAPPERS = ("DistributedDataParallel", "DataParallel", _SHARDED)


def unwrap(model: nn.Module) -> nn.Module:
    """The model within wrappers for several devices and within `torch.compile`, which share its parameters."""
    _require_whole(model)
    while True:
        if type(model).__name__ in _WRAPPERS:
            model = cast(nn.Module, model.module)
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def require_sizes(model: nn.Module) -> None:
    """Check that all parameters of a model have their sizes."""
    modules = dict(model.named_modules())
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            path = name.rpartition(".")[0]
            raise ValueError(
                f"module {path!r} ({type(modules[path]).__name__}) is lazy: it has no sizes yet; call the model once "
                "on positions first, e.g. model(torch.zeros(1, 2))"
            )


def _require_whole(model: nn.Module) -> None:
    """Check that this process has all numbers of the model."""
    parts = [name for name, parameter in model.named_parameters() if hasattr(parameter, "device_mesh")]
    for name, module in model.named_modules():
        strategy = getattr(getattr(module, "sharding_strategy", None), "name", "NO_SHARD")
        if type(module).__name__ == _SHARDED and strategy != "NO_SHARD":
            parts.append(name or "the model")
    if parts:
        raise ValueError(
            f"{parts[0]!r} is sharded over processes, so that its matrices are not here as a whole; read or initialize "
            "the model before it is sharded"
        )
