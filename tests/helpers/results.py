"""A result of a fit without a framework: its network is a function of positions in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from uniphase.fitting.result import Result
from uniphase.recipe import Recipe
from uniphase.signals.fields import Field
from uniphase.signals.metrics import evaluate


@dataclass(frozen=True, eq=False)
class PlainResult(Result):
    """What a fit gives whose network is a function from positions `(n, in_size)` to values `(n, out_size)`."""

    def _predict(self, field, *, average):
        return self.network(field.coordinates())

    def _render(self, shape, **options):
        raise NotImplementedError

    def _quantize(self, bits):
        raise NotImplementedError

    def _write(self, path, file):
        raise NotImplementedError


def plain_result(field: Field | None, network: Any, **changes: Any) -> PlainResult:
    """A result for a field, or for terms without one, with its prediction."""
    nothing = dict.fromkeys(("metrics", "test_metrics", "moments", "blueprint", "prediction", "test_prediction"))
    done = {"losses": np.geomspace(1.0, 1e-3, 50), "steps": 50, "seconds": 1.5, "seed": 0, "stop": "steps"}
    known = {"network": network, "field": field, "sampling": "points", "recipe": Recipe("muon", 0.1, 0.01, 50, 4096)}
    if field is not None:
        prediction = network(field.coordinates()).reshape(field.values.shape)
        known |= {"prediction": prediction, "metrics": evaluate(prediction, field)}
    return PlainResult(**{**nothing, **done, **known, **changes})
