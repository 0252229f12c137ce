"""The memory that a fit will take, by the sizes of its arrays."""

import math
import os
from typing import NamedTuple

from ..initialization.blueprint import Blueprint
from ..recipe import DRAWS, Recipe
from ..signals.fields import Field, Grid
from .sampling import block_size

# Measured on a CPU: the compiler and its programs, in bytes; copies of the parameters (before and after a step, at the
# last good state, gradients, momentum, products of the optimizer); arrays of the size of a layer's outputs, for each.
_PROGRAMS, _COPIES, _ACTIVATIONS = 130 << 20, 8, 6
# Metrics are computed in slabs of at most this many samples, in float64, with this many arrays beside the values.
_SLAB, _WINDOWS = 1 << 20, 12
_UNITS = ("B", "kB", "MB", "GB", "TB")


class FitMemory(NamedTuple):
    """The bytes that a fit takes on top of its signal, for what grows with the network or the samples, and all else."""

    network: int
    samples: int
    others: int

    @property
    def total(self) -> int:
        return sum(self)


def fit_memory(field: Field, blueprint: Blueprint, recipe: Recipe, test: Field | None = None) -> FitMemory:
    """The most memory that a fit takes, with the metrics at its end, on top of its signal. An estimate.

    **Arguments:**

    - `field`, `test`: what is fitted, and what is measured beside it.
    - `blueprint`, `recipe`: of the network and of its training.

    !!! example
        ```python
        from uniphase.training.memory import fit_memory

        fit_memory(field, blueprint, default_recipe(field, blueprint)).total / 1e6  # in megabytes
        ```
    """
    width = max(max(plan.rows, plan.columns) for plan in blueprint.layers)
    activations = _ACTIVATIONS * len(blueprint.layers) * min(DRAWS * recipe.batch, block_size(width)) * width
    batch = DRAWS * recipe.batch * (2 + field.in_size + field.out_size)
    measured = [_measuring(each) for each in (field, test) if each is not None]
    samples = 4 * batch + sum(kept for kept, _ in measured) + max(work for _, work in measured)
    return FitMemory(4 * _COPIES * blueprint.parameters, samples, _PROGRAMS + 4 * activations)


def _measuring(field: Field) -> tuple[int, int]:
    """The bytes of a prediction, and those that comparing it takes."""
    slab = min(field.samples, _SLAB)
    similarity = isinstance(field, Grid) and field.missing is None and min(field.shape) >= 3
    return 4 * field.samples * field.out_size, 8 * slab * (2 * field.out_size + (_WINDOWS if similarity else 0))


def free_memory() -> int | None:
    """The bytes that are free for another program, or `None` where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            sizes = dict(line.split(":") for line in file)
        return int(sizes["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return _free_pages()


def _free_pages() -> int | None:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return free if free > 0 else None


def in_words(size: int) -> str:
    """A number of bytes, e.g. 1.2 GB."""
    power = min(4, int(math.log10(max(size, 1)) / 3))
    number = size / 1000**power
    return f"{number:.{0 if number >= 10 or power == 0 else 1}f} {_UNITS[power]}"
