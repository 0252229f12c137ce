"""What fits of all frameworks ask of the samples of a field."""

from typing import Any

import numpy as np

from ..initialization.moments import Moments
from ..signals.fields import Field, Grid, Sampling

# A loss that is as good as zero. That of averages scatters around zero.
LEAST_LOSS: dict[Sampling, float] = {"points": 0.0, "averages": 0.01}


def loss_unit(moments: Moments) -> float:
    """The variance over all samples and channels: what the best constant has as its mean squared error."""
    return float(np.trace(moments.regularized_covariance)) / moments.out_size + float(np.var(moments.mean))


def field_identity(field: Field) -> tuple[Any, ...]:
    """What tells a field from others."""
    if isinstance(field, Grid):
        return field.shape, field.extents, field.align, field.flat_values()
    return field.positions, field.flat_values()
