"""What fits of all frameworks ask of the samples of a field."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..initialization.moments import Moments
from ..recipe import Recipe
from ..signals.fields import Field, Grid, Sampling
from .plan import FallingPlan, Progress


def loss_unit(moments: Moments) -> float:
    """The variance over all samples and channels: what the best constant has as its mean squared error."""
    return float(np.trace(moments.regularized_covariance)) / moments.out_size + float(np.var(moments.mean))


def field_identity(field: Field) -> tuple[Any, ...]:
    """What tells a field from others."""
    if isinstance(field, Grid):
        return field.shape, field.extents, field.align, field.flat_values()
    return field.positions, field.flat_values()


@dataclass(frozen=True, eq=False)
class FieldSamples:
    """The samples of a field, as a fit observes them.

    - `field`: the samples.
    - `sampling`: what they are: values at points, or averages over cells.
    - `moments`: of the field, without noise.
    - `noise`: its standard deviation.
    """

    field: Field
    sampling: Sampling
    moments: Moments
    noise: float

    @property
    def variance(self) -> float:
        """The unit of the loss."""
        return loss_unit(self.moments)

    def plan(
        self,
        recipe: Recipe,
        seconds: float | None,
        target_db: float | None,
        callback: Callable[[Progress], Any] | None,
        network: Callable[[Any], Any],
    ) -> FallingPlan:
        """The plan of a fit to these samples alone; `network` makes one of parameters, to be looked at."""
        noise = self.noise**2 / self.variance if self.noise > 0 else -math.inf
        unit, seen = self.variance, self.field.value_range
        return FallingPlan(recipe, seconds, target_db, unit, noise, seen, True, callback, network)

    def identity(self) -> tuple[Any, ...]:
        """What tells these samples from others."""
        return self.sampling, self.noise, self.variance, field_identity(self.field)
