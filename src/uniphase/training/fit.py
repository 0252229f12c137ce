"""`fit`: a network, or a signal alone, and nothing else to choose.

The rule is `default_recipe`: Muon in the units of the signal, at a rate that depends on the depth alone.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, overload

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..fitting.arguments import (
    as_field,
    counted,
    keywords,
    require_channels,
    require_limits,
    require_moments,
    require_options,
    require_sampling,
)
from ..fitting.loop import Checkpoint, State, Training
from ..fitting.notebook import run_visibly
from ..fitting.plan import FallingPlan, Progress, progress_line
from ..fitting.result import kept
from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments
from ..initialization.schemes import require_omega
from ..jax.network import CoordinateMLP, Network, dtype_of, evaluate_rows, require_vectors
from ..jax.render import predict
from ..recipe import (
    Optimizer,
    Recipe,
    Scales,
    Units,
    as_seed,
    default_blueprint,
    default_recipe,
    default_sampling,
    position_moments,
)
from ..signals.fields import Extent, Field, Grid, Sampling
from ..signals.metrics import Metrics, evaluate
from ..signals.paths import FilePath
from .averages import Averages
from .checkpoints import TreeFiles
from .identity import identify
from .optimizers import as_arrays, muon_in_units
from .result import Fit
from .sampling import replicate
from .step import CompiledSteps, Problem, initial_state, split_network
from .terms import Observations, Terms, Values, as_terms, prepare


@overload
def fit(
    signal: FilePath | ArrayLike | Field,
    /,
    *,
    scheme: str = ...,
    omega: float | None = ...,
    width: int | None = ...,
    depth: int | None = ...,
    size: int | None = ...,
    samples: Sampling | None = ...,
    noise: float = ...,
    progress: bool = ...,
    **options: Any,
) -> Fit: ...


@overload
def fit(
    network: PyTree,
    terms: Terms,
    /,
    *,
    recipe: Recipe | None = ...,
    optimizer: optax.GradientTransformation | None = ...,
    steps: int | None = ...,
    seconds: float | None = ...,
    target_db: float | None = ...,
    test: Field | None = ...,
    measure: bool = ...,
    moments: Moments | None = ...,
    domain: Sequence[Extent] | None = ...,
    blueprint: Blueprint | None = ...,
    seed: int = ...,
    callback: Callable[[Progress], Any] | None = ...,
    checkpoint: FilePath | None = ...,
    checkpoint_seconds: float = ...,
    resume: bool = ...,
) -> Fit: ...


def fit(network: Any, terms: Any = None, /, **options: Any) -> Fit:
    """Fit a network to what is known about a field; or fit a signal, with a network that follows from it.

    **Arguments:**

    With a signal alone, `fit(signal)`:

    - `signal`: the name or the path of an image, a sound or an array; or an array; or a field.
    - `scheme`, `width`, `depth`: the initialization, and the size of the network. Default: by the signal.
    - `omega`: the frequency ω of the sines, for a scheme that has one. Default: the scheme's own.
    - `size`: resize the signal first, so that its longest axis has this many samples.
    - `samples`: `"points"` or `"averages"`, what the samples are fitted as. Default: `default_sampling`.
    - `noise`: the standard deviation of noise in the signal, which is then not learned; see `Values`.
    - `progress`: whether to show a line of progress, or a live display in a notebook. Default: yes.

    With a network, `fit(network, terms)`:

    - `network`: a `CoordinateMLP`, or any Equinox module that maps one position to the channels there.
    - `terms`: a field, whose values are to be fitted; a term, such as `Values(field)`; a plain function
        `loss(network, key)`; or a list of these, whose losses are added.

    In both cases:

    - `recipe`: how to train. Default: `default_recipe`.
    - `optimizer`: any `optax.GradientTransformation`, in place of the recipe's optimizer and rate.
    - `steps`: that many steps, in place of the recipe's.
    - `seconds`: end after this time, without that of compiling, of callbacks and of measuring. The rate falls with
        whichever of time and steps is further.
    - `target_db`: end when the signal-to-noise ratio of the latest steps reaches this. With a signal alone, the network
        has a size that should be enough for it, and with `seconds` one that can be trained in that time.
    - `test`: a field to measure at the end, e.g. the same image at a higher resolution.
    - `measure`: whether to evaluate the network at all samples at the end, for the metrics. Default: yes.
    - `moments`: those of the signal, if they are known already.
    - `domain`: `(low, high)` of every coordinate, for the default optimizer of terms that have no positions.
    - `blueprint`: what the network was drawn from, to be saved with it.
    - `seed`: of the batches, and with a signal alone of the network.
    - `callback`: called about twice a second with a `Progress`. Default: in a Jupyter notebook a live display, which
        `callback=None` turns off; elsewhere what `progress` says.
    - `checkpoint`, `checkpoint_seconds`: a file for the state of the fit, and how often it is written. An interrupt
        writes it as well.
    - `resume`: go on from `checkpoint`, if it exists. The result is that of a fit never interrupted, to the last bit.

    **Returns:**

    A `Fit`. If the loss explodes, the fit goes back to its last good state with half the rate, with a warning; after a
    few times it raises `Diverged`.

    !!! example
        ```python
        result = fit(network, field, steps=20)
        print(result.metrics.snr_db)

        result = fit("camera", size=16, steps=20)

        loss = lambda network, key: jnp.square(network(positions) - 1.0).mean()
        result = fit(network, loss, optimizer=optax.adam(1e-3), steps=20)
        ```
    """
    if terms is None and isinstance(network, eqx.Module):
        raise ValueError("fit got a network but no terms; call fit(network, field)")
    if terms is None:
        require_options(options, _OF_SIGNAL, _OF_NETWORK, "fit(network, terms)")
    else:
        require_options(options, _OF_NETWORK, _OF_SIGNAL, "fit(signal)")
    if "seed" in options:
        options["seed"] = as_seed(options["seed"])
    run = partial(_fit_signal, network) if terms is None else partial(_fit_network, network, terms)
    return run_visibly(run, options)


def _fit_signal(
    signal: Any,
    *,
    scheme: str = "uniform-phase",
    omega: float | None = None,
    width: int | None = None,
    depth: int | None = None,
    size: int | None = None,
    samples: Sampling | None = None,
    noise: float = 0.0,
    progress: bool = True,
    seed: int = 0,
    moments: Moments | None = None,
    target_db: float | None = None,
    seconds: float | None = None,
    **options: Any,
) -> Fit:
    require_omega(omega, [scheme])  # before anything is read
    require_limits(seconds, target_db)
    field = as_field(signal, size)
    values = Values(field, moments, noise)
    limits: dict[str, Any] = {"target_db": target_db, "seconds": seconds}
    chosen: dict[str, Any] = {"omega": omega, "width": width, "depth": depth}
    blueprint = default_blueprint(field, values.signal_moments, scheme, **chosen, **limits)
    network = CoordinateMLP(blueprint, key=jax.random.key(seed))
    if progress and "callback" not in options:
        options["callback"] = progress_line
    samples = default_sampling(field, blueprint.parameters) if samples is None else samples
    term = observe(field, samples, values.signal_moments, noise)
    return _fit_network(network, term, seed=seed, blueprint=blueprint, **limits, **options)


def observe(field: Field, samples: Sampling, moments: Moments | None = None, noise: float = 0.0) -> Values | Averages:
    """The samples of a field as what they are fitted as: `Values`, or `Averages` over their cells."""
    require_sampling(samples)
    return Averages(field, None, moments, noise) if samples == "averages" else Values(field, moments, noise)


def _fit_network(
    network: Any,
    terms: Any,
    *,
    recipe: Recipe | None = None,
    optimizer: Any = None,
    steps: int | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    test: Field | None = None,
    measure: bool = True,
    moments: Moments | None = None,
    domain: Sequence[Extent] | None = None,
    blueprint: Blueprint | None = None,
    seed: int = 0,
    callback: Callable[[Progress], Any] | None = None,
    checkpoint: FilePath | None = None,
    checkpoint_seconds: float = 10.0,
    resume: bool = False,
) -> Fit:
    require_limits(seconds, target_db)
    known = tuple(_with_moments(term, moments) for term in as_terms(terms))
    observed = next((term for term in known if isinstance(term, Values | Averages)), None)
    for term in known:
        if isinstance(term, Values | Averages):
            _require_sizes(network, term)
    _require_test(network, test)
    _require_optimizer(optimizer)
    recipe = _recipe(network, observed, recipe, optimizer, steps)
    dtype = dtype_of(network)
    parameters, frozen, static = replicate(split_network(network))
    rule = RecipeRule(recipe.optimizer, optimizer)
    settings = replicate(_units(network, known, moments, domain)) if recipe.optimizer == "muon" else None
    prepared = tuple(prepare(term, dtype) for term in known)
    problem = Problem(prepared, frozen, static, settings, rule, recipe.batch)
    assemble = lambda parameters: eqx.combine(parameters, frozen, static)  # noqa: E731
    plan = _plan(known, observed, recipe, seconds, target_db, callback, assemble)
    identity = "" if checkpoint is None else identify(recipe, seed, network, known, settings, optimizer)
    losses = np.full(recipe.steps, np.nan, dtype)
    file = Checkpoint(checkpoint, checkpoint_seconds, identity, TreeFiles())
    compiled = CompiledSteps(problem, seed)
    training = Training(compiled, plan, losses, file)
    state = State(parameters, initial_state(problem, parameters))
    compiled.compile(state.parameters, state.optimizer, plan.most)
    state, stop = training.run(training.checkpoint.restore(state, losses) if resume else state)
    fitted, averages, nothing = assemble(state.parameters), isinstance(observed, Averages), (None, None)
    # With them go the samples on the device, before the predictions take as much.
    del training, compiled, problem, prepared
    prediction, metrics = observed.measure(fitted) if measure and observed is not None else nothing
    test_prediction, test_metrics = _measure(fitted, test, averages) if measure and test is not None else nothing
    return Fit(
        fitted,
        metrics,
        test_metrics,
        plan.scale * losses[: state.step].astype(np.float64),
        stop,  # pyright: ignore[reportArgumentType]
        state.step,
        state.seconds,
        recipe,
        seed,
        None if observed is None else observed.field,
        "averages" if averages else "points",
        None if observed is None else observed.signal_moments,
        blueprint,
        kept(prediction),
        kept(test_prediction),
    )


def _measure(network: Network, field: Field, averages: bool) -> tuple[np.ndarray, Metrics]:
    prediction = predict(network, field, average=averages and isinstance(field, Grid))
    return prediction, evaluate(prediction, field)


def _plan(
    terms: Sequence[Any],
    observed: Values | Averages | None,
    recipe: Recipe,
    seconds: float | None,
    target_db: float | None,
    callback: Callable[[Progress], Any] | None,
    network: Callable[[Any], Any],
) -> FallingPlan:
    scale, noise = 1.0, 0.0
    if observed is not None and len(terms) == 1:
        scale, noise = observed.variance, observed.noise**2 / observed.variance
    return FallingPlan(
        recipe,
        seconds,
        target_db,
        scale,
        noise if noise > 0 else -math.inf,
        None if observed is None else observed.value_range,
        all(isinstance(term, Observations) for term in terms),
        callback,
        network,
    )


def _with_moments(term: Any, moments: Moments | None) -> Any:
    if isinstance(term, Values | Averages) and term.moments is None and moments is not None:
        return replace(term, moments=moments)
    return term


def _require_sizes(network: Network, field: Values | Averages) -> None:
    """The network takes the field's coordinates, and gives its channels."""
    require_vectors(network)
    position = jax.ShapeDtypeStruct((1, field.in_size), dtype_of(network))
    try:
        found = eqx.filter_eval_shape(evaluate_rows, network, position).shape[1]
    except Exception as error:  # a user's network may raise anything
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"the field has {counted(field.in_size, 'coordinate')}, but the network does not accept such positions "
            f"({reason}); draw it from the moments of the field"
        ) from error
    require_channels("network", found, field)
    require_moments(field.moments, field.in_size, field.out_size)


