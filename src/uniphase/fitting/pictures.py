"""Pictures of what was fitted: the domain of a field as a camera would see it, in either framework."""

from collections.abc import Sequence
from typing import Any

from ..signals.fields import Extent
from ..signals.views import as_shape, camera_nodes, intervals
from ..storage.network_file import Domain


def camera_options(
    domain: Domain,
    shape: Sequence[int],
    *,
    region: Extent | Sequence[Extent] | None = None,
    average: bool | None = None,
    nodes: int | Sequence[int] | None = None,
) -> dict[str, Any]:
    """The options by which `render` shows a domain as a camera would see it.

    **Arguments:**

    - `domain`: where the field was sampled, and as what.
    - `shape`, `region`: as for `render`.
    - `average`: whether to take means over cells. Default: by `camera_nodes`.
    - `nodes`: for these means, as for `render`. Default: as many as cells of their size need.
    """
    axes = len(domain.extents)
    shape = as_shape(shape, axes)
    spans = intervals("region", domain.extents if region is None else region, axes)
    fitted = shape if domain.shape is None else domain.samples_within(spans)  # scattered points have no larger cells
    needed = camera_nodes(fitted, shape, "averages" if average else domain.sampling)
    if average:
        needed = tuple(max(4, n) for n in needed)
    return {
        "extents": domain.extents,
        "align": domain.align,
        "region": spans,
        "average": max(needed) > 1 if average is None else average,
        "nodes": needed if nodes is None else nodes,
    }
