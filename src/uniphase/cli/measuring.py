"""Measuring a network after the last step: at all samples of a field, or at some that are evenly spread over it."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Int, Shaped

from ..jax.render import predict_chunks
from ..signals.fields import Field, Grid, Sampling
from ..signals.metrics import Metrics, evaluate
from .subjects import strided

if TYPE_CHECKING:
    from ..jax.network import CoordinateMLP

# Called with what is being done, how much of it is done, and how much there is.
Tell = Callable[[str, int, int], Any]
# Samples by which the cost of comparing values is measured.
_REHEARSED = 1 << 15


class Measured(NamedTuple):
    """Samples of a field, the network's values there in the same shape, and the metrics of these."""

    field: Field
    prediction: Shaped[np.ndarray, "..."]
    metrics: Metrics


def measure(network: "CoordinateMLP", field: Field, sampling: Sampling, most: int, tell: Tell) -> Measured:
    """Measure a network at all samples of a field, or at no more than `most` of them.

    Some samples are every k-th along each axis, with an odd k, so that they fall on all places in the blocks of a JPEG.
    They do not have an SSIM, which is that of neighbours.

    **Arguments:**

    - `network`, `field`, `sampling`: what is compared, and what the samples are.
    - `most`: how many samples there is time for.
    - `tell`: called with the name of the stage, and how far it is.

    !!! example
        ```python
        measure(network, field, "points", 100, lambda *_: None).field.shape  # (6, 6), of (16, 16)
        ```
    """
    strides = spread_strides(field, most)
    part, whole = strided(field, strides), max(strides) == 1
    indices = None if whole else _indices(field, strides)
    prediction = predict_told(network, field, indices, sampling, tell).reshape(part.values.shape)
    tell("comparing", 0, 0)
    metrics = evaluate(prediction, part)
    return Measured(part, prediction, metrics if whole else _without_similarity(metrics))


def predict_told(
    network: "CoordinateMLP", field: Field, indices: Int[np.ndarray, " n"] | None, sampling: Sampling, tell: Tell
) -> Shaped[np.ndarray, "n out_size"]:
    """The values of a network at some samples of a field, or at all."""
    average, total = _averages(field, sampling), field.samples if indices is None else len(indices)
    tell("measuring", 0, total)
    prediction, done = np.empty((total, field.out_size), np.float32), 0
    for chunk in predict_chunks(network, field, indices, average=average):
        prediction[done : done + len(chunk)] = chunk
        done += len(chunk)
        tell("measuring", done, total)
    return prediction


def sample_seconds(network: "CoordinateMLP", field: Field, sampling: Sampling) -> float:
    """What measuring a sample costs: by evaluating a chunk, which also compiles it, and comparing some values."""
    average, evaluated = _averages(field, sampling), math.inf
    for _ in range(3):  # the first is compiled, and the least of the others is the least disturbed
        begun = time.perf_counter()
        size = len(next(predict_chunks(network, field, average=average)))
        evaluated = min(evaluated, (time.perf_counter() - begun) / size)
    part = middle(field)
    begun = time.perf_counter()
    evaluate(np.zeros(part.values.shape, np.float32), part)
    return evaluated + (time.perf_counter() - begun) / part.samples


def spread_strides(field: Field, most: int) -> tuple[int, ...]:
    """The least odd k for which every k-th sample along each axis gives at most `most` of them; short axes keep 2."""
    shape, stride = _shape(field), 1
    strides = (1,) * len(shape)
    while math.prod(-(-n // k) for n, k in zip(shape, strides, strict=True)) > most and stride < max(shape):
        stride += 2
        strides = tuple(max(1, min(stride, n - 1)) for n in shape)
    return strides


def excerpt(field: Grid, samples: int) -> tuple[Grid, Int[np.ndarray, " n"]]:
    """Consecutive samples in the middle of a sound, and their indices."""
    first = max(0, (field.samples - samples) // 2)
    indices = np.arange(first, min(field.samples, first + samples))
    return dataclasses.replace(field, values=field.values[indices[0] : indices[-1] + 1]), indices


def middle(field: Field) -> Field:
    """A small part of a field."""
    if not isinstance(field, Grid):
        return strided(field, spread_strides(field, _REHEARSED))
    side = max(8, round(_REHEARSED ** (1 / field.in_size)))
    return dataclasses.replace(
        field, values=field.values[tuple(slice((n - min(n, side)) // 2, (n + min(n, side)) // 2) for n in field.shape)]
    )


def _indices(field: Field, strides: Sequence[int]) -> Int[np.ndarray, " n"]:
    axes = np.ix_(*(np.arange(0, n, stride) for n, stride in zip(_shape(field), strides, strict=True)))
    return np.ravel_multi_index(axes, _shape(field)).ravel().astype(np.int32)


def _shape(field: Field) -> tuple[int, ...]:
    return field.shape if isinstance(field, Grid) else (field.samples,)


def _averages(field: Field, sampling: Sampling) -> bool:
    return sampling == "averages" and isinstance(field, Grid)


def _without_similarity(metrics: Metrics) -> Metrics:
    return dataclasses.replace(metrics, ssim=None, channels=tuple(map(_without_similarity, metrics.channels)))
