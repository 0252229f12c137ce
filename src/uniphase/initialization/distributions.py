"""Distributions of initial weights and biases.

A distribution is a description: it can be printed and compared, and it has an exact variance. It turns a standard draw
into a sample with `+`, `*` and `@` alone, so that each framework needs only its own random numbers. Weights have the
shape `(out, in)`: a row belongs to one neuron, a column to one of its inputs.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

# The standard draw that a distribution needs, in the shape of the sample: N(0, 1), U(0, 1), or zeros.
Standard = Literal["normal", "uniform", "zero"]
Matrix = tuple[tuple[float, ...], ...]
# Converts the distribution's own numbers to an array of the draw's framework, dtype and device.
AsArray = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Normal:
    """Independent N(0, std²) entries."""

    std: float
    standard: ClassVar[Standard] = "normal"

    def variance(self) -> Float[np.ndarray, ""]:
        """The variance of an entry."""
        return np.array(self.std**2)

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """A sample, from a standard draw."""
        return draw * self.std

    def __str__(self) -> str:
        return f"N(0, {self.std:.4g}²)"


@dataclass(frozen=True)
class Uniform:
    """Independent U(-half_width, half_width) entries, of variance half_width²/3."""

    half_width: float
    standard: ClassVar[Standard] = "uniform"

    def variance(self) -> Float[np.ndarray, ""]:
        """The variance of an entry."""
        return np.array(self.half_width**2 / 3)

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """A sample, from a standard draw."""
        return (2 * draw - 1) * self.half_width

    def __str__(self) -> str:
        return f"U(±{self.half_width:.4g})"


@dataclass(frozen=True)
class RowNormal:
    """Independent rows N(0, covariance): correlated over the inputs of a neuron."""

    covariance: Matrix
    standard: ClassVar[Standard] = "normal"

    def variance(self) -> Float[np.ndarray, "1 in"]:
        """The variances of the entries of a row."""
        return np.diag(self.covariance)[None, :]

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """A sample, from a standard draw."""
        return draw @ asarray(_factor(self.covariance).T)

    def __str__(self) -> str:
        return f"rows N(0, {_format(self.covariance)})"


@dataclass(frozen=True)
class ColumnNormal:
    """Independent columns N(0, covariance): correlated over the neurons of a layer."""

    covariance: Matrix
    standard: ClassVar[Standard] = "normal"

    def variance(self) -> Float[np.ndarray, "out 1"]:
        """The variances of the entries of a column."""
        return np.diag(self.covariance)[:, None]

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """A sample, from a standard draw."""
        return asarray(_factor(self.covariance)) @ draw

    def __str__(self) -> str:
        return f"columns N(0, {_format(self.covariance)})"


@dataclass(frozen=True)
class Constant:
    """Entries that are not random: one number for all, or one per neuron."""

    value: float | tuple[float, ...]
    standard: ClassVar[Standard] = "zero"

    def variance(self) -> Float[np.ndarray, ""]:
        """Zero."""
        return np.array(0.0)

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """The constant, in the shape of the draw."""
        return draw + asarray(np.asarray(self.value, dtype=np.float64))

    def __str__(self) -> str:
        return _format(self.value)


@dataclass(frozen=True)
class Given:
    """Entries that were given, with no distribution behind them: those of a network saved without its blueprint."""

    standard: ClassVar[Standard] = "zero"

    def variance(self) -> Float[np.ndarray, ""]:
        """Unknown: NaN."""
        return np.array(np.nan)

    def sample(self, draw: Any, asarray: AsArray) -> Any:
        """Not possible: a `ValueError`."""
        raise ValueError(
            "these weights were given, so there is no distribution to draw them from; "
            "pass the blueprint of a scheme, such as uniform_phase(moments, width=256, depth=3)"
        )

    def __str__(self) -> str:
        return "given"


Distribution = Normal | Uniform | RowNormal | ColumnNormal | Constant | Given


def distribution_to_dict(distribution: Distribution) -> dict[str, Any]:
    """A distribution as its name and its numbers, which JSON can hold.

    !!! example
        ```python
        distribution_to_dict(Normal(0.5))  # {"law": "Normal", "std": 0.5}
        ```
    """
    return {"law": type(distribution).__name__, **dataclasses.asdict(distribution)}


def distribution_from_dict(entries: Mapping[str, Any]) -> Distribution:
    """The distribution that `distribution_to_dict` described, equal to it even after a passage through JSON.

    Numbers that this version does not know are ignored.

    !!! example
        ```python
        distribution_from_dict({"law": "Constant", "value": [0.0, 1.0]})  # Constant((0.0, 1.0))
        ```
    """
    known = {distribution.__name__: distribution for distribution in get_args(Distribution)}
    name = entries.get("law")
    if name not in known:
        raise ValueError(f"law is {name!r}; it must be one of {', '.join(known)}")
    keys = {field.name for field in dataclasses.fields(known[name])}
    if missing := keys - set(entries):
        numbers = sorted(set(entries) - {"law"})
        raise ValueError(f"the law {name} has the numbers {numbers}; it must have {sorted(missing)}")
    numbers = {field.name: _tuples(entries[field.name]) for field in dataclasses.fields(known[name])}
    for field in dataclasses.fields(known[name]):
        if field.type is float and isinstance(numbers[field.name], tuple):
            raise ValueError(f"{field.name} of the law {name} is {numbers[field.name]}; it must be a number")
    return known[name](**numbers)


def as_matrix(array: ArrayLike) -> Matrix:
    """A matrix as nested tuples, which can be compared and hashed."""
    return tuple(tuple(float(entry) for entry in row) for row in np.asarray(array))


def _factor(covariance: Matrix) -> Float[np.ndarray, "n n"]:
    """F with F Fᵀ = covariance.

    Cholesky's is preferred because it commutes with a change of units: scaling the coordinates scales its rows, so
    the same random bits give the same function in metres and in millimetres.
    """
    matrix = np.asarray(covariance)
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:  # singular: a direction without variation
        values, vectors = np.linalg.eigh(matrix)
        return vectors * np.sqrt(np.clip(values, 0, None))


def _format(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format, value))}]" if len(value) <= 4 else f"{len(value)} numbers"
    return f"{value:.4g}"


def _tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_tuples, value))
    if not isinstance(value, int | float):
        raise ValueError(f"a law has {value!r} in place of a number")
    return value
