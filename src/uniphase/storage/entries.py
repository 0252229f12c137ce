"""Entries of a network file's header: of the kinds that are written, whoever wrote them.

A file may be damaged, or made to do harm. What is wrong with it is said when it is read, and not where an entry is used
or printed.
"""

import math
from collections.abc import Mapping
from typing import Any

from ..signals.fields import Extent

# The kinds of the entries that no other function makes something of.
_KINDS = {"medium": str, "rate": int | float, "stored": str, "metrics": dict, "bits": int}
_MAPPINGS = ("training", "versions")


def require_kinds(header: Mapping[str, Any]) -> None:
    """Raise an error if an entry of a header is not of its kind.

    !!! example
        ```python
        require_kinds({"rate": 44100.0, "metrics": None, "training": {"seed": 0}})
        ```
    """
    for name, kind in _KINDS.items():
        if header.get(name) is not None and not isinstance(header[name], kind):
            raise ValueError(f"its {name} is {header[name]!r}")
    for name in _MAPPINGS:
        if not isinstance(header.get(name, {}), dict):
            raise ValueError(f"its {name} is {header[name]!r}")
    for metrics in (header.get("metrics"), header.get("training", {}).get("test_metrics")):
        if metrics is not None:
            _require_metrics(metrics)


def _require_metrics(metrics: Any) -> None:
    if not isinstance(metrics, dict):
        raise ValueError(f"its metrics are {metrics!r}")
    for name, value in metrics.items():
        if name != "channels" and value is not None and not isinstance(value, int | float):
            raise ValueError(f"its metric {name} is {value!r}")


def as_extent(name: str, entries: Any) -> Extent:
    """A pair of finite numbers, the lower one first.

    !!! example
        ```python
        as_extent("value_range", [0, 1])  # (0.0, 1.0)
        ```
    """
    low, high = (float(entry) if isinstance(entry, int | float) else math.nan for entry in entries)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"its {name} is {entries!r}")
    return low, high
