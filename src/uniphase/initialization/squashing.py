"""Moments through the maps around a network: other units of coordinates and channels, and a final sigmoid or tanh."""

import math
from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from .moments import Moments

Squashing = Literal["sigmoid", "tanh"]

# The widest spread before a sigmoid. Where values are nearly all at the two ends, it would have to be infinite; with 3,
# half of the outputs are outside of 0.12 and 0.88, and the slopes are still large enough to train.
_WIDEST = 3.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(96)
_WEIGHTS = _WEIGHTS / math.sqrt(2 * math.pi)


def transform_moments(
    moments: Moments,
    input_scale: Float[np.ndarray, " in_size"],
    scale: Float[np.ndarray, " out_size"],
    shift: Float[np.ndarray, " out_size"],
) -> Moments:
    """The moments of scale · f + shift as a function of u = input_scale · x, from those of f as a function of x.

    !!! example
        ```python
        moments = prescribe_moments(mean=[1.0], covariance=[4.0], length_scale=[0.1])
        transform_moments(moments, np.array([2.0]), np.array([0.5]), np.array([0.0])).structure_tensor  # [[25.0]]
        ```
    """
    epsilon = np.broadcast_to(moments.epsilon, moments.out_size) * scale**2
    return Moments(
        scale * moments.mean + shift,
        moments.covariance * np.outer(scale, scale),
        moments.structure_tensor / np.outer(input_scale, input_scale),  # the same for all units of the channels
        tuple(epsilon.tolist()),
    )


def unsquash_moments(
    moments: Moments,
    squash: Squashing,
    scale: Float[np.ndarray, " out_size"],
    shift: Float[np.ndarray, " out_size"],
) -> Moments:
    """The moments of v for which scale · squash(v) + shift has the given ones, if v is a stationary Gaussian field.

    Mean and variance of each channel are matched exactly; correlations stay as they are. A field and its slopes at the
    same place are then independent, so Ω is divided by the share that the slopes of the squash leave of it. Variances
    that the squash cannot give are given as far as a spread of 3 before a sigmoid, 1.5 before tanh, goes.

    **Arguments:**

    - `moments`: of the signal.
    - `squash`: `"sigmoid"` or `"tanh"`.
    - `scale`, `shift`: of the affine map behind it, for each channel.

    !!! example
        ```python
        moments = prescribe_moments(mean=[0.5], covariance=[0.08], length_scale=[0.1])
        unsquash_moments(moments, "sigmoid", np.ones(1), np.zeros(1)).mean  # [0.0]
        ```
    """
    inner = 1.0
    if squash == "tanh":  # tanh v = 2 sigmoid(2v) - 1
        scale, shift, inner = 2 * scale, shift - scale, 2.0
    total = moments.regularized_covariance
    means, stds = (moments.mean - shift) / scale, np.sqrt(np.diag(total))
    if not ((means > 0) & (means < 1)).all():
        ends = np.sort([shift, shift + scale], axis=0).tolist()
        raise ValueError(
            f"the mean of the signal is {moments.mean.tolist()}, but the model ends with {squash}, whose values lie "
            f"between {ends[0]} and {ends[1]}; rescale the signal into that interval, e.g. "
            "(values - values.min()) / (values.max() - values.min())"
        )
    found = [_before_sigmoid(*pair) for pair in zip(means, (stds / scale) ** 2, strict=True)]
    center, spread = np.array(found).T
    correlation = total / np.outer(stds, stds)
    omega = moments.structure_tensor / _share_of_slopes(center, spread, correlation)
    return Moments(center / inner, correlation * np.outer(spread, spread) / inner**2, omega)


