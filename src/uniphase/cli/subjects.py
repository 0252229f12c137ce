"""A signal with everything that follows from it: the fields to fit, test and draw, the network and the recipe."""

import dataclasses
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ..initialization.blueprint import Blueprint
from ..initialization.moments import EPSILON, Moments, estimate_moments
from ..initialization.noise import estimate_noise
from ..initialization.schemes import get_scheme
from ..recipe import (
    DRAWS,
    FINAL,
    Recipe,
    default_blueprint,
    default_rate,
    default_recipe,
    default_sampling,
    paper_recipe,
)
from ..signals.datasets import load
from ..signals.fields import Field, Grid, Points
from ..signals.tables import TABLES
from ..signals.videos import video_shape
from .options import Options

if TYPE_CHECKING:
    from ..jax.network import CoordinateMLP
    from ..training.averages import Averages
    from ..training.terms import Values

# Larger signals are tested only if a size is asked for, and drawn with some of their samples left out.
MANY_SAMPLES = 1 << 22
# Points are drawn one by one.
MANY_POINTS = 1 << 14


class Subject(NamedTuple):
    """The field to fit, the field to test on, and the moments and the noise of the first."""

    field: Field
    test: Field | None
    moments: Moments
    noise: float = 0.0


def is_sound(field: Field) -> bool:
    """Whether a field is a sound."""
    return isinstance(field, Grid) and field.medium == "sound"


def is_video(field: Field) -> bool:
    """Whether a field is a video, and not a volume."""
    return isinstance(field, Grid) and field.rate is not None and field.in_size == 3


def load_signal(signal: str, options: Options, size: int | None) -> Field:
    """Load a signal at a size, with its samples where the recipe has them.

    The paper stretches every axis of an image to (-1, 1); otherwise pixels are square.
    """
    paper = options.recipe == "paper" and Path(signal).suffix.lower() not in TABLES
    align = options.align or ("corners" if paper else "centers")
    columns = {name: getattr(options, name) for name in ("coordinates", "values")}
    given: dict[str, Any] = {name: _names(text) for name, text in columns.items() if text is not None}
    given |= {name: getattr(options, name) for name in ("space", "axes", "array", "mask", "alpha")}
    field = load(signal, size=size, align=align, **given)
    return dataclasses.replace(field, extents=(-1.0, 1.0)) if paper and not is_sound(field) else field


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def load_subject(signal: str, options: Options) -> Subject:
    """Load a signal for training and, if there is more of it than is trained on, for a test."""
    field, test = load_signal(signal, options, options.size), None
    if options.eval_size is not None:
        test = load_signal(signal, options, options.eval_size)
    elif options.size is not None:
        # A video as stored may not fit into memory, so that is seen before it is loaded.
        many = math.prod(video_shape(signal)) if is_video(field) else 0
        stored = None if many > MANY_SAMPLES else load_signal(signal, options, None)
        samples = many if stored is None else stored.samples
        if samples > max(field.samples, MANY_SAMPLES):
            warnings.warn(
                f"{signal}: not tested on all of its {samples:,} samples; pass --eval-size for a test", stacklevel=2
            )
        elif samples > field.samples:
            test = stored
    noise = noise_of(field, options)
    return Subject(field, test, moments_of(field, options, noise), noise)


def moments_of(field: Field, options: Options, noise: float = 0.0) -> Moments:
    """The moments of a field, with the paper's ε where its recipe is used."""
    return estimate_moments(field, epsilon=EPSILON if options.recipe == "paper" else None, noise=noise)


def noise_of(field: Field, options: Options) -> float:
    """The noise that was given or is to be estimated; 0 if neither was asked for."""
    if options.noise is None:
        return estimate_noise(field) if options.denoise else 0.0
    if not 0 < options.noise < math.inf:
        raise ValueError(f"noise is {options.noise}; pass a standard deviation, positive and finite")
    return options.noise


def observations(subject: Subject, blueprint: Blueprint, options: Options) -> "Values | Averages":
    """The samples as values or averages: by choice, or by default for the field and the network's size."""
    from ..training.fit import observe

    samples = options.samples or default_sampling(subject.field, blueprint.parameters)
    return observe(subject.field, samples, subject.moments, subject.noise)


