"""Terms: what is known about a field, and what `fit` draws from.

A term is something known about a field: its value at a point, say. It can draw some of its observations, and say how
far a network is from each, in units in which 1 means that nothing is known. `Values` is one of them; a class with the
three methods of `Term`, or a plain function `loss(network, key)`, is a term as well.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from ..fitting.observations import field_identity, loss_unit
from ..initialization.moments import Moments, estimate_moments
from ..initialization.noise import require_noise
from ..jax.network import Network, Transposed, evaluate_rows, transposed_weights
from ..jax.render import predict
from ..signals.fields import Extent, Field, Grid, Points
from ..signals.metrics import Metrics, evaluate
from .sampling import Samples

PositionMoments = tuple[Float[np.ndarray, " in_size"], Float[np.ndarray, "in_size in_size"]]


@runtime_checkable
class Term(Protocol):
    """What `fit` asks of a term. It may be an `eqx.Module`, whose arrays then are not compiled in.

    A term whose steps go together, such as one that visits its observations in turn, may have a fourth method,
    `draw_in_turn(key, n, step)`. `fit` then calls it in place of `draw`, with the same key in every step.

    !!! example
        ```python
        import equinox as eqx


        class Slopes(eqx.Module):
            positions: jax.Array  # (samples, in_size)
            slopes: jax.Array  # (samples, out_size, in_size)

            def draw(self, key, n):
                return jax.random.randint(key, (n,), 0, len(self.positions))

            def loss(self, network, batch):
                error = gradient(network, self.positions[batch]) - self.slopes[batch]
                return jnp.square(error).mean(axis=(1, 2)) / jnp.square(self.slopes).mean()

            def position_moments(self):
                return self.positions.mean(axis=0), jnp.cov(self.positions.T)
        ```
    """

    def draw(self, key: PRNGKeyArray, n: int) -> PyTree:
        """About `n` observations: arrays that have them along their first axis."""
        ...

    def loss(self, network: Network, batch: PyTree) -> Float[Array, " n"]:
        """How far a network is from each observation of a batch; 1 on average if it knows nothing."""
        ...

    def position_moments(self) -> tuple[Any, Any]:
        """The mean and the covariance of the positions that are drawn, which set the optimizer's units."""
        ...


Loss = Callable[[Any, PRNGKeyArray], Array]
Terms = Field | Term | Loss | Sequence[Field | Term | Loss]


class Observations(ABC):
    """What `Values` and `Averages` share: they are terms by themselves, and are prepared when first used."""

    @abstractmethod
    def prepare(self, dtype: jnp.dtype) -> Any:
        """The same with its observations on the devices. `fit` asks for it once."""

    def draw(self, key: PRNGKeyArray, n: int) -> PyTree:
        """Some observations: their indices, the weight of each, and what else their loss needs."""
        return self._prepared.draw_in_turn(key, n)

    def loss(self, network: Network, batch: PyTree) -> Float[Array, " n"]:
        """The loss of each observation, in units of the variance."""
        return self._prepared.loss(network, batch)

    @functools.cached_property
    def _prepared(self) -> Any:
        with jax.ensure_compile_time_eval():  # the first use may be inside a function that is being compiled
            return self.prepare(jnp.result_type(float))


@dataclass(frozen=True, eq=False)
class Values(Observations):
    """The values of a field at its samples, by their squared error in units of the signal's variance.

    **Arguments:**

    - `field`: the samples. `fit(network, field)` is short for `fit(network, Values(field))`.
    - `moments`: of the field, if they are known already.
    - `noise`: the standard deviation of white noise in the values; see `estimate_noise`. The moments are then those of
        the field without it, and a fit ends when its error is no larger than the noise, instead of learning it.

    !!! example
        ```python
        result = fit(network, Values(field), steps=20)
        result = fit(network, Values(field, noise=0.1), steps=20)
        ```
    """

    field: Field
    moments: Moments | None = None
    noise: float = 0.0

    def __post_init__(self):
        require_noise(self.noise)

    @functools.cached_property
    def signal_moments(self) -> Moments:
        """The moments of the field."""
        return estimate_moments(self.field, noise=self.noise) if self.moments is None else self.moments

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.field.samples

    @property
    def in_size(self) -> int:
        """Number of coordinates."""
        return self.field.in_size

    @property
    def out_size(self) -> int:
        """Number of channels."""
        return self.field.out_size

    @property
    def value_range(self) -> Extent:
        """The interval that PSNR refers to."""
        return self.field.value_range

    @property
    def variance(self) -> float:
        """The variance over all samples and channels, the unit of the loss."""
        return loss_unit(self.signal_moments)

    def position_moments(self) -> PositionMoments:
        """The mean and the covariance of the positions."""
        return self.field.position_moments()

    def prepare(self, dtype: jnp.dtype) -> "SampledValues":
        """The same with its samples on the devices. `fit` asks for it once."""
        return SampledValues(Samples.of(self.field, dtype), np.asarray(self.variance, dtype))

    def measure(self, network: Network) -> tuple[np.ndarray, Metrics]:
        """The values of a network at all samples, and their metrics."""
        prediction = predict(network, self.field)
        return prediction, evaluate(prediction, self.field)

    def identity(self) -> tuple[Any, ...]:
        """What tells these observations from others."""
        return f"values {self.noise} {self.variance}", field_identity(self.field)


class SampledValues(eqx.Module):
    """`Values` with its samples on the devices.

    `once` is what the backward pass of the loss is faster with. It is made once a step, and given with every block.
    """

    samples: Samples
    variance: Any  # an array, so that it is not compiled in

    def draw_in_turn(
        self, key: PRNGKeyArray, n: int, step: int | Int[Array, ""] = 0
    ) -> tuple[Int[Array, " drawn"], Float[Array, " drawn"]]:
        return self.samples.draw(key, n, step)

    def once(self, network: Network) -> Transposed | None:
        return transposed_weights(network)

    def loss(
        self, network: Network, batch: tuple[Array, Array], transposed: Transposed | None = None
    ) -> Float[Array, " n"]:
        indices, weights = batch
        positions, values = self.samples.at(indices)
        error = evaluate_rows(network, positions, transposed) - values
        return weights * jnp.square(error).mean(axis=1) / self.variance


class FunctionTerm(eqx.Module):
    """A plain function `loss(network, key)`, which draws what it needs and returns one number."""

    function: Loss = eqx.field(static=True)


def as_terms(terms: Any) -> tuple[Values | Term | FunctionTerm, ...]:
    """Everything that `fit` accepts as terms, as a tuple."""
    if isinstance(terms, list | tuple):
        if not terms:
            raise ValueError("terms is empty; pass a field, a term, a function loss(network, key), or several of them")
        return tuple(term for entry in terms for term in as_terms(entry))
    if isinstance(terms, Grid | Points):
        return (Values(terms),)
    if isinstance(terms, Values | Term | FunctionTerm):
        return (terms,)
    if callable(terms):
        return (FunctionTerm(cast(Loss, terms)),)
    raise ValueError(
        f"terms has a {type(terms).__name__}; pass a field, a term with draw, loss and position_moments, or a function "
        "loss(network, key)"
    )


def prepare(term: Any, dtype: jnp.dtype) -> Any:
    """A term as it is trained on, on the devices."""
    return term.prepare(dtype) if hasattr(term, "prepare") else term
