"""Optimizers: how the parameters of a model move. μP's groups for any optimizer, and the default fit's Muon."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..initialization.moments import Moments
from ..recipe import INPUT_STEP, OFFSET_STEP, OUTPUT_STEP, PHASE_STEP, Units, default_rate
from ..signals.fields import Extent, Field, Grid, Points
from .reading import Chain, Model, read_layers

Kind = Literal["input", "hidden", "output", "input phase", "hidden phase", "offset"]

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

    One rate serves all arrays, widths, signals and units of the data. An ω inside the model's activations changes
    nothing, and each layer may have its own ω and its own width. The steps are those of `uniphase.unit_muon`, in the
    precision of the model, where `torch.optim.Muon` uses bfloat16, no bias correction, and steps that depend on shapes
    alone.

    **Arguments:**

    - `model`: as for `initialize_`. What it freezes stays as it is.
    - `domain`: the field that it is trained on, or for a problem without data the interval `(low, high)` of every
        coordinate.
    - `moments`: of the signal.
    - `lr`: the rate. Default: `uniphase.default_rate`, 0.25 / (hidden layers + 1).

    !!! example
        ```python
        optimizer = UnitMuon(model, field, estimate_moments(field))
        x, y = torch.tensor(field.coordinates()).float(), torch.tensor(field.flat_values()).float()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        wave = prescribe_moments(length_scale=[0.1, 0.1])  # known in advance, as for an equation
        optimizer = UnitMuon(model, [(-1.0, 1.0), (-1.0, 1.0)], wave)
        ```

    ??? cite "Reference"
        Jordan and coauthors, "Muon: an optimizer for hidden layers in neural networks", 2024, in Optax's version.
    """

    def __init__(
        self,
        model: Model,
        domain: Field | Sequence[Extent],
        moments: Moments,
        *,
        lr: float | None = None,
    ):
        chain = read_layers(model)
        lr = default_rate(chain) if lr is None else lr
        if not lr > 0:
            raise ValueError(f"lr is {lr}; it must be positive")
        _require_sizes(chain, domain, moments)
        first = chain.layers[0]
        self._first = (first.weight, first.bias)
        self._omega = {layer.weight: layer.omega for layer in chain.layers}
        self._omega |= {layer.bias: layer.omega for layer in chain.layers if layer.bias is not None}
        units = Units.of(domain, moments, chain.width)
        self._units = Units(*(torch.as_tensor(unit).to(first.weight) for unit in units))
        super().__init__(_groups(model, chain), {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; `closure` as for every optimizer of PyTorch."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        updates = {
            parameter: group["lr"] * self._update(parameter, group["kind"])
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        }
        weight, bias = self._first
        if weight in updates and bias in updates:  # the phase of the center is what the bias moves
            updates[bias] = updates[bias] - updates[weight] @ self._units.center
        for parameter, update in updates.items():
            parameter.sub_(update)
        return loss

    def _update(self, parameter: Tensor, kind: Kind) -> Tensor:
        units, gradient, state = self._units, self._gradient(parameter), self.state[parameter]
        omega, rows = self._omega[parameter], len(parameter)
        if kind == "input":
            scale = INPUT_STEP * math.sqrt(rows) / omega  # the entries of an orthogonal matrix are about 1/√rows
            return scale * _muon(gradient @ units.input_factor, state) @ units.input_factor.T
        if kind == "hidden":
            # A matrix with more rows than columns adds less to each of its outputs.
            return math.sqrt(max(1, rows / parameter.shape[1])) / omega * _muon(gradient, state)
        if kind == "output":
            return OUTPUT_STEP * units.output_factor @ _muon(units.output_factor.T @ gradient, state)
        if kind == "offset":
            return OFFSET_STEP * units.offset * _adam(units.offset * gradient, state)
        return PHASE_STEP / omega * _adam(gradient, state)

    def _gradient(self, parameter: Tensor) -> Tensor:
        """The gradient, for the input weights at a fixed phase of the center."""
        weight, bias = self._first
        assert parameter.grad is not None
        if parameter is weight and bias is not None and bias.grad is not None:
            return parameter.grad - torch.outer(bias.grad, self._units.center)
        return parameter.grad


def _muon(gradient: Tensor, state: dict[str, Any]) -> Tensor:
    """Nesterov's momentum with its bias corrected, made orthogonal."""
    step = state["step"] = state.get("step", 0) + 1
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
    step = state["step"] = state.get("step", 0) + 1
    mean = state["mean"] = _BETAS[0] * state.get("mean", 0) + (1 - _BETAS[0]) * gradient
    square = state["square"] = _BETAS[1] * state.get("square", 0) + (1 - _BETAS[1]) * gradient.square()
    return mean / (1 - _BETAS[0] ** step) / ((square / (1 - _BETAS[1] ** step)).sqrt() + _EPS)


def _groups(model: Model, chain: Chain) -> list[dict[str, Any]]:
    """The parameters by kind."""
    biases: dict[str, Kind] = {"input": "input phase", "hidden": "hidden phase", "output": "offset"}
    kinds: dict[Kind, list[Tensor]] = {}
    for layer in chain.layers:
        kinds.setdefault(layer.role, []).append(layer.weight)
        if layer.bias is not None:
            kinds.setdefault(biases[layer.role], []).append(layer.bias)
    trained = {kind: [tensor for tensor in tensors if tensor.requires_grad] for kind, tensors in kinds.items()}
    known = {tensor for tensors in trained.values() for tensor in tensors}
    if unknown := [name for name, parameter in _parameters(model, chain).items() if parameter not in known]:
        raise ValueError(
            f"the model trains {', '.join(unknown)} besides weights and biases, for which there is no unit; "
            "freeze them with requires_grad_(False)"
        )
    return [{"params": tensors, "kind": kind} for kind, tensors in trained.items() if tensors]


def _parameters(model: Model, chain: Chain) -> dict[str, Tensor]:
    """All that is trained, by name."""
    if isinstance(model, torch.nn.Module):
        named = dict(model.named_parameters())
    else:
        named = {f"{layer.name}.weight": layer.weight for layer in chain.layers}
        named |= {f"{layer.name}.bias": layer.bias for layer in chain.layers if layer.bias is not None}
    return {name: tensor for name, tensor in named.items() if tensor.requires_grad}


def _require_sizes(chain: Chain, domain: Field | Sequence[Extent], moments: Moments) -> None:
    sizes = (chain.in_size, chain.out_size)
    known = {"field": domain} if isinstance(domain, Grid | Points) else {}
    known = known | {"moments": moments}
    for name, other in known.items():
        if sizes != (other.in_size, other.out_size):
            raise ValueError(
                f"{name} has {other.in_size} coordinates and {other.out_size} channels, but the model has {sizes[0]} "
                f"and {sizes[1]}; pass the {name} of the signal that the model is for"
            )
    if not isinstance(domain, Grid | Points) and len(domain) != chain.in_size:
        raise ValueError(
            f"domain is {domain!r}, but the model takes {chain.in_size} coordinates; pass a field, or (low, high) for "
            "each of them"
        )
