"""Chains: a network of any framework as the list of its layers, run and measured in NumPy.

A reading holds plain arrays, so what is measured here is the same whichever library the network lives in. Expectations
over positions are averages over samples of a field; nothing is assumed of how the weights were drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from .blueprints import Activation, Blueprint
from .laws import Law
from .moments import Moments, combine_statistics

_Pair = tuple[np.ndarray, np.ndarray]  # an activation and its derivative

# Bins of the circle in which phases are counted.
PHASE_BINS = 24


@dataclass(frozen=True, eq=False)
class LayerReading:
    """One layer of somebody's network: activation(omega · (W x + b)).

    **Arguments:**

    - `name`: what its owner calls it.
    - `weight`, `bias`: its numbers. No bias: `None`.
    - `activation`, `omega`: as for `LayerPlan`.

    !!! example
        ```python
        LayerReading("first", np.ones((64, 2)), np.zeros(64), "sine", 30.0)
        ```
    """

    name: str
    weight: Float[np.ndarray, "rows columns"]
    bias: Float[np.ndarray, " rows"] | None
    activation: Activation
    omega: float = 1.0

    def __post_init__(self):
        if not self.omega > 0:
            raise ValueError(
                f"the omega of {self.name} is {self.omega}; it must be positive, or the sign be in the weight"
            )
        for what in ("weight", "bias"):
            array = getattr(self, what)
            if array is not None and not np.isfinite(array).all():
                raise ValueError(
                    f"the {what} of {self.name} has NaN or infinite entries: the network has diverged; "
                    "examine it as it was before"
                )

    @property
    def out_size(self) -> int:
        """Number of outputs."""
        return len(self.weight) * (2 if self.activation == "sincos" else 1)


class LayerMeasurement(NamedTuple):
    """What a layer does to the samples of a field.

    - `name`, `activation`, `out_size`: which layer.
    - `preactivation_std`: of ω(Wx + b), over neurons and positions.
    - `resultant`, `second_resultant`: root mean square over positions of |E exp(iz)| and |E exp(2iz)|, E over neurons,
        less what a finite number of uniform phases has by chance. `None` without a sine.
    - `squared_slope`: the mean of σ'(z)².
    - `squared_singular`: ‖J‖²/min(rows, columns) of the layer's Jacobian J: its mean squared singular value.
    - `squared_singular_from_first`: the same for the Jacobian from the output of the first layer to that of this one.
        `None` for the last layer, whose size has nothing to do with the width.
    - `weight_gradient`, `bias_gradient`: norms of the gradients of the mean squared error.
    - `backward`: root mean square over positions of the gradient of one sample's error by the output of the layer.
    - `phases`: share of the phases in each of `PHASE_BINS` parts of the circle, or `None`.
    """

    name: str
    activation: Activation
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
    """What a network does to the samples of a field.

    - `layers`: one by one.
    - `outputs`: the values of the network.
    - `slope_products`: E[(∂f_k/∂x_a)(∂f_l/∂x_b)].
    - `input_products`: E[J₁ᵀJ₁]/N for the Jacobian J₁ of the first layer and its N outputs.
    """

    layers: tuple[LayerMeasurement, ...]
    outputs: Float[np.ndarray, "samples out_size"]
    slope_products: Float[np.ndarray, "out_size in_size out_size in_size"]
    input_products: Float[np.ndarray, "in_size in_size"]

    def moments(self) -> Moments:
        """Over the samples: what `estimate_moments` says of a field, with exact derivatives."""
        covariance = np.atleast_2d(np.cov(self.outputs.T, ddof=1))
        # relative to the network's own spread, which may be of any size
        ridge = max(1e-9 * float(np.trace(covariance)) / len(covariance), 1e-30)
        return combine_statistics(self.outputs.mean(axis=0), covariance, self.slope_products, epsilon=ridge)


def read_chain(layers: Mapping[str, Sequence[Any]]) -> list[LayerReading]:
    """Readings of layers that somebody wrote down as `(weight, bias, activation, omega)`, by name and in their order.

    !!! example
        ```python
        read_chain({"inner": (np.ones((8, 2)), None, "sine", 30.0), "outer": (np.ones((1, 8)), None, "linear", 1.0)})
        ```
    """
    chain = []
    for name, entry in layers.items():
        if len(entry) != 4:
            raise ValueError(f"layers[{name!r}] has {len(entry)} entries; pass (weight, bias, activation, omega)")
        weight, bias, activation, omega = entry
        weight, bias = np.asarray(weight, np.float64), None if bias is None else np.asarray(bias, np.float64)
        if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
            shapes = f"weight has shape {weight.shape} and bias {None if bias is None else bias.shape}"
            raise ValueError(f"layers[{name!r}]: {shapes}; pass (out, in) and (out,)")
        if activation not in get_args(Activation):
            known = ", ".join(get_args(Activation))
            raise ValueError(f"layers[{name!r}]: activation is {activation!r}; it must be one of {known}")
        chain.append(LayerReading(name, weight, bias, activation, float(omega)))
    return chain


def draw_chain(blueprint: Blueprint, rng: np.random.Generator) -> list[LayerReading]:
    """A network drawn from a blueprint, without any framework.

    !!! example
        ```python
        layers = draw_chain(sm20((2, 1), width=64, depth=2), np.random.default_rng(0))
        ```
    """

    def draw(law: Law, shape: tuple[int, ...]) -> np.ndarray:
        standard = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}[law.standard](shape)
        return law.sample(standard, lambda numbers: numbers)

    return [
        LayerReading(
            layer_name(index, len(blueprint.layers)),
            draw(plan.weight, (plan.rows, plan.columns)),
            None if plan.bias is None else draw(plan.bias, (plan.rows,)),
            plan.activation,
            plan.omega,
        )
        for index, plan in enumerate(blueprint.layers)
    ]


def layer_name(index: int, count: int) -> str:
    """What a layer without a name of its own is called: input, hidden 1, …, output."""
    return "input" if index == 0 else "output" if index == count - 1 else f"hidden {index}"


def evaluate_chain(
    layers: Sequence[LayerReading], positions: Float[np.ndarray, "samples in_size"]
) -> Float[np.ndarray, "samples out_size"]:
    """The values of a network at some positions, in float64."""
    h = positions.astype(np.float64)
    for layer in map(_unfold, layers):
        h = _ACTIVATIONS[layer.activation](_preactivation(layer, h))[0]
    return h


def measure_chain(
    layers: Sequence[LayerReading],
    positions: Float[np.ndarray, "samples in_size"],
    values: Float[np.ndarray, "samples out_size"],
    rng: np.random.Generator,
) -> ChainMeasurement:
    """Run a network forth and back over some samples of a field.

    Slopes by the coordinates are exact. The Jacobian J from the first layer on is probed by one vector v of random
    signs at each position, as E‖Jv‖² = ‖J‖².
    """
    unfolded = [_unfold(layer) for layer in layers]
    inputs, slopes, forward = [], [], []
    h, samples = positions.astype(np.float64), len(positions)
    tangents = np.broadcast_to(np.eye(h.shape[1]), (samples, h.shape[1], h.shape[1]))
    input_products = np.zeros(0)
    for index, layer in enumerate(unfolded):
        inputs.append(h)
        z = _preactivation(layer, h)
        h, slope = _ACTIVATIONS[layer.activation](z)
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


def recognize_activation(function: Callable[[np.ndarray], np.ndarray]) -> tuple[Activation, float]:
    """The activation a(ωz) that a function of one number is, told by its values; a `ValueError` if it is none.

    **Arguments:**

    - `function`: maps a float32 array to one of the same shape, entry by entry.

    !!! example
        ```python
        recognize_activation(lambda z: np.sin(30 * z))  # ("sine", 30.0)
        ```
    """
    from scipy.optimize import least_squares

    small = 1e-3
    below, above, one = np.asarray(function(np.array([-small, small, 1.0], np.float32)), np.float64).tolist()
    slope = (above - below) / (2 * small)
    # σ'(0) is 1, but 1/2 for the functions that are z times a gate
    smooth: dict[Activation, float] = {"sine": slope, "tanh": slope, "silu": 2 * slope, "gelu": 2 * slope}
    straight: dict[Activation, float] = {"relu": one, "linear": one}
    for name, guess in (smooth | straight).items():
        if not guess > 0:
            continue
        z = np.linspace(-3, 3, 61, dtype=np.float32) / np.float32(guess)
        found = np.asarray(function(z), np.float64)

        def error(omega: np.ndarray, known=_ACTIVATIONS[name], z=z, found=found) -> np.ndarray:
            return known(omega * z.astype(np.float64))[0] - found

        omega = float(np.format_float_positional(least_squares(error, guess).x[0], 5, fractional=False))
        if np.abs(error(np.array(omega))).max() < 2e-3:  # the two GELUs differ by less; all others by more
            return name, omega
    raise ValueError("the activation is none of sin, tanh, relu, silu, gelu and the identity, of ω times its argument")


def _preactivation(layer: LayerReading, h: np.ndarray) -> np.ndarray:
    z = h @ layer.weight.T
    return layer.omega * (z if layer.bias is None else z + layer.bias)


def _unfold(layer: LayerReading) -> LayerReading:
    """A layer in float64, with sines over cosines written as sines alone: cos z = sin(z + π/2)."""
    weight = layer.weight.astype(np.float64)
    bias = None if layer.bias is None else layer.bias.astype(np.float64)
    if layer.activation != "sincos":
        return LayerReading(layer.name, weight, bias, layer.activation, layer.omega)
    bias = np.zeros(len(weight)) if bias is None else bias
    shifted = np.concatenate([bias, bias + np.pi / 2 / layer.omega])
    return LayerReading(layer.name, np.concatenate([weight, weight]), shifted, "sine", layer.omega)


def _forward_statistics(layer: LayerReading, z: np.ndarray, pair: _Pair, probe: np.ndarray, first_size: int) -> dict:
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


def _relu(z: np.ndarray) -> _Pair:
    return np.maximum(z, 0), (z > 0).astype(np.float64)


def _tanh(z: np.ndarray) -> _Pair:
    value = np.tanh(z)
    return value, 1 - value**2


def _silu(z: np.ndarray) -> _Pair:
    gate = (1 + np.tanh(z / 2)) / 2
    return z * gate, gate * (1 + z * (1 - gate))


def _gelu(z: np.ndarray) -> _Pair:
    """The form with tanh, as JAX has it by default."""
    scale = np.sqrt(2 / np.pi)
    gate = np.tanh(scale * (z + 0.044715 * z**3))
    slope = scale * (1 + 3 * 0.044715 * z**2) * (1 - gate**2)
    return z * (1 + gate) / 2, (1 + gate + z * slope) / 2


_ACTIVATIONS: dict[Activation, Callable[[np.ndarray], _Pair]] = {
    "sine": lambda z: (np.sin(z), np.cos(z)),
    "tanh": _tanh,
    "relu": _relu,
    "silu": _silu,
    "gelu": _gelu,
    "linear": lambda z: (z, np.ones_like(z)),
}
