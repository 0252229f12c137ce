"""The result of a fit."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..fitting.plan import Stop
from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments
from ..jax.files import save_network
from ..jax.render import predict, render
from ..recipe import Recipe
from ..signals.fields import Field, Grid, Sampling
from ..signals.metrics import Metrics
from ..signals.paths import FilePath
from ..signals.views import camera_nodes
from ..storage.network_file import NetworkFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Fit:
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

    !!! example
        ```python
        result = fit("camera", size=16, steps=20, progress=False)
        result.render((64, 64))
        result.save("camera.uniphase")
        result.plot().savefig("camera.png")
        ```
    """

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

    def render(self, shape: Sequence[int] | None = None, **options: Any) -> Float[np.ndarray, "..."]:
        """The network on a grid over the domain of the field, as a camera would see it.

        Samples are averages over their cells if these are larger than those of the field, or as large and the field was
        fitted as averages; otherwise they are values at points.

        **Arguments:**

        - `shape`: samples along each axis. Default: those of the field.
        - `options`: `region`, `derivative`, `average` and `nodes`, as for `uniphase.render`.
        """
        field = self._require_field("render")
        if isinstance(field, Grid):
            shape = field.shape if shape is None else shape
            if not {"average", "region"} & set(options):
                options["nodes"] = camera_nodes(field.shape, shape, self.sampling)
                options["average"] = max(options["nodes"]) > 1
            return render(self.network, shape, extents=field.extents, align=field.align, **options)
        if shape is None:
            raise ValueError("shape is None, but scattered points have none; pass the samples along each axis")
        box = list(zip(field.positions.min(axis=0).tolist(), field.positions.max(axis=0).tolist(), strict=True))
        return render(self.network, shape, extents=box, **options)

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
        )
        save_network(path, file)

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
            prediction = predict(self.network, field, average=self.sampling == "averages")
        shape = surface_shape(field)
        surface = None if shape is None else self.render(shape)
        return preview_figure(field, prediction, self.losses, self.metrics, "", surface=surface)

    def _require_field(self, method: str) -> Field:
        if self.field is None:
            raise ValueError(
                f"{method} needs a field, and none was among the terms; call uniphase.render(result.network, shape)"
            )
        return self.field
