"""Diagnosis of PyTorch models: the model is read as a chain of layers, and the chain is examined."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..diagnosis.chain import LayerReading
from ..diagnosis.examination import examine, in_units, replacement
from ..diagnosis.report import Report
from ..initialization.moments import Moments, estimate_moments
from ..initialization.schemes import get_scheme
from ..signals.fields import Field
from .initialization import plan_chain
from .reading import AffineMap, Chain, Model, ReadLayer, read_layers


def diagnose(model: Model, field: Field, moments: Moments | None = None, *, seed: int = 0) -> Report:
    """Examine a model before it is trained: does its initialization suit a signal, and if not, what is wrong?

    **Arguments:**

    - `model`: as for `initialize_`, without sums of layers.
    - `field`: the signal that it will be trained on.
    - `moments`: of the signal. Default: estimated from the field.
    - `seed`: of the samples that are measured, and of the networks that it is compared to.

    **Returns:**

    A `Report`, which prints as a table and a list of findings, with the call that fixes them.

    !!! example
        ```python
        print(diagnose(model, field))
        ```
    """
    chain = read_layers(model)
    _require_no_sums(chain)
    outer, given = _outer_map(chain), estimate_moments(field) if moments is None else moments
    fix = _fix(chain, given)
    if not outer.is_identity:  # what stands behind the last activation is a choice of units for the values
        field, given = in_units(field, given, outer.scale.numpy(), outer.shift.numpy())
    return examine(_readings(chain), field, given, fix=fix, seed=seed)


def _fix(chain: Chain, moments: Moments) -> str:
    """The call that initializes the model if it is one of sines; otherwise one that makes such a model in its place."""
    scheme = get_scheme("uniform-phase")
    try:
        plan_chain(chain, moments, scheme, scheme.fit)
    except ValueError:
        return replacement(_readings(chain), "uniphase.torch.CoordinateMLP")
    return "uniphase.torch.initialize_(model, moments)"


def _require_no_sums(chain: Chain) -> None:
    for layer in chain.layers:
        if len(layer.inputs) > 1:
            raise ValueError(
                f"layer {layer.name!r} takes a sum of {len(layer.inputs)} layers, and the doctor examines chains "
                "without sums; uniphase.torch.initialize_(model, moments) takes the model as it is"
            )


def _outer_map(chain: Chain) -> AffineMap:
    """What follows the last activation, if there is one at the end."""
    if chain.squash is not None:
        return chain.squash.after
    return AffineMap.identity(chain.out_size) if chain.layers[-1].activation == "linear" else chain.after


def _readings(chain: Chain) -> list[LayerReading]:
    """The layers with all maps of positions and outputs folded into their weights and biases."""
    first, *others = [_reading(layer) for layer in chain.layers]
    weight, scale, shift = first.weight, chain.before.scale.numpy(), chain.before.shift.numpy()
    first = replace(first, weight=weight * scale, bias=_added(first.bias, weight @ shift))
    layers = [first, *others]
    last = layers[-1]
    if last.activation == "linear":
        scale, shift = chain.after.scale.numpy(), chain.after.shift.numpy()
        bias = None if last.bias is None else scale * last.bias
        name = "linear" if chain.squash is None else chain.squash.activation
        layers[-1] = replace(last, weight=scale[:, None] * last.weight, bias=_added(bias, shift), activation=name)
    return layers


def _reading(layer: ReadLayer) -> LayerReading:
    sign = 1.0 if layer.omega > 0 else -1.0
    bias = None if layer.bias is None else sign * _to_numpy(layer.bias)
    if layer.shift is not None:
        bias = _added(bias, _to_numpy(layer.shift) / abs(layer.omega))
    weight = sign * layer.gain * _to_numpy(layer.weight)
    return LayerReading(layer.name, weight, bias, layer.activation, abs(layer.omega))


def _added(bias: np.ndarray | None, shift: np.ndarray) -> np.ndarray | None:
    return bias if not shift.any() else shift if bias is None else bias + shift


def _to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float64).numpy()
