"""Measurements: what a network does on the samples of a signal, layer by layer, in NumPy.

Expectations over positions are averages over samples of a field; nothing is assumed of how the weights were drawn.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..initialization.activations import ACTIVATIONS
from ..initialization.moments import Moments, combine_statistics
from .chain import LayerReading, preactivation, unfold

# Bins of the circle in which phases are counted.
PHASE_BINS = 24


class LayerMeasurement(NamedTuple):
    """What a layer does on the samples of a field.

    - `name`, `activation`, `out_size`: which layer.
    - `preactivation_std`: of ω(Wx + b), over neurons and positions.
    - `resultant`, `second_resultant`: root mean square over positions of |E exp(iz)| and |E exp(2iz)|, E over neurons,
        minus what a finite number of uniform phases has by chance. `None` without a sine.
    - `squared_slope`: the mean of σ'(z)².
    - `squared_singular`: ‖J‖²/min(rows, columns) of the layer's Jacobian J: its mean squared singular value.
    - `squared_singular_from_first`: the same for the Jacobian from the output of the first layer to that of this one.
        `None` for the last layer, whose size has nothing to do with the width.
    - `weight_gradient`, `bias_gradient`: norms of the gradients of the mean squared error.
    - `backward`: root mean square over positions of the gradient of one sample's error by the output of the layer.
    - `phases`: share of the phases in each of `PHASE_BINS` parts of the circle, or `None`.
    """

    name: str
    activation: str
    out_size: int
    preactivation_std: float
    resultant: float | None
    second_resultant: float | None
    squared_slope: float
    squared_singular: float
    squared_singular_from_first: float | None
    weight_gradient: float
    bias_gradient: float | None
    backward: float
    phases: tuple[float, ...] | None


class ChainMeasurement(NamedTuple):
    """What a network does on the samples of a field.

    - `layers`: the measurements of each.
    - `outputs`: the values of the network.
    - `slope_products`: E[(∂f_k/∂x_a)(∂f_l/∂x_b)].
    - `input_products`: E[J₁ᵀJ₁]/N for the Jacobian J₁ of the first layer and its N outputs.
    """

    layers: tuple[LayerMeasurement, ...]
    outputs: Float[np.ndarray, "samples out_size"]
    slope_products: Float[np.ndarray, "out_size in_size out_size in_size"]
    input_products: Float[np.ndarray, "in_size in_size"]

    def moments(self) -> Moments:
        """Over the samples: like `estimate_moments` of a field, with exact derivatives."""
        covariance = np.atleast_2d(np.cov(self.outputs.T, ddof=1))
        # exact derivatives need a ridge only where the outputs are constant
        return combine_statistics(self.outputs.mean(axis=0), covariance, self.slope_products, fraction=1e-9)


def measure_chain(
    layers: Sequence[LayerReading],
    positions: Float[np.ndarray, "samples in_size"],
    values: Float[np.ndarray, "samples out_size"],
    rng: np.random.Generator,
) -> ChainMeasurement:
    """Run a network forward and backward on some samples of a field.

    Derivatives by the coordinates are exact. The Jacobian J from the first layer on is multiplied by one vector v of
    random signs at each position, as E‖Jv‖² = ‖J‖².
    """
    unfolded = [unfold(layer) for layer in layers]
    inputs, slopes, forward = [], [], []
    h, samples = positions.astype(np.float64), len(positions)
    tangents = np.broadcast_to(np.eye(h.shape[1]), (samples, h.shape[1], h.shape[1]))
    input_products = np.zeros(0)
    for index, layer in enumerate(unfolded):
        inputs.append(h)
        z = preactivation(layer, h)
        h, slope = ACTIVATIONS[layer.activation].value(z), ACTIVATIONS[layer.activation].slope(z)
        slopes.append(slope)
        tangents = (tangents.reshape(-1, len(layer.weight[0])) @ (layer.omega * layer.weight).T).reshape(
            samples, -1, len(layer.weight)
        ) * slope[:, None, :]
        if index == 0:
            input_products = np.einsum("man,mbn->ab", tangents, tangents) / tangents[:, 0].size
            probe = rng.choice([-1.0, 1.0], (samples, 1, h.shape[1]))
            tangents = np.concatenate([tangents, probe], axis=1)
        forward.append(_forward_statistics(layer, z, (h, slope), tangents[:, -1], unfolded[0].out_size))
    gradients = _gradients(layers, inputs, slopes, 2 * (h - values) / values.shape[1])
    rows = []
    for index, (layer, ahead, back) in enumerate(zip(layers, forward, gradients, strict=True)):
        if index == len(layers) - 1:
            ahead = ahead | {"squared_singular_from_first": None}
        rows.append(LayerMeasurement(layer.name, layer.activation, layer.out_size, **ahead, **back))
    by_coordinates = tangents[:, :-1]  # (samples, in_size, out_size)
    products = np.einsum("mak,mbl->kalb", by_coordinates, by_coordinates) / samples
    return ChainMeasurement(tuple(rows), h, products, input_products)


def _forward_statistics(
    layer: LayerReading, z: np.ndarray, pair: tuple[np.ndarray, np.ndarray], probe: np.ndarray, first_size: int
) -> dict:
    value, slope = pair
    squared_weights = layer.omega**2 * np.square(layer.weight).sum(axis=1)
    phases = layer.activation == "sine"
    counts = np.histogram(np.mod(z, 2 * np.pi), PHASE_BINS, (0, 2 * np.pi))[0] if phases else np.zeros(0)
    return {
        "preactivation_std": float(z.std()),
        "resultant": _resultant(slope, value) if phases else None,
        "second_resultant": _resultant(slope**2 - value**2, 2 * slope * value) if phases else None,
        "squared_slope": float(np.square(slope).mean()),
        "squared_singular": float(np.square(slope).mean(axis=0) @ squared_weights) / min(layer.weight.shape),
        "squared_singular_from_first": float(np.square(probe).sum(axis=1).mean()) / min(first_size, z.shape[1]),
        "phases": tuple((counts / z.size).tolist()) if phases else None,
    }


def _resultant(cosines: np.ndarray, sines: np.ndarray) -> float:
    """Root mean square of |E exp(iz)| over the rows. Of n uniform phases |mean exp(iz)|² is 1/n on average."""
    n = cosines.shape[1]
    square = float((cosines.mean(axis=1) ** 2 + sines.mean(axis=1) ** 2).mean())
    return float(np.sqrt(max(0.0, (n * square - 1) / max(n - 1, 1))))


def _gradients(
    layers: Sequence[LayerReading], inputs: Sequence[np.ndarray], slopes: Sequence[np.ndarray], backward: np.ndarray
) -> list[dict]:
    """Norms of the gradients, from those of each sample's error by the outputs."""
    rows = []
    for layer, h, slope in zip(reversed(layers), reversed(inputs), reversed(slopes), strict=True):
        at_output = float(np.sqrt(np.square(backward).sum(axis=1).mean()))
        dz = layer.omega * backward * slope
        if layer.activation == "sincos":  # the two halves share their weights
            dz = dz[:, : len(layer.weight)] + dz[:, len(layer.weight) :]
        bias = None if layer.bias is None else float(np.linalg.norm(dz.mean(axis=0)))
        weight = float(np.linalg.norm(dz.T @ h)) / len(h)
        rows.append({"weight_gradient": weight, "bias_gradient": bias, "backward": at_output})
        backward = dz @ layer.weight
    return rows[::-1]