def make_blueprint(subject: Subject, scheme: str, options: Options, **limits: float | None) -> Blueprint:
    """The blueprint of a scheme, in the size that was chosen or that follows from the signal, a target and a time."""
    field, moments = subject.field, subject.moments
    if options.recipe == "default":
        sizes: dict[str, Any] = {"width": options.width, "depth": options.depth, **limits}
        return default_blueprint(field, moments, scheme, omega=options.omega, **sizes)
    width = 256 if options.width is None else options.width
    depth = (5 if is_sound(field) else 11) if options.depth is None else options.depth
    frequencies: dict[str, Any] = get_scheme(scheme).frequencies(options.omega, sound=is_sound(field))
    return get_scheme(scheme).blueprint(moments, width=width, depth=depth, **frequencies)


def draw_network(blueprint: Blueprint, seed: int) -> "CoordinateMLP":
    """Draw the numbers of a network."""
    import jax

    from ..jax.network import CoordinateMLP

    return CoordinateMLP(blueprint, key=jax.random.key(seed))


def choose_recipe(field: Field, network: Blueprint, options: Options, noise: float = 0.0) -> Recipe:
    """The recipe for the blueprint of a network, with the user's choices in place of the rule's entries."""
    if options.recipe == "default":
        averages = (options.samples or default_sampling(field, network.parameters)) == "averages"
        draws = DRAWS if averages else 1
        recipe = default_recipe(field, network, noisy=noise > 0, draws=draws, steps=options.steps, batch=options.batch)
    else:
        recipe = paper_recipe(field, steps=5000, learning_rate=5e-5) if is_sound(field) else paper_recipe(field)
    rate = options.lr
    if options.optimizer not in (None, recipe.optimizer):
        if recipe.fall == "exponential":  # as Muon's steps need it
            recipe = dataclasses.replace(recipe, fall="cosine", final_fraction=FINAL)
        if rate is None:
            rate = default_rate(network) if options.optimizer == "muon" else 1e-3
    given = {"optimizer": options.optimizer, "learning_rate": rate, "steps": options.steps, "batch": options.batch}
    return dataclasses.replace(recipe, **{key: value for key, value in given.items() if value is not None})


@overload
def shown_part(field: Grid) -> Grid: ...


@overload
def shown_part(field: Points) -> Points: ...


def shown_part(field: Field) -> Field:
    """The part of a field that is drawn: all of it or, if it is large, every n-th sample at its own position."""
    return strided(field, _shown_strides(field))


def strided(field: Field, strides: Sequence[int]) -> Field:
    """Every n-th sample of a field along each axis, at its own position; all of it if every n is 1."""
    kept = tuple(slice(None, None, step) for step in strides)
    if max(strides) == 1:
        return field
    if isinstance(field, Points):
        return Points(field.positions[kept], field.values[kept])
    offset = 0.5 if field.align == "centers" else 0.0
    ends = [
        (low + offset * gap, low + (offset + (n - 1) // step * step) * gap)
        for n, (low, _), step, gap in zip(field.shape, field.extents, strides, field.spacing, strict=True)
    ]
    return dataclasses.replace(field, values=field.values[kept], extents=ends, align="corners")


def shown_prediction(network: "CoordinateMLP", field: Field, prediction: np.ndarray | None) -> np.ndarray:
    """The values of a network at the samples of `shown_part(field)`.

    They are taken from `prediction`, the values at all samples of the field, if that is there.
    """
    if prediction is None:
        from ..jax.render import predict

        return predict(network, shown_part(field))
    kept = tuple(slice(None, None, step) for step in _shown_strides(field))
    return prediction.reshape(field.values.shape)[kept]


def _shown_strides(field: Field) -> tuple[int, ...]:
    if isinstance(field, Points):
        return (math.ceil(field.samples / MANY_POINTS),)
    stride = 1 if is_sound(field) else math.ceil((field.samples / MANY_SAMPLES) ** (1 / field.in_size))
    return tuple(min(stride, n - 1) for n in field.shape)
