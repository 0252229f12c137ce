"""Metrics: how close a prediction is to the values of a field.

Decibels are ratios of powers over all samples and channels, computed in float64. Arrays are read in slabs, so a field
on the disk need not fit in memory.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped
from skimage.metrics import structural_similarity

from .fields import Extent, Field, Grid, slabs


@dataclass(frozen=True)
class Metrics:
    """The error of a prediction, over all channels and for each channel.

    **Arguments:**

    - `mse`: the mean squared error.
    - `snr_db`, `psnr_db`: as the functions of these names; infinite for a perfect prediction.
    - `ssim`: as the function of this name. `None` for scattered points, and where samples are missing.
    - `channels`: the metrics of each channel, if there are several.
    """

    mse: float
    snr_db: float
    psnr_db: float
    ssim: float | None
    channels: tuple["Metrics", ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The metrics as a dictionary for JSON: infinite numbers and NaN become `None`.

        With a single channel there is no entry `channels`.

        !!! example
            ```python
            evaluate(field.values, field).to_dict()  # {"mse": 0.0, "snr_db": None, "psnr_db": None, "ssim": 1.0}
            ```
        """
        numbers = {"mse": self.mse, "snr_db": self.snr_db, "psnr_db": self.psnr_db, "ssim": self.ssim}
        numbers = {name: x if x is not None and math.isfinite(x) else None for name, x in numbers.items()}
        return numbers | ({"channels": [channel.to_dict() for channel in self.channels]} if self.channels else {})


def evaluate(prediction: Shaped[np.ndarray, "*shape out_size"], field: Field) -> Metrics:
    """Compare a prediction with the values of a field; samples that are missing do not count.

    **Arguments:**

    - `prediction`: one row per sample, as `field.flat_values()`, or for a grid also in the shape of `field.values`.
    - `field`: the field to compare with. PSNR and SSIM refer to its `value_range`.

    !!! example
        ```python
        evaluate(0.9 * field.values, field).psnr_db
        ```
    """
    truth = field.values
    if prediction.shape not in (truth.shape, (field.samples, field.out_size)):
        raise ValueError(
            f"prediction has shape {prediction.shape}, but the field has values of shape {truth.shape}; "
            f"pass that shape, or {(field.samples, field.out_size)}"
        )
    prediction = prediction.reshape(truth.shape)
    if field.missing is not None:
        prediction, truth = (values.reshape(-1, field.out_size)[~field.missing] for values in (prediction, truth))

    def compare(channels: slice, parts: tuple[Metrics, ...] = ()) -> Metrics:
        pair = prediction[..., channels], truth[..., channels]
        whole = isinstance(field, Grid) and field.missing is None
        similarity = ssim(*pair, field.value_range) if whole else None
        return Metrics(_mse(*pair), snr_db(*pair), psnr_db(*pair, field.value_range), similarity, parts)

    if field.out_size == 1:
        return compare(slice(None))
    return compare(slice(None), tuple(compare(slice(k, k + 1)) for k in range(field.out_size)))


def metrics_of_error(mse: float, truth: Shaped[np.ndarray, "*shape"], value_range: Extent) -> Metrics:
    """The metrics of observations whose mean squared error is known.

    !!! example
        ```python
        metrics_of_error(0.01, field.values, (0.0, 1.0)).psnr_db  # 20.0
        ```
    """
    low, high = value_range
    mean = np.broadcast_to(np.mean(truth, dtype=np.float64), truth.shape)
    return Metrics(mse, _decibels(_mse(mean, truth), mse), _decibels((high - low) ** 2, mse), None)


def snr_db(prediction: Shaped[np.ndarray, "*shape"], truth: Shaped[np.ndarray, "*shape"]) -> float:
    """The signal-to-noise ratio, 10 log₁₀(Var(truth) / MSE), in decibels.

    The variance is that of all numbers together. A perfect prediction gives infinity, and the best constant gives 0.

    !!! example
        ```python
        truth = np.array([-1.0, 1.0])
        snr_db(0.9 * truth, truth)  # 20.0
        ```
    """
    mean = np.broadcast_to(np.mean(truth, dtype=np.float64), truth.shape)
    return _decibels(_mse(mean, truth), _mse(prediction, truth))


def psnr_db(
    prediction: Shaped[np.ndarray, "*shape"], truth: Shaped[np.ndarray, "*shape"], value_range: Extent
) -> float:
    """The peak signal-to-noise ratio, 10 log₁₀((high - low)² / MSE), in decibels.

    !!! example
        ```python
        psnr_db(np.array([0.1, 0.9]), np.array([0.0, 1.0]), (0.0, 1.0))  # 20.0
        ```
    """
    low, high = value_range
    return _decibels((high - low) ** 2, _mse(prediction, truth))


def ssim(
    prediction: Shaped[np.ndarray, "*shape channels"],
    truth: Shaped[np.ndarray, "*shape channels"],
    value_range: Extent,
) -> float | None:
    """The mean structural similarity of two grids, 1 if they are equal.

    It is `skimage.metrics.structural_similarity` with its uniform window of 7 samples along every axis, or the largest
    odd number that fits the shortest axis. `None` if an axis has fewer than 3 samples, or the range is empty.

    !!! example
        ```python
        ssim(0.9 * field.values, field.values, field.value_range)
        ```
    """
    _require_same_shape(prediction, truth)
    low, high = value_range
    shortest = min(truth.shape[:-1])
    if shortest < 3 or low == high:
        return None
    window = min(7, shortest - 1 + shortest % 2)
    # The mean is over windows that lie inside, so slabs that overlap by one sample less than a window give it exactly.
    inside = tuple(n - window + 1 for n in truth.shape[:-1])
    total = 0.0
    for axis, start, stop in slabs(inside, limit=1 << 20):
        slab = (slice(None),) * axis + (slice(start, stop + window - 1),)
        pair = prediction[slab].astype(np.float64), truth[slab].astype(np.float64)
        similarity = structural_similarity(*pair, win_size=window, channel_axis=-1, data_range=high - low)
        total += float(np.asarray(similarity)) * (stop - start) / inside[axis]
    return total


def _mse(prediction: np.ndarray, truth: np.ndarray) -> float:
    _require_same_shape(prediction, truth)
    total = 0.0
    for axis, start, stop in slabs(truth.shape, limit=1 << 20):
        slab = (slice(None),) * axis + (slice(start, stop),)
        total += float(np.square(np.subtract(prediction[slab], truth[slab], dtype=np.float64)).sum())
    return total / truth.size


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return math.inf
    ratio = signal / noise
    return -math.inf if ratio == 0 else 10 * math.log10(ratio)


def _require_same_shape(prediction: np.ndarray, truth: np.ndarray) -> None:
    if prediction.shape != truth.shape:
        raise ValueError(f"prediction has shape {prediction.shape}, but truth has {truth.shape}; make them agree")
