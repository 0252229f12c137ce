"""The result of a fit in PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..fitting.result import Result
from ..signals.fields import Field
from ..signals.paths import FilePath
from ..storage.network_file import NetworkFile
from .files import quantized_network, save_network
from .network import CoordinateMLP
from .render import predict, render


@dataclass(frozen=True, eq=False)
class Fit(Result):
    """The result of `uniphase.torch.fit`.

    - `network`: the fitted model, the same object that was passed.
    - `metrics`, `test_metrics`: over all samples of the field, and of the test field if there was one.
    - `losses`: the mean squared error of every step, before its update and on its batch.
    - `stop`: why it ended: `"steps"`, `"seconds"`, `"target"`, or `"noise"` if only noise was left to learn.
    - `steps`, `seconds`, `recipe`, `seed`: what was done.
    - `field`, `moments`, `blueprint`: what it was fitted to, and what the model was drawn from, where that is known.
    - `sampling`: `"averages"` if the samples were fitted as averages, otherwise `"points"`. The metrics and the
        prediction are measured in the same kind.
    - `prediction`, `test_prediction`: the values of the model at the samples of the field, and of the test field, as
        NumPy arrays; `None` if they are too many to be kept.
    - `bits`, `exact_metrics`: of a fit that was `quantized`, the bits, and the metrics before.

    `render`, `save`, `quantized` and `plot` are those of `uniphase.Fit`. A file holds a `CoordinateMLP`; other models
    are saved by `torch.save(result.network.state_dict(), path)`.

    !!! example
        ```python
        result = fit("camera", size=16, steps=20, progress=False)
        result.render((64, 64))
        result.save("camera.uniphase")
        ```
    """

    def _render(self, shape: Sequence[int], **options: Any) -> np.ndarray:
        return render(self.network, shape, **options)

    def _predict(self, field: Field, *, average: bool) -> np.ndarray:
        return predict(self.network, field, average=average)

    def _quantize(self, bits: int) -> CoordinateMLP:
        return quantized_network(self.network, bits)

    def _write(self, path: FilePath, file: NetworkFile[Any]) -> None:
        save_network(path, file)
