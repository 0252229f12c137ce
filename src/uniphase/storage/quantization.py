"""Quantization: the hidden matrices of a network as integers with one scale for each row.

Almost all numbers of a network are in the matrices between its hidden layers. The others stay as they are: they are
few, and the phases of hundreds of radians that the input layer makes from coordinates would not survive the rounding.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Integer

from ..initialization.blueprint import Blueprint

BITS = (8, 16)
# Added to the name of a matrix for that of its scales.
SCALES = ".scales"


def require_bits(bits: int | None) -> None:
    """Raise an error for a number of bits that a file cannot have."""
    if bits not in (None, *BITS):
        raise ValueError(f"bits is {bits}; it must be 8 or 16, or left out for weights as they are")


def quantized_names(blueprint: Blueprint) -> list[str]:
    """The names of the matrices that are quantized."""
    return [f"layers.{i}.weight" for i, plan in enumerate(blueprint.layers) if plan.role == "hidden"]


def quantize(
    weight: Float[np.ndarray, "rows columns"], bits: int
) -> tuple[Integer[np.ndarray, "rows columns"], Float[np.ndarray, " rows"]]:
    """The integers and scales of a matrix; `dequantize` gives every entry back within half a scale.

    !!! example
        ```python
        integers, scales = quantize(np.array([[0.5, -1.0], [0.0, 0.0]]), 8)
        integers[0]  # [64, -127]
        ```
    """
    require_bits(bits)
    kind = np.dtype(f"int{bits}")
    largest = np.abs(weight).max(axis=1).astype(np.promote_types(weight.dtype, np.float32))
    scales = np.where(largest > 0, largest, 1) / largest.dtype.type(np.iinfo(kind).max)
    return np.rint(weight / scales[:, None]).astype(kind), scales


def dequantize(
    integers: Integer[np.ndarray, "rows columns"], scales: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, "rows columns"]:
    """The matrix that integers and scales stand for, in the type of the scales."""
    return integers.astype(scales.dtype) * scales[:, None]


def quantize_tensors(
    tensors: Mapping[str, np.ndarray], blueprint: Blueprint, bits: int | None
) -> dict[str, np.ndarray]:
    """The tensors of a file, from those of a network."""
    require_bits(bits)
    stored = dict(tensors)
    if bits is None:
        return stored
    for name in quantized_names(blueprint):
        stored[name], stored[name + SCALES] = quantize(tensors[name], bits)
    return stored


def dequantize_tensors(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of a network, all of one type, from those of a file, quantized or not."""
    tensors = {name: tensor for name, tensor in stored.items() if not name.endswith(SCALES)}
    for name in stored.keys() - tensors.keys():
        matrix, scales = tensors.get(name.removesuffix(SCALES)), stored[name]
        if matrix is None or matrix.dtype.kind != "i" or scales.shape != matrix.shape[:1]:
            raise ValueError(f"its tensor {name} does not belong to a matrix of integers with as many rows")
        kind = stored.get("layers.0.weight", scales).dtype  # that of all that was not quantized
        tensors[name.removesuffix(SCALES)] = dequantize(matrix, scales).astype(kind)
    return tensors
