"""Networks as files hold them, in NumPy: to be quantized again, or written as a chain of layers."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from ..diagnosis.chain import LayerReading, evaluate_chain, layer_name
from ..initialization.blueprint import Blueprint
from ..signals.paths import FilePath
from ..storage.network_file import NetworkFile, read_network
from ..storage.quantization import dequantize_tensors, quantize_tensors

Tensors = dict[str, np.ndarray]

# Where the error of a quantization is measured.
_POSITIONS = 4096


@dataclass(frozen=True)
class Loss:
    """What a network loses by fewer bits.

    **Arguments:**

    - `psnr_db`: of the network as it is, for the samples that it was fitted to; `None` if that is not known.
    - `quantized_psnr_db`: the same for the quantized network, or if that is not known, its PSNR for the network as it
        is. Both errors are taken as independent, and the second is measured at random positions.

    !!! example
        ```python
        Loss(34.6, 33.9)
        ```
    """

    psnr_db: float | None
    quantized_psnr_db: float

    def __str__(self) -> str:
        if self.psnr_db is None:
            return f"the error of the quantization is at {self.quantized_psnr_db:.2f} dB PSNR"
        return f"PSNR falls from {self.psnr_db:.2f} to about {self.quantized_psnr_db:.2f} dB"


def read_tensors(path: FilePath) -> NetworkFile[Tensors]:
    """A network's file with its tensors, as floats."""
    return read_network(path, lambda _, tensors: tensors)


def with_bits(file: NetworkFile[Tensors], bits: int) -> NetworkFile[Tensors]:
    """The same network with its hidden matrices quantized."""
    tensors = dequantize_tensors(quantize_tensors(file.network, file.blueprint, bits))
    return dataclasses.replace(file, network=tensors, bits=bits)


def quantization_loss(file: NetworkFile[Tensors], quantized: NetworkFile[Tensors]) -> Loss:
    """What is lost from one to the other, at random positions in the domain."""
    low, high = np.array(file.domain.extents).T
    positions = np.random.default_rng(0).uniform(low, high, (_POSITIONS, len(low)))
    exact, rounded = (evaluate_chain(chain_of(part.blueprint, part.network), positions) for part in (file, quantized))
    mse, (black, white) = float(np.square(exact - rounded).mean()), file.value_range
    known = None if file.metrics is None else file.metrics.get("mse")
    peak = (white - black) ** 2
    if known is None or not peak > 0:
        return Loss(None, _decibels(peak, mse))
    return Loss(_decibels(peak, known), _decibels(peak, known + mse))


def chain_of(blueprint: Blueprint, tensors: Tensors) -> list[LayerReading]:
    """A network as a chain of layers."""
    plans, count = blueprint.layers, len(blueprint.layers)
    return [
        LayerReading(
            layer_name(i, count),
            tensors[f"layers.{i}.weight"],
            tensors.get(f"layers.{i}.bias"),
            plan.activation,
            plan.omega,
        )
        for i, plan in enumerate(plans)
    ]


def _decibels(peak: float, mse: float) -> float:
    return 10 * math.log10(peak / mse) if mse > 0 and peak > 0 else math.inf