def _require_test(network: Network, test: Field | None) -> None:
    """It is measured at the end; what is wrong with it should be known at the start."""
    if test is not None:
        _require_sizes(network, Values(test))


def _require_optimizer(optimizer: Any) -> None:
    if optimizer is not None and not (hasattr(optimizer, "init") and hasattr(optimizer, "update")):
        raise ValueError(f"optimizer is {optimizer!r}; pass one of Optax, e.g. optax.adam(1e-3)")


def _recipe(
    network: Any,
    observed: Values | Averages | None,
    recipe: Recipe | None,
    optimizer: optax.GradientTransformation | None,
    steps: int | None,
) -> Recipe:
    layered = network if isinstance(network, CoordinateMLP) else None
    if recipe is None:
        draws = observed.draws if isinstance(observed, Averages) else 1
        noisy = observed is not None and observed.noise > 0
        recipe = default_recipe(observed, layered, noisy=noisy, draws=draws, steps=steps)
    if recipe.optimizer == "muon" and layered is None and optimizer is None:
        raise ValueError(
            f"recipe.optimizer is 'muon', which needs a CoordinateMLP; the network is a {type(network).__name__}. Pass "
            "optimizer=, or a recipe with adam"
        )
    if optimizer is not None:
        recipe = replace(recipe, optimizer="given", learning_rate=1.0, final_fraction=1.0)
    return recipe if steps is None else replace(recipe, steps=steps)


