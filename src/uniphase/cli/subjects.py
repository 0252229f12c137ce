"""A signal with all that was chosen for it: as it is fitted, tested and drawn, its network and its recipe."""

import dataclasses
import math
import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import numpy as np

from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments, estimate_moments
from ..initialization.schemes import get_scheme
from ..jax.network import CoordinateMLP
from ..jax.render import render
from ..recipe import Optimizer, Recipe, default_rate, default_recipe, default_size, paper_recipe
from ..signals.datasets import load
from ..signals.fields import Align, Grid, axis_coordinates
from ..signals.images import Space

# Signals of more samples are tested only if a size is asked for, and drawn with some of their samples left out.
MANY_SAMPLES = 1 << 22


@dataclass(frozen=True)
class Options:
    """What may be chosen for a fit; whatever is `None` follows from the signal.

    **Arguments:**

    - `recipe`: the rule that gives all the rest: that of this package, or the paper's protocol.
    - `width`, `depth`: of the network.
    - `steps`, `optimizer`, `lr`, `batch`: entries of the `Recipe`.
    - `size`, `space`, `align`, `axes`: how to load the signal, as for `load`.
    - `eval_size`: the size at which to load the signal again for a test. Default: as stored, if `size` is less.
    """

    recipe: Literal["default", "paper"] = "default"
    width: int | None = None
    depth: int | None = None
    steps: int | None = None
    optimizer: Optimizer | None = None
    lr: float | None = None
    batch: int | None = None
    size: int | None = None
    eval_size: int | None = None
    space: Space | None = None
    align: Align | None = None
    axes: int | None = None


class Subject(NamedTuple):
    """A signal as it is fitted, and as it is tested."""

    field: Grid
    test: Grid | None
    moments: Moments


def load_signal(signal: str, options: Options, size: int | None) -> Grid:
    """The samples of a signal, where the recipe has them."""
    align = options.align or ("corners" if options.recipe == "paper" else "centers")
    return load(signal, size=size, space=options.space, align=align, axes=options.axes)


def load_subject(signal: str, options: Options) -> Subject:
    """A signal for training, and for the test where there is one."""
    field, test = load_signal(signal, options, options.size), None
    if options.eval_size is not None:
        test = load_signal(signal, options, options.eval_size)
    elif options.size is not None and (stored := load_signal(signal, options, None)).samples > field.samples:
        if stored.samples <= MANY_SAMPLES:
            test = stored
        else:
            warnings.warn(
                f"{signal}: not tested on all of its {stored.samples:,} samples; see --eval-size", stacklevel=2
            )
    return Subject(field, test, estimate_moments(field))


def require_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; it must lie between 0 and 2³² - 1")


def draw_network(subject: Subject, scheme: str, options: Options, seed: int) -> tuple[Blueprint, CoordinateMLP]:
    """The network of a scheme, in the size that was chosen or that follows from the signal."""
    field = subject.field
    width, depth = default_size(field)
    if options.recipe == "paper":
        width, depth = 256, 5 if field.medium == "sound" else 11
    width = width if options.width is None else options.width
    depth = depth if options.depth is None else options.depth
    entry = get_scheme(scheme)
    frequencies = entry.sound if field.medium == "sound" else {}
    blueprint = entry.blueprint(subject.moments, width=width, depth=depth, **frequencies)
    return blueprint, CoordinateMLP(blueprint, key=jax.random.key(seed))


def choose_recipe(field: Grid, network: CoordinateMLP, options: Options) -> Recipe:
    """How to train a network, with what was chosen in place of the rule's entries."""
    if options.recipe == "default":
        recipe = default_recipe(field, network)
    else:
        recipe = paper_recipe(field, steps=5000, learning_rate=5e-5) if field.medium == "sound" else paper_recipe(field)
    rate = options.lr
    if rate is None and options.optimizer not in (None, recipe.optimizer):
        rate = default_rate(network) if options.optimizer == "muon" else 1e-3
    given = {"optimizer": options.optimizer, "learning_rate": rate, "steps": options.steps, "batch": options.batch}
    return dataclasses.replace(recipe, **{key: value for key, value in given.items() if value is not None})


def shown_part(field: Grid) -> Grid:
    """A field as it is drawn. If it has many samples some are left out, and the others keep their positions."""
    stride = math.ceil((field.samples / MANY_SAMPLES) ** (1 / field.in_size))
    if stride == 1 or field.medium == "sound":
        return field
    strides = [min(stride, n - 1) for n in field.shape]
    axes = [
        axis_coordinates(n, extent, field.align)[::step]
        for n, extent, step in zip(field.shape, field.extents, strides, strict=True)
    ]
    values = field.values[tuple(slice(None, None, step) for step in strides)]
    return Grid(values, extents=[(x[0], x[-1]) for x in axes], align="corners", medium=field.medium)


def evaluate_at(network: CoordinateMLP, field: Grid) -> np.ndarray:
    """The values of a network where a field has its samples."""
    return render(network, field.shape, extents=field.extents, align=field.align)
