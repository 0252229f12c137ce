"""The result of a fit, whatever the framework."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float

from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments
from ..recipe import Recipe
from ..signals.fields import Field, Grid, Sampling
from ..signals.metrics import Metrics, evaluate
from ..signals.paths import FilePath
from ..storage.network_file import Domain, NetworkFile
from ..storage.structure import read_structure
from .pictures import camera_options
from .plan import Stop
from .summary import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AnyResult = TypeVar("AnyResult", bound="Result")

# Predictions of more numbers are not kept with a fit.
_KEPT = 1 << 25


@dataclass(frozen=True, eq=False)
class Result(ABC):
    """What a fit of any framework gives; `uniphase.Fit` and `uniphase.torch.Fit` say what its parts are."""

    network: Any
    metrics: Metrics | None
    test_metrics: Metrics | None
    losses: Float[np.ndarray, " steps"]
    stop: Stop
    steps: int
    seconds: float
    recipe: Recipe
    seed: int
    field: Field | None
    sampling: Sampling
    moments: Moments | None
    blueprint: Blueprint | None
    prediction: np.ndarray | None
    test_prediction: np.ndarray | None
    bits: int | None = None
    exact_metrics: Metrics | None = None

    def render(self, shape: Sequence[int] | None = None, **options: Any) -> Float[np.ndarray, "..."]:
        """The network on a grid over the domain of the field, as a camera would see it.

        Samples are averages over their cells if these are larger than those of the field, or as large and the field was
        fitted as averages; otherwise they are values at points.

        **Arguments:**

        - `shape`: samples along each axis. Default: those of the field.
        - `options`: `region` and `derivative` as for `uniphase.render`; `average=True` or `average=False` in place of
            the choice above, and `nodes` along each axis of a cell in place of as many as it needs.
        """
        domain = Domain.of(self._require_field("render"), self.sampling)
        shape = domain.shape if shape is None else shape
        if shape is None:
            raise ValueError("shape is None, but scattered points have none; pass the samples along each axis")
        camera = {key: options.pop(key) for key in ("region", "average", "nodes") if key in options}
        return self._render(shape, **camera_options(domain, shape, **camera), **options)

    def save(self, path: FilePath, *, training: dict[str, Any] | None = None) -> None:
        """Write the network to a `.uniphase` file, which `load_network` reads.

        **Arguments:**

        - `path`: where to.
        - `training`: what else to keep about how it was made, as JSON can hold it.
        """
        notes = {
            "recipe": dataclasses.asdict(self.recipe),
            "seed": self.seed,
            "steps": self.steps,
            "seconds": self.seconds,
            "stop": self.stop,
            "test_metrics": None if self.test_metrics is None else self.test_metrics.to_dict(),
        }
        file = NetworkFile.of(
            self.network,
            self._require_field("save"),
            blueprint=self.blueprint,
            moments=self.moments,
            metrics=self.metrics,
            training={**(training or {}), **notes},
            sampling=self.sampling,
            bits=self.bits,
        )
        self._write(path, file)

    def quantized(self: AnyResult, bits: int, *, test: Field | None = None) -> AnyResult:
        """The fit with its hidden matrices rounded to fewer bits, for a smaller file, and measured again if it was.

        **Arguments:**

        - `bits`: 8 or 16, as for `NetworkFile`.
        - `test`: the test field, if there was one.
        """
        field = self._require_field("quantized")
        _require_layers(self.network)
        rounded = dataclasses.replace(self, network=self._quantize(bits))
        changes: dict[str, Any] = {"bits": bits, "exact_metrics": self.metrics}
        for prefix, seen in (("", field), ("test_", test)):
            if seen is not None and self.metrics is not None:
                average = self.sampling == "averages" and isinstance(seen, Grid)
                prediction = rounded._predict(seen, average=average)
                kept = getattr(self, f"{prefix}prediction") is not None
                changes |= {f"{prefix}metrics": evaluate(prediction, seen)}
                changes |= {f"{prefix}prediction": prediction if kept else None}
        return dataclasses.replace(rounded, **changes)

    def plot(self) -> "Figure":
        """A figure of the field, the fit, the error and the losses. It needs matplotlib."""
        from ..plots.drawing import require_matplotlib
        from ..plots.preview import preview_figure
        from ..plots.scatter import surface_shape

        require_matplotlib()
        field = self._require_field("plot")
        assert self.metrics is not None
        prediction = self.prediction
        if prediction is None:
            prediction = self._predict(field, average=self.sampling == "averages")
        shape = surface_shape(field)
        surface = None if shape is None else self.render(shape)
        return preview_figure(field, prediction, self.losses, self.metrics, "", surface=surface)

    def _repr_html_(self) -> str:
        return summary(self)

    @abstractmethod
    def _render(self, shape: Sequence[int], **options: Any) -> np.ndarray: ...

    @abstractmethod
    def _predict(self, field: Field, *, average: bool) -> np.ndarray: ...

    @abstractmethod
    def _quantize(self, bits: int) -> Any: ...

    @abstractmethod
    def _write(self, path: FilePath, file: NetworkFile[Any]) -> None: ...

    def _require_field(self, method: str) -> Field:
        if self.field is None:
            raise ValueError(
                f"{method} needs a field, and none was among the terms; call uniphase.render(result.network, shape)"
            )
        return self.field


def kept(prediction: np.ndarray | None) -> np.ndarray | None:
    """A prediction, unless it has too many numbers to be kept with a fit."""
    return prediction if prediction is not None and prediction.size <= _KEPT else None


def _require_layers(network: Any) -> None:
    """Raise an error for a network of any framework whose matrices are not known."""
    try:
        read_structure(network)
    except ValueError as error:
        raise ValueError(f"the network is a {type(network).__name__}, but only a CoordinateMLP is quantized") from error
