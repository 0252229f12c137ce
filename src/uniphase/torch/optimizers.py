"""The optimizer of the default fit: Muon and Adam, in the units of the signal."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..initialization.moments import Moments
from ..recipe import Scales, default_rate
from .holding import Held, arranged, spread
from .reading import Model
from .units import (
    Domain,
    Kind,
    Part,
    estimated_moments,
    read_chain,
    require_precision,
    require_sizes,
    trained_parameters,
    unit_groups,
)

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of its quintic, which takes singular values to between 0.7 and 1.2
_BETAS = (0.9, 0.95)  # Adam's
_EPS = 1e-8  # of both


class UnitMuon(Optimizer):
    r"""Muon for the weights and Adam for the biases, each in the units of the signal: the optimizer of the default fit.

    One rate serves all arrays, widths, signals and units of the data. A factor ω inside the model's activations, a map
    of its positions or outputs and a final sigmoid change nothing, nor does it matter how the model stores a matrix:
    transposed, as the kernel of a convolution, or with a weight norm, where the matrix itself is stepped and its
    lengths and directions follow. The steps are those of `uniphase.unit_muon`, in the precision of the model, where
    `torch.optim.Muon` uses bfloat16, no bias correction, and steps that depend on shapes alone.

    The norm of hidden weights stays below twice that of their law, √(2·rows)/ω, or below the norm that they have at
    the first step if that is larger. Noise in the gradients would otherwise make them grow as in a random walk.

    **Arguments:**

    - `model`: as for `initialize_`. What it freezes stays as it is. What it trains besides weights and biases is left
        alone, with a warning; `add_param_group` hands it to plain Adam, at a rate of its own.
    - `domain`: the field that it is trained on; or for a problem without data a tensor of positions, `(n, in_size)`, or
        the interval `(low, high)` of every coordinate.
    - `moments`: of the signal. Default: estimated from the field. A problem without data has them prescribed.
    - `lr`: the rate. Default: `uniphase.default_rate`, 0.25 / (hidden layers + 1).
    - `scales`: the size of each kind of step, the bound and the momentum. Default: those of the default fit.

    !!! example
        ```python
        optimizer = UnitMuon(model, field)
        x, y = torch.tensor(field.coordinates()).float(), torch.tensor(field.flat_values()).float()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        wave = prescribe_moments(length_scale=[0.1, 0.1])  # known in advance, as for an equation
        optimizer = UnitMuon(model, [(-1.0, 1.0), (-1.0, 1.0)], wave)
        optimizer = UnitMuon(model, torch.rand(1000, 2), wave)
        ```

    ??? cite "Reference"
        Jordan and coauthors, "Muon: an optimizer for hidden layers in neural networks", 2024, in Optax's version.
    """

    def __init__(
        self,
        model: Model,
        domain: Domain,
        moments: Moments | None = None,
        *,
        lr: float | None = None,
        scales: Scales | None = None,
    ):
        chain = read_chain(model)
        lr = default_rate(chain) if lr is None else lr
        if not lr > 0:
            raise ValueError(f"lr is {lr}; it must be positive")
        if moments is None:
            moments = estimated_moments(domain)
        require_sizes(chain, domain, moments)
        groups = unit_groups(chain, domain, moments)
        _warn_of_others(model, groups)
        super().__init__(groups, {"lr": lr, "scales": (scales or Scales())._asdict()})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters, by plain Adam.

        **Arguments:**

        - `param_group`: `params`, and the rate `lr` in their own units.
        """
        if "kind" not in param_group:
            if "lr" not in param_group:
                raise ValueError(
                    "the new group has no lr, and that of UnitMuon is for layers; pass a rate for Adam, e.g. "
                    '{"params": [...], "lr": 1e-3}'
                )
            super().add_param_group({**param_group, "kind": "other", "norm": None})
            added = self.param_groups[-1]
            part = {"kind": "other", "omega": 1.0, "units": [], "index": None}
            added["parts"] = [[part] for _ in added["params"]]
        else:
            super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; `closure` as for every optimizer of PyTorch."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found = [each for group in self.param_groups for each in self._pieces(group)]
        pieces = [piece for _, of_parameter in found for piece in of_parameter]
        weight, bias = _piece(pieces, "input"), _piece(pieces, "input phase")
        steps: dict[int, Tensor] = {}
        for piece in pieces:
            gradient = piece.gradient
            if piece is weight and bias is not None:  # at a fixed phase of the center
                gradient = gradient - torch.outer(bias.gradient, piece.units[0])
            steps[id(piece)] = piece.rate * _step(piece, gradient)
        if weight is not None and bias is not None:  # the phase of the center is what the bias moves
            steps[id(bias)] = steps[id(bias)] - steps[id(weight)] @ weight.units[0]
        for held, of_parameter in found:
            spreads = [spread(steps[id(each)], each.part["index"], held.parameter) for each in of_parameter]
            held.subtract_(spreads[0] if len(spreads) == 1 else torch.stack(spreads).sum(dim=0))
        return loss

    def _pieces(self, group: dict[str, Any]) -> Iterator[tuple[Held, list["_Piece"]]]:
        """The parameters of a group that have gradients, with what layers use of each."""
        for parameter, parts in zip(group["params"], group["parts"], strict=False):  # lengths have no part of their own
            if parameter.grad is None:
                continue
            require_precision(parameter)
            held = Held(parameter) if group["norm"] is None else Held(parameter, group["params"][1], group["norm"])
            numbers, gradient, state = held.numbers(), held.gradient(), self.state[parameter]
            yield (
                held,
                [
                    _Piece(
                        part,
                        arranged(numbers, part["index"]),
                        arranged(gradient, part["index"]),
                        state if len(parts) == 1 else state.setdefault(str(number), {}),
                        group["lr"],
                        Scales(**group["scales"]),
                    )
                    for number, part in enumerate(parts)
                ],
            )