class MappedLayers:
    """Layers with maps around them, as the models of every framework are read.

    A subclass has the sizes `in_size` and `out_size`; `before` and `after`, affine maps with a `scale` and a `shift`;
    and `squash`, with an `activation` and a map `after` it, or `None`.
    """

    in_size: Any
    out_size: Any
    before: Any
    after: Any
    squash: Any

    def inner_moments(self, moments: Moments) -> Moments:
        """The moments that the layers alone should have, for the model as a whole to have the given ones.

        **Arguments:**

        - `moments`: of the signal.
        """
        if (moments.in_size, moments.out_size) != (self.in_size, self.out_size):
            raise ValueError(
                f"moments are of {moments.in_size} coordinates and {moments.out_size} channels, but the model has "
                f"{self.in_size} and {self.out_size}; pass the moments of the signal that the model is for"
            )
        if self.squash is not None:
            moments = unsquash_moments(moments, self.squash.activation, *_numbers(self.squash.after))
        scale, shift = _numbers(self.after)
        return transform_moments(moments, _numbers(self.before)[0], 1 / scale, -shift / scale)

    def inner_positions(
        self, mean: Float[np.ndarray, " in_size"], covariance: Float[np.ndarray, "in_size in_size"]
    ) -> tuple[Float[np.ndarray, " in_size"], Float[np.ndarray, "in_size in_size"]]:
        """The mean and the covariance of what the first layer takes, from those of the positions."""
        scale, shift = _numbers(self.before)
        return scale * mean + shift, covariance * np.outer(scale, scale)


def _numbers(affine: Any) -> tuple[np.ndarray, np.ndarray]:
    """The scale and the shift of a map, whose arrays may be those of any framework."""
    return np.asarray(affine.scale), np.asarray(affine.shift)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(z / 2)) / 2


def _before_sigmoid(mean: float, variance: float) -> tuple[float, float]:
    """Mean and standard deviation of a Gaussian whose sigmoid has the given mean and variance."""

    def center(spread: float) -> float:
        reach = 40 + 10 * spread
        return _root(lambda m: float(_WEIGHTS @ _sigmoid(m + spread * _NODES)) - mean, -reach, reach)

    def excess(spread: float) -> float:
        values = _sigmoid(center(spread) + spread * _NODES)
        return float(_WEIGHTS @ (values - mean) ** 2) / variance - 1

    if excess(_WIDEST) <= 0:
        return center(_WIDEST), _WIDEST
    narrow = 0.5 * math.sqrt(variance)  # slopes are at most 1/4
    spread = _root(excess, narrow, _WIDEST)
    return center(spread), spread


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return cast(float, brentq(function, low, high, xtol=1e-14))


def _share_of_slopes(center: np.ndarray, spread: np.ndarray, correlation: np.ndarray) -> float:
    """Ω behind a sigmoid over Ω before it: Σ_jk (Σ_y⁻¹)_jk E[D_j D_k] (Σ_v)_jk / c, D the slopes of the sigmoid.

    Both covariances have the same correlations R; then (Σ_y⁻¹)_jk (Σ_v)_jk is (R⁻¹)_jk R_jk times ratios of spreads.
    """
    values = _sigmoid(center[:, None] + spread[:, None] * _NODES)
    stds = np.sqrt((values - (values @ _WEIGHTS)[:, None]) ** 2 @ _WEIGHTS)
    pairs = [[np.array([j, k]) for k in range(len(center))] for j in range(len(center))]
    slopes = [[_product_of_slopes(center[p], spread[p], float(correlation[p[0], p[1]])) for p in row] for row in pairs]
    ratios = spread / stds
    weights = np.linalg.inv(correlation) * correlation * np.outer(ratios, ratios)
    return float((weights * slopes).sum()) / len(center)


def _product_of_slopes(center: np.ndarray, spread: np.ndarray, correlation: float) -> float:
    """E[s'(v_j) s'(v_k)] for two Gaussians, s the sigmoid."""
    rest = math.sqrt(max(0.0, 1 - correlation**2))
    first = _sigmoid(center[0] + spread[0] * _NODES)[:, None]
    second = _sigmoid(center[1] + spread[1] * (correlation * _NODES[:, None] + rest * _NODES))
    return float(_WEIGHTS @ (first * (1 - first) * second * (1 - second)) @ _WEIGHTS)
