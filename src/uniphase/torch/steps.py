"""Steps: a model is moved by an optimizer, and its state is kept for the loop to go back to."""

import copy
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from ..recipe import BATCH, CALM
from ..signals.paths import FilePath, atomic_path, reading
from .evaluation import evaluate_rows
from .sampling import Batch, Batches

_STATE = ("a training state", "get a whole copy, or start the run anew")

Tensors = dict[str, Any]


class ModelSteps:
    """The steps of a model, for the loop. The model itself moves; what the loop gets are copies of its state.

    **Arguments:**

    - `model`, `optimizer`: what moves, and how. The rates of the optimizer are multiplied by the factors of the loop.
    - `batches`: what the losses are drawn from.
    - `variance`: the unit of the loss.
    """

    def __init__(self, model: nn.Module, optimizer: Optimizer, batches: Batches, variance: float):
        self.model, self.optimizer, self.batches, self.variance = model, optimizer, batches, variance
        self._rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._current: Any = None

    def __call__(
        self, parameters: Tensors, optimizer: Tensors, factors: np.ndarray, first: int, count: int
    ) -> tuple[Tensors, Tensors, Float[np.ndarray, " count"]]:
        self.go_to(parameters, optimizer)
        try:
            losses = [self._step(first + i, float(factors[i])) for i in range(count)]
        finally:
            self._current = None
            self._set_rates(1.0)
        return *self.snapshot(), torch.stack(losses).double().cpu().numpy()

    def snapshot(self) -> tuple[Tensors, Tensors]:
        """Copies of all that the steps change."""
        self._current = copy.deepcopy(dict(self.model.state_dict()))
        return self._current, copy.deepcopy(self.optimizer.state_dict())

    def go_to(self, parameters: Tensors, optimizer: Tensors) -> None:
        """Put the model and the optimizer into a state that was copied, unless they are in it."""
        if self._current is not parameters:
            self.model.load_state_dict(parameters)
            self.optimizer.load_state_dict(copy.deepcopy(optimizer))  # which keeps what it is given
            self._current = parameters

    def _set_rates(self, factor: float) -> None:
        """The optimizer's own rates, multiplied by a factor."""
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            if isinstance(group["lr"], Tensor):  # as for steps that are compiled
                group["lr"].fill_(factor * rate)
            else:
                group["lr"] = factor * rate

    def _step(self, number: int, factor: float) -> Tensor:
        batch = self.batches.draw(number)
        self._set_rates(factor)

        def closure() -> Tensor:  # an optimizer with a line search calls it again
            self.model.zero_grad()
            return loss_and_gradients(self.model, batch, self.variance)

        return cast(Tensor, self.optimizer.step(cast(Any, closure))).detach()


def loss_and_gradients(model: nn.Module, batch: Batch, variance: float) -> Float[Tensor, ""]:
    """The mean loss of a batch in units of the variance; its gradients are added to those of the parameters.

    For two opposite pairs of positions in a cell it is made of the errors of both means, as for `uniphase.Averages`.
    """
    total = torch.zeros((), dtype=batch.values.dtype, device=batch.values.device)
    for start in range(0, len(batch), BATCH):  # at once, a large batch would take gigabytes
        values, positions = (part[start : start + BATCH] for part in batch)
        n, draws, in_size = positions.shape
        outputs = evaluate_rows(model, positions.reshape(n * draws, in_size)).reshape(n, draws, -1)
        pairs = outputs.chunk(2, dim=1) if draws > 1 else (outputs, outputs)
        one, other = (pair.mean(dim=1) - values for pair in pairs)
        squares = ((one + other) / 2).square() - (1 - CALM) * ((one - other) / 2).square()
        loss = squares.mean(dim=1).sum() / (len(batch) * variance)
        loss.backward()
        total += loss.detach()
    return total


class TensorFiles:
    """States as files of PyTorch, read without running any code of theirs."""

    def save(self, path: FilePath, tree: Any, header: Mapping[str, Any]) -> None:
        parameters, optimizer, losses = tree
        state = {"parameters": parameters, "optimizer": optimizer, "losses": torch.from_numpy(losses)}
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            torch.save({"header": dict(header), **state}, stream)

    def load(self, path: FilePath, like: Any) -> tuple[Any, dict[str, Any]]:
        with reading(path, *_STATE):
            state = torch.load(path, map_location="cpu", weights_only=True)
            tree = state["parameters"], state["optimizer"], state["losses"].numpy()
            header = state["header"]
        ours, theirs = (_shapes(each[0], each[2]) for each in (like, tree))
        if ours != theirs:
            raise ValueError(
                f"{path}: the checkpoint has other tensors or steps than this run; resume with the settings of the "
                "saved run"
            )
        return tree, header


def _shapes(parameters: Tensors, losses: np.ndarray) -> dict[str, Any]:
    return {name: tuple(tensor.shape) for name, tensor in parameters.items()} | {"losses": losses.shape}
