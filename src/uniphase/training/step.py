"""A step: draw a batch of every term, differentiate the losses, and move the parameters.

All of it is compiled, with several steps in one call. The same step trains one network or several of one structure,
which then share the batches and differ in their parameters, in other arrays and in the settings of their optimizers.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Float, Int, PRNGKeyArray, PyTree

from ..jax.network import dtype_of, trainable_arrays, widest_layer
from .sampling import block_size, cut
from .terms import FunctionTerm


@runtime_checkable
class Rule(Protocol):
    """How an optimizer is made inside the compiled step, from arrays that are not compiled in."""

    def build(self, network: Any, settings: PyTree) -> optax.GradientTransformation:
        """The optimizer. The parameters move by its updates, times the factor of the step."""
        ...


class Problem(eqx.Module):
    """All of a training run that does not change while it runs.

    - `terms`: what the losses are drawn from, each prepared.
    - `frozen`, `static`: the arrays of the network that are not trained, and the rest of it.
    - `rule`, `settings`: the optimizer, and what it is made from.
    - `batch`: observations of a step, shared by the terms.
    - `networks`: how many networks there are, along the first axis of all arrays but those of the terms. `None`: one,
        without such an axis.
    """

    terms: tuple[Any, ...]
    frozen: PyTree
    static: PyTree
    settings: PyTree
    rule: Rule = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    networks: int | None = eqx.field(static=True, default=None)

    def network(self, parameters: PyTree, frozen: PyTree) -> Any:
        """A network with the given parameters."""
        return eqx.combine(parameters, frozen, self.static)


def split_network(network: PyTree) -> tuple[PyTree, PyTree, PyTree]:
    """The parameters of a network, its other arrays, and the rest of it."""
    parameters, others = eqx.partition(network, trainable_arrays(network))
    return parameters, *eqx.partition(others, eqx.is_array)


@eqx.filter_jit
def initial_state(problem: Problem, parameters: PyTree) -> optax.OptState:
    """The state of the optimizer before the first step."""

    def of_network(parameters: PyTree, frozen: PyTree, settings: PyTree) -> optax.OptState:
        return problem.rule.build(problem.network(parameters, frozen), settings).init(parameters)

    return _each(problem, of_network)(parameters, problem.frozen, problem.settings)


@eqx.filter_jit
def take_steps(
    problem: Problem,
    parameters: PyTree,
    state: optax.OptState,
    factors: ArrayLike,
    seed: ArrayLike,
    first: ArrayLike,
    count: ArrayLike,
) -> tuple[PyTree, optax.OptState, Float[Array, "..."]]:
    """`count` steps, the first of which has the number `first`. Their losses come first in the last result."""
    factors, key = jnp.asarray(factors), jax.random.key(seed)
    axis = () if problem.networks is None else (problem.networks,)

    def step(i, carry):
        parameters, state, losses = carry
        one = _step(problem, key, first + i, factors[i])
        loss, parameters, state = _each(problem, one)(parameters, problem.frozen, problem.settings, state)
        return parameters, state, losses.at[i].set(loss)

    losses = jnp.zeros((len(factors), *axis), dtype_of(parameters))
    return jax.lax.fori_loop(0, count, step, (parameters, state, losses))


class CompiledSteps(eqx.Module):
    """The steps of a problem, for the loop."""

    problem: Problem
    seed: int = eqx.field(static=True)

    def __call__(
        self, parameters: PyTree, optimizer: optax.OptState, factors: np.ndarray, first: int, count: int
    ) -> tuple[PyTree, optax.OptState, np.ndarray]:
        numbers = np.uint32(self.seed), np.int32(first), np.int32(count)
        parameters, optimizer, losses = take_steps(self.problem, parameters, optimizer, factors, *numbers)
        return parameters, optimizer, np.asarray(losses)[:count]

    def compile(self, parameters: PyTree, optimizer: optax.OptState, most: int) -> None:
        """Compile calls of at most so many steps, by one of none: the first then takes no longer than any other."""
        self(parameters, optimizer, np.ones(most, np.float32), 0, 0)


def _step(
    problem: Problem, key: PRNGKeyArray, number: Array, factor: Array
) -> Callable[..., tuple[Array, PyTree, optax.OptState]]:
    def step(parameters: PyTree, frozen: PyTree, settings: PyTree, state: optax.OptState):
        loss, gradients = loss_and_gradients(problem, parameters, frozen, key, number)
        optimizer = optax.with_extra_args_support(problem.rule.build(problem.network(parameters, frozen), settings))

        def value_fn(parameters: PyTree) -> Array:  # for a line search, on the same batch
            return loss_alone(problem, parameters, frozen, key, number)

        with jax.numpy_dtype_promotion("standard"):  # Optax's bias correction mixes integers and floats
            extra = {"value": loss, "grad": gradients, "value_fn": value_fn}
            updates, state = optimizer.update(gradients, state, parameters, **extra)
        moved = jax.tree.map(lambda a, u: a + factor.astype(a.dtype) * u, parameters, updates)
        return loss, moved, state

    return step


def _each(problem: Problem, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of one network, for all networks of the problem."""
    if problem.networks is None:
        return function
    if takes_turns():
        return lambda *stacked: jax.lax.map(lambda arguments: function(*arguments), stacked)
    return jax.vmap(function)


