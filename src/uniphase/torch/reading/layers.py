"""Reading: a user's model as the layers that it computes.

The model is run on a few positions, and every operation of PyTorch is followed; see `recording`. So what counts is what
the model computes, not what its classes and attributes are called. The result of every activation is compared with what
the layers that were read give there, and a second run at other positions must find the same layers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .assembly import assemble
from .chain import Chain
from .recording import STATE_THEM, Recorder, own_tensors, undisturbed
from .stating import StatedLayers, check_stated
from .values import Constant, NotReadError, Opaque, Signal, agrees
from .wrappers import require_sizes, unwrap

Model = nn.Module | StatedLayers

_COUNT = 7  # of positions
_WAY_OUT = (
    "pass the part of it that maps positions (n, in_size) to channels through linear layers and activations, e.g. "
    'model.net, or initialize its layers one by one, e.g. uniform_phase_(model.first, "input", moments, omega=30.0)'
)
_WRAP = (
    "pass a module around it, whose forward(self, x) takes positions (n, in_size) and returns the channels, e.g. "
    'self.model({"coords": x})["model_out"]'
)


def read_layers(model: Model) -> Chain:
    """Read a model as linear layers with activations between them.

    **Arguments:**

    - `model`: a module that maps positions `(n, in_size)` to channels; of a tuple of outputs the first counts. It is
        not changed in any way. For one that computes in code that cannot be followed, `StatedLayers`.

    !!! example
        ```python
        for layer in read_layers(model).layers:
            print(layer.name, tuple(layer.weight.shape), layer.activation, layer.omega)
        ```
    """
    if isinstance(model, StatedLayers):
        inner = unwrap(model.model)
        require_sizes(inner)
        with undisturbed(inner):
            return check_stated(inner, model.layers, _candidates(inner))
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model is a {type(model).__name__}; pass a torch.nn.Module, or StatedLayers(model, [(linear, activation, "
            "omega), …]) to state its layers"
        )
    model = unwrap(model)
    require_sizes(model)
    originals = own_tensors(model)
    with undisturbed(model):
        chain, positions = _read(model, originals, list(_candidates(model)))
        again, _ = _read(model, originals, [-2 * positions])
    if _signature(chain) != _signature(again):
        kind = f"the model {type(model).__name__}"
        raise ValueError(f"{kind} computes other layers, or with other factors, at other positions; {_WAY_OUT}")
    return chain


def _read(model: nn.Module, originals: dict[str, Tensor], candidates: Sequence[Tensor]) -> tuple[Chain, Tensor]:
    """The layers of a model, and the positions at which they were found: the first that it takes."""
    unread, failed = [], []
    for positions in candidates:
        recorder = Recorder(model, originals, own_tensors(model))
        try:
            output = recorder.run(model, positions.clone())
        except Exception as error:  # a user's model may raise anything
            failed.append(f"does not take positions (n, in_size) ({_reason(error)}); {_WRAP}")
            continue
        try:
            return _as_chain(model, recorder, output), positions
        except ValueError as error:
            unread.append(str(error))  # says more than that positions of another shape are not taken
    raise ValueError(unread[0] if unread else f"the model {type(model).__name__} {failed[0]}")


def _as_chain(model: nn.Module, recorder: Recorder, output: Any) -> Chain:
    kind = f"the model {type(model).__name__}"
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        keys = f" with the keys {', '.join(map(str, output))}" if isinstance(output, dict) else ""
        raise ValueError(f"{kind} returns a {type(output).__name__}{keys}, not a tensor; {_WRAP}")
    value = recorder.value(output)
    if isinstance(value, Opaque):
        raise ValueError(f"{value.reason}, which is not read; {value.fix or _WAY_OUT}")
    if isinstance(value, Constant):
        raise ValueError(f"{kind} returns what no operation of PyTorch computed from the positions; {STATE_THEM}")
    try:
        return _checked(value, output, recorder)
    except NotReadError as error:
        raise ValueError(f"{error}, which is not read; {error.fix or _WAY_OUT}") from None


def _checked(signal: Signal, output: Tensor, recorder: Recorder) -> Chain:
    chain = assemble(signal)
    if not _has_channels_in_order(signal):
        raise NotReadError("the model returns its channels in another order, or only some of them")
    if not agrees(signal.values(), signal.sorted(output), signal.bound(), recorder.epsilon):
        raise NotReadError(f"layer {chain.layers[-1].name!r} was read as the last one, but gives other outputs")
    return chain


def _has_channels_in_order(signal: Signal) -> bool:
    """Whether all channels of each position stand along one axis of the output."""
    if signal.size == 1:
        return True
    axes = [axis for axis, size in enumerate(signal.index.shape) if size == signal.size]
    return any(bool((signal.index.movedim(axis, -1) % signal.size == torch.arange(signal.size)).all()) for axis in axes)


def _candidates(model: nn.Module) -> Iterator[Tensor]:
    """Positions in the shapes that a model may take. One of its matrices has a row or a column for each coordinate."""
    numbers = [tensor for tensor in own_tensors(model).values() if tensor.is_floating_point()]
    tensors = [tensor for tensor in numbers if tensor.ndim > 1]
    sizes = dict.fromkeys([*(tensor.shape[1] for tensor in tensors), *(tensor.shape[0] for tensor in tensors)])
    deep = max((tensor.ndim for tensor in tensors), default=2)
    like = next(iter([*tensors, *numbers]), torch.empty(0))
    shapes = ["n d", "1 n d", *("n d" + " 1" * (ndim - 2) for ndim in range(3, deep + 1))]
    for shape in shapes:
        for size in [size for size in sizes if size > 0] or [1, 2, 3]:
            generator = torch.Generator().manual_seed(0)  # leaves the global state alone
            rows = (2 * torch.rand(_COUNT, size, generator=generator, dtype=torch.float64) - 1).to(like)
            yield rows.reshape([{"n": _COUNT, "d": size, "1": 1}[axis] for axis in shape.split()])


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _signature(chain: Chain) -> list[Any]:
    """All that was read of a model but its weights."""
    maps = [chain.before, chain.after, *([] if chain.squash is None else [chain.squash.after])]
    layers = [
        (layer.name, layer.activation, layer.omega, layer.inputs, None if layer.shift is None else layer.shift.tolist())
        for layer in chain.layers
    ]
    return [layers, [(each.scale.tolist(), each.shift.tolist()) for each in maps]]
