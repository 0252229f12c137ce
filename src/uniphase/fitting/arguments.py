"""The arguments of `fit`, as both frameworks take and check them."""

import difflib
import inspect
import math
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..initialization.moments import Moments
from ..recipe import Observed
from ..signals.arrays import array
from ..signals.datasets import load
from ..signals.fields import Field, Grid, Points


def keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments of a function that are passed by name."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}


def require_options(options: Mapping[str, Any], known: Collection[str], others: Collection[str], form: str) -> None:
    """Raise an error for options that `fit` does not have, or has only in its other form.

    **Arguments:**

    - `options`: what was passed.
    - `known`, `others`: the options of this form and of the other one.
    - `form`: the other form, e.g. `"fit(signal)"`.
    """
    for name in options:
        if name in others and name not in known:
            raise TypeError(f"{name} is an option of {form} only; leave it out")
        if name not in known:
            closest = " or ".join(difflib.get_close_matches(name, known))
            fix = f"did you mean {closest}?" if closest else f"its options are {', '.join(known)}"
            raise TypeError(f"fit has no option {name!r}; {fix}")


def require_limits(seconds: float | None, target_db: float | None) -> None:
    """Raise an error for a time or a target that cannot be reached."""
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds is {seconds:g}; it must be positive: pass how long to fit, e.g. 60")
    if target_db is not None and not math.isfinite(target_db):
        raise ValueError(f"target_db is {target_db}; it must be finite")


def require_sampling(samples: str) -> None:
    """Raise an error for anything that samples cannot be fitted as."""
    if samples not in ("points", "averages"):
        raise ValueError(f"samples is {samples!r}; it must be 'points' or 'averages'")


def require_channels(network: str, found: int, field: Observed) -> None:
    """The network gives the channels of the field."""
    if found != field.out_size:
        raise ValueError(
            f"the {network} has {counted(found, 'channel')}, but the field has {field.out_size}; draw it from the "
            "moments of the field"
        )


def require_moments(moments: Moments | None, in_size: int, out_size: int) -> None:
    """The moments, if they are given, have the sizes of the field."""
    if moments is not None and (moments.in_size, moments.out_size) != (in_size, out_size):
        raise ValueError(
            f"moments are those of {counted(moments.in_size, 'coordinate')} and "
            f"{counted(moments.out_size, 'channel')}, but the field has {in_size} and {out_size}; pass "
            "its own, or leave them out"
        )


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_field(signal: Any, size: int | None) -> Field:
    """A signal by its name, its file, its array, or already a field."""
    if isinstance(signal, Grid | Points):
        if size is not None:
            raise ValueError(f"size is {size}, but a field is not resized; load the signal at that size")
        return signal
    if isinstance(signal, str | os.PathLike):
        return load(signal, size=size)
    return array(signal, size=size)