def _units(network: CoordinateMLP, terms: Sequence[Any], moments: Moments | None, domain: Any) -> Units:
    """The units of the default optimizer, from all positions that the terms draw."""
    found = [position_moments(domain)] if domain is not None else []
    found += [term.position_moments() for term in terms if hasattr(term, "position_moments")]
    moments = next((term.signal_moments for term in terms if isinstance(term, Values | Averages)), moments)
    if not found or moments is None:
        raise ValueError(
            "the default optimizer needs positions and moments, which these terms do not define; pass "
            "domain=[(low, high), ...] and moments=prescribe_moments(...), or an optimizer="
        )
    means = np.stack([np.asarray(mean, np.float64) for mean, _ in found])
    covariance = np.mean([np.asarray(covariance, np.float64) for _, covariance in found], axis=0)
    positions = means.mean(axis=0), covariance + np.atleast_2d(np.cov(means.T, ddof=0))
    return as_arrays(Units.at(positions, moments, network.width), network)


@dataclass(frozen=True)
class RecipeRule:
    """The optimizer of a recipe, or a given one."""

    name: Optimizer
    given: optax.GradientTransformation | None

    def build(self, network: Any, settings: PyTree) -> optax.GradientTransformation:
        if self.given is not None:
            return self.given
        direction = muon_in_units(network, settings, Scales()) if self.name == "muon" else optax.scale_by_adam()
        return optax.chain(direction, optax.scale(-1.0))


# The options of `fit(network, terms)` and of `fit(signal)`, which makes the blueprint itself.
_OF_NETWORK = keywords(_fit_network)
_OF_SIGNAL = {name: each for name, each in (keywords(_fit_signal) | _OF_NETWORK).items() if name != "blueprint"}

# What `help` and editors show: every option by its name and default.
fit.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
    [*list(inspect.signature(fit).parameters.values())[:2], *(_OF_SIGNAL | _OF_NETWORK).values()],
    return_annotation=Fit,
)
