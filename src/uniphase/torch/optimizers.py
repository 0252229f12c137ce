"""Optimizers: how the parameters of a model move. μP's groups for any optimizer, and the default fit's Muon."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..initialization.moments import Moments
from ..recipe import INPUT_STEP, OFFSET_STEP, OUTPUT_STEP, PHASE_STEP, default_rate
from .reading import Chain, Model, read_layers
from .units import Domain, Kind, estimated_moments, read_chain, require_precision, require_sizes, unit_groups

_BETA = 0.95  # Muon's momentum
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of its quintic, which takes singular values to between 0.7 and 1.2
_BETAS = (0.9, 0.95)  # Adam's
_EPS = 1e-8  # of both


def param_groups(model: Model, lr: float, base_width: int) -> list[dict[str, Any]]:
    """Groups for an optimizer whose best rate then changes little with the width (μP).

    Hidden matrices and the output weights get the rate `lr · base_width / width`; the input weights, the biases and
    all else that is trained get `lr`.

    **Arguments:**

    - `model`: as for `initialize_`.
    - `lr`: the rate that was found best at `base_width`.
    - `base_width`: where it was found.

    !!! example
        ```python
        optimizer = torch.optim.Adam(param_groups(model, 1e-3, base_width=64))
        ```

    ??? cite "Reference"
        Yang and coauthors, "Tensor programs V: tuning large neural networks via zero-shot hyperparameter transfer",
        NeurIPS 2021, in the form for Adam that the paper uses.
    """
    if not (lr > 0 and base_width > 0):
        raise ValueError(f"lr is {lr} and base_width is {base_width}; both must be positive")
    chain = read_layers(model)
    scaled = [layer.weight for layer in chain.layers if layer.role != "input" and layer.weight.requires_grad]
    others = [p for p in _parameters(model, chain).values() if all(p is not weight for weight in scaled)]
    return [
        {"params": others, "lr": lr, "name": "input weights and biases"},
        {"params": scaled, "lr": lr * base_width / chain.width, "name": "hidden and output weights"},
    ]


class UnitMuon(Optimizer):
    r"""Muon for the weights and Adam for the biases, each in the units of the signal: the optimizer of the default fit.

    One rate serves all arrays, widths, signals and units of the data. A factor ω inside the model's activations or
    behind its output changes nothing, and each layer may have its own ω and its own width. The steps are those of
    `uniphase.unit_muon`, in the precision of the model, where `torch.optim.Muon` uses bfloat16, no bias correction, and
    steps that depend on shapes alone.

    **Arguments:**

    - `model`: as for `initialize_`. What it freezes stays as it is. What it trains besides weights and biases is left
        alone, with a warning; `add_param_group` hands it to plain Adam, at a rate of its own.
    - `domain`: the field that it is trained on; or for a problem without data a tensor of positions, `(n, in_size)`, or
        the interval `(low, high)` of every coordinate.
    - `moments`: of the signal. Default: estimated from the field. A problem without data has them prescribed.
    - `lr`: the rate. Default: `uniphase.default_rate`, 0.25 / (hidden layers + 1).

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
    ):
        chain = read_chain(model)
        lr = default_rate(chain) if lr is None else lr
        if not lr > 0:
            raise ValueError(f"lr is {lr}; it must be positive")
        if moments is None:
            moments = estimated_moments(domain)
        require_sizes(chain, domain, moments)
        groups = unit_groups(chain, domain, moments)
        _warn_of_others(model, chain, groups)
        super().__init__(groups, {"lr": lr})

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
            param_group = {**param_group, "kind": "other", "omega": 1.0, "units": ()}
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; `closure` as for every optimizer of PyTorch."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        weight, bias = self._moving("input"), self._moving("input phase")
        updates: list[tuple[Tensor, Tensor]] = []
        shift: Tensor | None = None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                require_precision(parameter)
                gradient, units = parameter.grad, [unit.to(parameter) for unit in group["units"]]
                if parameter is weight and bias is not None:  # at a fixed phase of the center
                    gradient = gradient - torch.outer(bias.grad, units[0])
                update = group["lr"] * _update(group["kind"], group["omega"], units, gradient, self.state[parameter])
                if parameter is weight:
                    shift = update @ units[0]
                updates.append((parameter, update))
        for parameter, update in updates:  # the phase of the center is what the bias moves
            parameter.sub_(update if parameter is not bias or shift is None else update - shift)
        return loss

    def _moving(self, kind: Kind) -> Any:
        """The one parameter of a kind, if it has a gradient."""
        found = [parameter for group in self.param_groups if group["kind"] == kind for parameter in group["params"]]
        return found[0] if found and found[0].grad is not None else None


def _update(kind: Kind, omega: float, units: Sequence[Tensor], gradient: Tensor, state: dict[str, Any]) -> Tensor:
    """The step of one parameter at the rate 1. A factor ω on what it computes makes the step smaller by as much."""
    rows = len(gradient) if gradient.ndim else 1
    if kind == "input":
        _, factor = units
        scale = INPUT_STEP * math.sqrt(rows) / omega  # the entries of an orthogonal matrix are about 1/√rows
        return scale * _muon(gradient @ factor, state) @ factor.T
    if kind == "hidden":
        # A matrix with more rows than columns adds less to each of its outputs.
        return math.sqrt(max(1, rows / gradient.shape[1])) / omega * _muon(gradient, state)
    if kind == "output":
        (factor,) = units
        return OUTPUT_STEP / omega * factor @ _muon(factor.T @ gradient, state)
    if kind == "offset":
        (spread,) = units
        return OFFSET_STEP / omega * spread * _adam(spread * gradient, state)
    return (1.0 if kind == "other" else PHASE_STEP / omega) * _adam(gradient, state)


def _muon(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    """Nesterov's momentum with its bias corrected, made orthogonal."""
    step = _count(state)
    momentum = state["momentum"] = _BETA * state.get("momentum", 0) + (1 - _BETA) * gradient
    ahead = _BETA * momentum / (1 - _BETA ** (step + 1)) + (1 - _BETA) * gradient / (1 - _BETA**step)
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


def _parameters(model: Model, chain: Chain) -> dict[str, Tensor]:
    """All that is trained, by name."""
    if isinstance(model, torch.nn.Module):
        named = dict(model.named_parameters())
    else:
        named = {f"{layer.name}.weight": layer.weight for layer in chain.layers}
        named |= {f"{layer.name}.bias": layer.bias for layer in chain.layers if layer.bias is not None}
    return {name: tensor for name, tensor in named.items() if tensor.requires_grad}


def _warn_of_others(model: Model, chain: Chain, groups: list[dict[str, Any]]) -> None:
    known = {id(tensor) for group in groups for tensor in group["params"]}
    others = [name for name, tensor in _parameters(model, chain).items() if id(tensor) not in known]
    if others:
        warnings.warn(
            f"the model trains {', '.join(others)} besides weights and biases, for which UnitMuon has no unit: it "
            'leaves them as they are; train them with add_param_group({"params": [...], "lr": 1e-3}), or freeze them '
            "with requires_grad_(False)",
            stacklevel=3,
        )
