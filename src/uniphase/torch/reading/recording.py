"""Running a model on a few positions, with a record of what each of its tensors stands for.

A `TorchFunctionMode` sees every operation of PyTorch, whichever module or line of `forward` it comes from. The model
itself runs as always; nothing of it is changed.
"""

import copy
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode

from .calls import Call, Value, operation_name
from .operations import apply
from .stored import Stored
from .values import Constant, NotReadError, Opaque, Positions, Signal, plain

STATE_THEM = (
    "state its layers: StatedLayers(model, "
    '[(model.first, "sine", 30.0), …, (model.last, "linear", 1.0)]), which is compared with the model'
)


class Recorder(TorchFunctionMode):
    """What the tensors of a running model stand for.

    **Arguments:**

    - `model`: the model.
    - `originals`: its own tensors by name, as `own_tensors` gives them.
    - `tensors`: those that it runs with, which may be copies.
    """

    def __init__(self, model: nn.Module, originals: dict[str, Tensor], tensors: dict[str, Tensor]):
        super().__init__()
        self.epsilon = torch.finfo(torch.float64).eps
        self._names = {id(module): name for name, module in model.named_modules()}
        self._kind = type(model).__name__
        self._stack: list[nn.Module] = []
        self._values: dict[int, tuple[Tensor, Value]] = {}  # with the tensor, whose id is then not given to another
        for name, original in originals.items():
            tensor = tensors.get(name)
            if tensor is not None and id(tensor) not in self._values:  # a shared tensor has the first of its names
                self._keep(tensor, Constant(tensor, Stored.whole(name, original)))

    def run(self, model: nn.Module, positions: Tensor) -> Any:
        """Call the model. Afterwards `value` knows what it returned."""
        rows = plain(positions).reshape(_rows(positions))
        index = torch.arange(positions.numel()).reshape(positions.shape)
        self._keep(positions, Signal.of(Positions(rows), rows.shape[1], index))
        hooks = (
            module_hooks.register_module_forward_pre_hook(self._enter),
            module_hooks.register_module_forward_hook(self._leave, always_call=True),
        )
        try:
            with self, warnings.catch_warnings(action="ignore"):  # the model's own, which come when it is used
                return model(positions)
        finally:
            for hook in hooks:
                hook.remove()

    def value(self, tensor: Tensor) -> Value:
        """What a tensor stands for."""
        return self._values[id(tensor)][1] if id(tensor) in self._values else Constant(tensor)

    @property
    def place(self) -> str:
        """The module that is running, in words."""
        for module in reversed(self._stack):
            if name := self._names.get(id(module)):
                return f"module {name!r} ({type(module).__name__})"
        return f"the model {self._kind}"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        values = self._replaced(args), self._replaced(kwargs)  # before the call, which may change its arguments
        result = func(*args, **kwargs)
        tensors = [result] if isinstance(result, Tensor) else result
        if isinstance(tensors, tuple | list) and any(isinstance(item, Tensor) for item in tensors):
            name, epsilon = operation_name(func), self._precision(result)
            found = self._apply(Call(func, name, *values, args, result, self.place, epsilon))
            found = found if isinstance(found, tuple) else (found,) * len(tensors)
            for tensor, value in zip(tensors, found, strict=True):
                self._keep(tensor, value)
        elif operation_name(func) == "setitem" and _first(values, Signal) is not None:
            self._keep(args[0], Opaque(f"{self.place} writes into a part of its activations"))
        return result

    def _apply(self, call: Call) -> Value | tuple[Value, ...]:
        if (opaque := _first((call.args, call.kwargs), Opaque)) is not None:
            return opaque
        if not _first((call.args, call.kwargs), Signal) and not _first((call.args, call.kwargs), Constant):
            return Constant(call.result)
        try:
            return apply(call)
        except NotReadError as error:
            return Opaque(f"{call.place} {error}", error.fix)
        except Exception as error:  # an argument that no rule expects
            return Opaque(f"{call.place} computes {call.name!r} in a way that is not known ({error})")

    def _replaced(self, arguments: Any) -> Any:
        if isinstance(arguments, Tensor):
            return self.value(arguments)
        if type(arguments) in (tuple, list):
            return type(arguments)(map(self._replaced, arguments))
        if isinstance(arguments, dict):
            return {name: self._replaced(value) for name, value in arguments.items()}
        return arguments

    def _keep(self, tensor: Any, value: Value) -> None:
        if isinstance(tensor, Tensor):
            self._values[id(tensor)] = (tensor, value)

    def _precision(self, result: Any) -> float:
        if isinstance(result, Tensor) and result.dtype.is_floating_point:
            self.epsilon = max(self.epsilon, torch.finfo(result.dtype).eps)
            if result.device.type not in ("cpu", "meta"):
                self.epsilon = max(self.epsilon, 1e-3)  # products of float32 may be rounded to 10 bits there
        return self.epsilon

    def _enter(self, module: nn.Module, args: Any) -> None:
        self._stack.append(module)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Compiled code computes unseen: what comes out of it would be taken for a constant."""
        if isinstance(output, Tensor) and id(output) not in self._values and _first(self._replaced(args), Signal):
            self._keep(output, Opaque(f"{self.place} computes in compiled code or outside of PyTorch", STATE_THEM))
        self._stack.pop()


def _first(arguments: Any, kind: type) -> Any:
    """The first value of a kind among arguments, or None."""
    if isinstance(arguments, kind):
        return arguments
    if isinstance(arguments, dict):
        arguments = tuple(arguments.values())
    if isinstance(arguments, tuple | list):
        return next((found for item in arguments if (found := _first(item, kind)) is not None), None)
    return None


def _rows(positions: Tensor) -> tuple[int, int]:
    """(n, size) of positions that stand in rows, or in channels of a convolution with one pixel for each."""
    size = positions.shape[1] if positions.ndim > 2 and positions.shape[0] > 1 else positions.shape[-1]
    return positions.numel() // size, size


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters, buffers and other tensors that are attributes of a model's modules, by name."""
    found = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    for path, module in model.named_modules():
        attributes = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
        found |= {f"{path}.{name}".removeprefix("."): value for name, value in attributes.items()}
    return found


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Run a model for a while without dropout, and leave it as it was: numbers, attributes, modes and randomness."""
    scripted = [(module, module.training) for module in model.modules() if isinstance(module, torch.jit.ScriptModule)]
    modules = [module for module in model.modules() if not isinstance(module, torch.jit.ScriptModule)]
    saved = [(module.__dict__, copy.copy(module.__dict__), _containers(module)) for module in modules]
    parameters = [(parameter, parameter.detach().clone()) for parameter in model.parameters()]
    for module in [*modules, *(module for module, _ in scripted)]:
        module.training = False
    for module in modules:
        module._buffers.update({name: _copy(buffer) for name, buffer in module._buffers.items()})
    try:
        devices = {parameter.device.index for parameter in model.parameters() if parameter.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices - {None})), torch.enable_grad(), _not_compiled():
            yield
    finally:
        for attributes, before, containers in saved:
            attributes.clear()
            attributes.update(before)
            for container, content in containers:
                _refill(container, content)
        for module, training in scripted:
            module.training = training
        for parameter, numbers in parameters:
            if not parameter.is_meta and not torch.equal(parameter, numbers):
                parameter.data.copy_(numbers)


def _not_compiled() -> AbstractContextManager[Any]:
    """Run what is under `torch.compile` as it was written. Its compiler is loaded only where it was used."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


def _containers(module: nn.Module) -> list[tuple[Any, Any]]:
    """Lists and dictionaries of a module, buffers among them, each with a copy of what is in it."""
    return [(value, copy.copy(value)) for value in vars(module).values() if isinstance(value, list | dict)]


def _refill(container: Any, content: Any) -> None:
    if isinstance(container, list):
        container[:] = content
    else:
        container.clear()
        container.update(content)


def _copy(buffer: Tensor | None) -> Tensor | None:
    return None if buffer is None else buffer.detach().clone()
