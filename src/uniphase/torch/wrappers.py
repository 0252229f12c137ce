"""What stands around a model, and what a model must have before it can be read."""

from typing import cast

from torch import nn
from torch.nn.parameter import is_lazy

_WRAPPERS = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")


def unwrap(model: nn.Module) -> nn.Module:
    """The model within wrappers for several devices and within `torch.compile`, which share its parameters."""
    while True:
        if type(model).__name__ in _WRAPPERS:
            model = cast(nn.Module, model.module)
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def require_readable(model: nn.Module) -> None:
    """Check that all parameters of a model have their sizes, and are whole."""
    for name, parameter in model.named_parameters():
        module = name.rpartition(".")[0]
        kind = type(model.get_submodule(module)).__name__
        if is_lazy(parameter):
            raise ValueError(
                f"module {module!r} ({kind}) is lazy: it has no sizes yet; call the model once on positions first, "
                "e.g. model(torch.zeros(1, 2))"
            )
        if hasattr(parameter, "device_mesh") or type(parameter).__name__ == "FlatParameter":
            raise ValueError(
                f"module {module!r} ({kind}) has the parameter {name!r} sharded or flattened, so that its matrix is not "
                "here as a whole; read or initialize the model before it is sharded"
            )