class _Piece(NamedTuple):
    """What a layer uses of a parameter, with what its step depends on."""

    part: Part
    numbers: Tensor
    gradient: Tensor
    state: dict[str, Any]
    rate: Any
    scales: Scales

    @property
    def units(self) -> list[Tensor]:
        return [unit.to(self.numbers) for unit in self.part["units"]]


def _piece(pieces: Sequence[_Piece], kind: Kind) -> _Piece | None:
    """The one piece of a kind."""
    return next((piece for piece in pieces if piece.part["kind"] == kind), None)


def _step(piece: _Piece, gradient: Tensor) -> Tensor:
    """The step of one piece at the rate 1. A factor ω on what it computes makes the step smaller by as much."""
    kind, omega, units, state, scales = piece.part["kind"], piece.part["omega"], piece.units, piece.state, piece.scales
    rows = len(gradient) if gradient.ndim else 1
    if kind == "input":
        _, factor = units
        scale = scales.input * math.sqrt(rows) / omega  # the entries of an orthogonal matrix are about 1/√rows
        return scale * _muon(gradient @ factor, state, scales.momentum) @ factor.T
    if kind == "hidden":
        # A matrix with more rows than columns adds less to each of its outputs.
        step = math.sqrt(max(1, rows / gradient.shape[1])) / omega * _muon(gradient, state, scales.momentum)
        return _bounded(step, piece.numbers, state, scales.growth * math.sqrt(2 * rows) / omega)
    if kind == "output":
        (factor,) = units
        return scales.output / omega * factor @ _muon(factor.T @ gradient, state, scales.momentum)
    if kind == "offset":
        (deviation,) = units
        return scales.offset / omega * deviation * _adam(deviation * gradient, state)
    return (1.0 if kind == "other" else scales.phase / omega) * _adam(gradient, state)


def _bounded(step: Tensor, matrix: Tensor, state: dict[str, Any], bound: float) -> Tensor:
    """A step that keeps the norm of a matrix below a bound, or below that of the first one if it is larger."""
    norm = torch.linalg.matrix_norm(matrix)
    largest = state["bound"] = state.get("bound", norm.clamp(min=bound)).to(norm)
    # the matrix moves against the step, and grows by this multiple of itself
    growth = -(step * matrix).sum() / norm.square()
    back = growth.clamp(min=0) + (1 - largest / norm)  # a finite step along a tangent enlarges, too
    return step + torch.where(norm > largest, back, 0.0) * matrix


def _muon(gradient: Tensor, state: dict[str, Any], beta: float) -> Tensor:
    """Nesterov's momentum with its bias corrected, made orthogonal."""
    step = _count(state)
    momentum = state["momentum"] = beta * state.get("momentum", 0) + (1 - beta) * gradient
    ahead = beta * momentum / (1 - beta ** (step + 1)) + (1 - beta) * gradient / (1 - beta**step)
    return _orthogonal(ahead)


def _orthogonal(matrix: Tensor) -> Tensor:
    """Five of Newton and Schulz's iterations: a matrix of the same singular vectors, with singular values around 1."""
    if matrix.shape[0] > matrix.shape[1]:
        return _orthogonal(matrix.T).T
    a, b, c = _COEFFICIENTS
    x = matrix / (torch.linalg.matrix_norm(matrix) + _EPS)
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


def _adam(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    step = _count(state)
    mean = state["mean"] = _BETAS[0] * state.get("mean", 0) + (1 - _BETAS[0]) * gradient
    square = state["square"] = _BETAS[1] * state.get("square", 0) + (1 - _BETAS[1]) * gradient.square()
    return mean / (1 - _BETAS[0] ** step) / ((square / (1 - _BETAS[1] ** step)).sqrt() + _EPS)


def _count(state: dict[str, Any]) -> Tensor:
    """The number of this step. A tensor, as a program that is compiled has each Python number in its code."""
    state["step"] = state.get("step", torch.zeros((), dtype=torch.float64, device="cpu")) + 1
    return state["step"]


def _warn_of_others(model: Model, groups: list[dict[str, Any]]) -> None:
    known = {id(tensor) for group in groups for tensor in group["params"]}
    others = [name for name, tensor in trained_parameters(model).items() if id(tensor) not in known]
    if others:
        warnings.warn(
            f"the model trains {', '.join(others)} besides weights and biases, for which UnitMuon has no unit: it "
            'leaves them as they are; train them with add_param_group({"params": [...], "lr": 1e-3}), or freeze them '
            "with requires_grad_(False)",
            stacklevel=3,
        )
