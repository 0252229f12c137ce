"""Diagnosis of PyTorch models: the model is read as a chain of layers, and the chain is examined."""

from torch import Tensor

from ..diagnosis.chain import LayerReading
from ..diagnosis.examination import examine
from ..diagnosis.report import Report
from ..initialization.moments import Moments
from ..signals.fields import Field
from .reading import Model, ReadLayer, read_layers


def diagnose(model: Model, field: Field, moments: Moments | None = None, *, seed: int = 0) -> Report:
    """Examine a model before it is trained: does its initialization suit a signal, and if not, what is wrong?

    **Arguments:**

    - `model`: as for `initialize_`: a module of linear layers with activations between them, or for one that cannot be
        read, a list of `(linear, activation, omega)`.
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
    layers = [_reading(layer) for layer in read_layers(model).layers]
    return examine(layers, field, moments, fix="uniphase.torch.initialize_(model, moments)", seed=seed)


def _reading(layer: ReadLayer) -> LayerReading:
    bias = None if layer.bias is None else _to_numpy(layer.bias)
    return LayerReading(layer.name, _to_numpy(layer.weight), bias, layer.activation, layer.omega)


def _to_numpy(tensor: Tensor):
    return tensor.detach().cpu().double().numpy()
