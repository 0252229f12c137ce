"""The result of a fit in JAX."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..fitting.result import Result
from ..jax.files import quantized_network, save_network
from ..jax.network import CoordinateMLP
from ..jax.render import predict, render
from ..signals.fields import Field
from ..signals.paths import FilePath
from ..storage.network_file import NetworkFile


@dataclass(frozen=True, eq=False)
class Fit(Result):
    """The result of `fit`.

    - `network`: the fitted network.
    - `metrics`, `test_metrics`: over all samples of the field, and of the test field if there was one. `None` if no
        field was among the terms.
    - `losses`: the mean squared error of every step, before its update and on its batch. With terms other than the
        values of one field: the sum of their losses, each in its own units.
    - `stop`: why it ended: `"steps"`, `"seconds"`, `"target"`, or `"noise"` if only noise was left to learn.
    - `steps`, `seconds`, `recipe`, `seed`: what was done.
    - `field`, `moments`, `blueprint`: what it was fitted to, and what the network was drawn from, where that is known.
    - `sampling`: `"averages"` if the samples were fitted as averages, otherwise `"points"`. The metrics and the
        prediction are measured in the same kind.
    - `prediction`, `test_prediction`: the values of the network at the samples of the field, and of the test field;
        `None` if they are too many to be kept.
    - `bits`, `exact_metrics`: of a fit that was `quantized`, the bits, and the metrics before.

    !!! example
        ```python
        result = fit("camera", size=16, steps=20, progress=False)
        result.render((64, 64))
        result.save("camera.uniphase")
        result.plot().savefig("camera.png")
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