def takes_turns() -> bool:
    """Whether several networks take turns: on a CPU, which a single one keeps busy; elsewhere all go at once."""
    # Within one program, 21 networks of width 16 take 1.2 to 1.4 times as long at once (two cores) as in turns.
    return jax.default_backend() == "cpu"


def loss_and_gradients(
    problem: Problem, parameters: PyTree, frozen: PyTree, key: PRNGKeyArray, number: int | Int[Array, ""] = 0
) -> tuple[Float[Array, ""], PyTree]:
    """The sum of the losses of all terms in the step of a number, and its gradients by the parameters."""
    return _sum_of_terms(problem, parameters, frozen, key, number, gradients=True)


def loss_alone(
    problem: Problem, parameters: PyTree, frozen: PyTree, key: PRNGKeyArray, number: int | Int[Array, ""] = 0
) -> Float[Array, ""]:
    """The sum of the losses of all terms, on the batch that `loss_and_gradients` draws with the same key and number."""
    return _sum_of_terms(problem, parameters, frozen, key, number, gradients=False)


def _sum_of_terms(
    problem: Problem,
    parameters: PyTree,
    frozen: PyTree,
    key: PRNGKeyArray,
    number: int | Int[Array, ""],
    *,
    gradients: bool,
) -> Any:
    count, zero = len(problem.terms), jnp.zeros((), dtype_of(parameters))
    keys = [key] if count == 1 else jax.random.split(key, count)
    # If a line search differentiates the loss alone, this keeps the activations of one block in memory, not of all.
    measure = jax.value_and_grad if gradients else jax.checkpoint
    start = (zero, jax.tree.map(jnp.zeros_like, parameters)) if gradients else zero

    def of_term(term: Any, key: PRNGKeyArray) -> PyTree:
        if isinstance(term, FunctionTerm):
            return measure(_function_loss(problem, term, frozen, jax.random.fold_in(key, number)))(parameters)
        once = (term.once(problem.network(parameters, frozen)),) if gradients and hasattr(term, "once") else ()
        batch = _draw(term, key, -(-problem.batch // count), number)
        loss, blocks = _block_loss(problem, term, parameters, frozen, batch, once)

        def add_block(total, block):
            return jax.tree.map(jnp.add, total, measure(loss)(parameters, *block)), None

        return jax.lax.scan(add_block, start, blocks)[0]

    parts = [of_term(term, term_key) for term, term_key in zip(problem.terms, keys, strict=True)]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], start=leaves[0]), *parts)


def _function_loss(
    problem: Problem, term: FunctionTerm, frozen: PyTree, key: PRNGKeyArray
) -> Callable[[PyTree], Float[Array, ""]]:
    def loss(parameters: PyTree) -> Array:
        loss = term.function(problem.network(parameters, frozen), key)
        return _require_number(term.function, loss).astype(dtype_of(parameters))

    return loss


def _draw(term: Any, key: PRNGKeyArray, n: int, number: int | Int[Array, ""]) -> PyTree:
    """The batch of a step."""
    if hasattr(term, "draw_in_turn"):
        return term.draw_in_turn(key, n, number)
    return term.draw(jax.random.fold_in(key, number), n)


def _block_loss(
    problem: Problem, term: Any, parameters: PyTree, frozen: PyTree, batch: PyTree, once: tuple[Any, ...]
) -> tuple[Callable[..., Float[Array, ""]], PyTree]:
    """What a block adds to the loss of a term, as a function of the parameters, and the blocks of a batch."""
    size, dtype = jax.tree.leaves(batch)[0].shape[0], dtype_of(parameters)
    at_once = getattr(term, "evaluations", 1)
    at_once *= 1 if problem.networks is None or takes_turns() else problem.networks
    blocks = cut(batch, size, block_size(widest_layer(parameters) * at_once))

    def loss(parameters: PyTree, batch: PyTree, counted: Array | None) -> Array:
        losses = term.loss(problem.network(parameters, frozen), batch, *once)
        _require_one_for_each(term, losses, jax.tree.leaves(batch)[0].shape[0])
        return (losses if counted is None else counted.astype(losses.dtype) * losses).sum().astype(dtype) / size

    return loss, blocks


def _require_one_for_each(term: Any, losses: Array, observations: int) -> None:
    if losses.shape != (observations,):
        raise ValueError(
            f"the loss of {type(term).__name__} has the shape {losses.shape} for {observations} observations; return "
            "one number for each, of which `fit` takes the mean"
        )


def _require_number(function: Any, loss: Array) -> Array:
    if jnp.shape(loss) != ():
        name = getattr(function, "__name__", type(function).__name__)
        raise ValueError(f"the loss {name} has the shape {jnp.shape(loss)}; return one number, e.g. the mean")
    return loss
