"""`fit` in PyTorch: a model, or a signal alone, and nothing else to choose. The rule is that of `uniphase.fit`."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.optim import Optimizer

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
from ..fitting.identity import identify
from ..fitting.loop import Checkpoint, State, Training
from ..fitting.notebook import run_visibly
from ..fitting.observations import FieldSamples
from ..fitting.plan import Diverged, Progress, progress_line
from ..fitting.result import kept
from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments, estimate_moments
from ..initialization.noise import require_noise
from ..initialization.schemes import require_omega
from ..recipe import DRAWS, Recipe, as_seed, default_blueprint, default_recipe, default_sampling
from ..signals.fields import Field, Grid, Points, Sampling
from ..signals.metrics import Metrics, evaluate
from ..signals.paths import FilePath
from .evaluation import evaluate_rows, evaluating, place_of, require_module
from .network import CoordinateMLP
from .optimizers import UnitMuon
from .reading import read_layers
from .render import predict
from .result import Fit
from .sampling import Batches, Samples
from .steps import ModelSteps, TensorFiles


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
    progress: bool = ...,
    device: torch.device | str | None = ...,
    **options: Any,
) -> Fit: ...


@overload
def fit(
    model: nn.Module,
    field: Field,
    /,
    *,
    samples: Sampling | None = ...,
    noise: float = ...,
    recipe: Recipe | None = ...,
    optimizer: Optimizer | None = ...,
    steps: int | None = ...,
    seconds: float | None = ...,
    target_db: float | None = ...,
    test: Field | None = ...,
    moments: Moments | None = ...,
    blueprint: Blueprint | None = ...,
    seed: int = ...,
    callback: Callable[[Progress], Any] | None = ...,
    checkpoint: FilePath | None = ...,
    checkpoint_seconds: float = ...,
    resume: bool = ...,
) -> Fit: ...


def fit(model: Any, field: Any = None, /, **options: Any) -> Fit:
    """Fit a model to a field; or fit a signal, with a network that follows from it.

    The model is trained in place, on the device and in the precision that it has.

    **Arguments:**

    With a signal alone, `fit(signal)`:

    - `signal`: the name or the path of an image, a sound or an array; or an array; or a field.
    - `scheme`, `width`, `depth`: the initialization, and the size of the network. Default: by the signal.
    - `omega`: the frequency ω of the sines, for a scheme that has one. Default: the scheme's own.
    - `size`: resize the signal first, so that its longest axis has this many samples.
    - `progress`: whether to show a line of progress, or a live display in a notebook. Default: yes.
    - `device`: of the network. Default: PyTorch's own.

    With a model, `fit(model, field)`:

    - `model`: any module that maps positions `(n, in_size)` to channels `(n, out_size)`.
    - `field`: the samples.

    In both cases:

    - `samples`: `"points"` or `"averages"`, what the samples are fitted as. Default: `default_sampling`.
    - `noise`: the standard deviation of noise in the samples, which is then not learned; see `uniphase.Values`.
    - `recipe`: how to train. Default: `default_recipe`, which is Muon for a model that `read_layers` can read, and Adam
        for others.
    - `optimizer`: any optimizer of PyTorch that holds the model's parameters, in place of the recipe's optimizer and
        rate.
    - `steps`: that many steps, in place of the recipe's.
    - `seconds`: end after this time, without that of callbacks and of measuring. The rate falls with whichever of time
        and steps is further.
    - `target_db`: end when the signal-to-noise ratio of the latest steps reaches this. With a signal alone, the network
        has a size that should be enough for it, and with `seconds` one that can be trained in that time.
    - `test`: a field to measure at the end, e.g. the same image at a higher resolution.
    - `measure`: whether to evaluate the model at all samples at the end, for the metrics. Default: yes.
    - `moments`: those of the signal, if they are known already.
    - `blueprint`: what the model was drawn from, to be saved with it.
    - `seed`: of the batches, and with a signal alone of the network.
    - `callback`: called about twice a second with a `uniphase.Progress`. Default: in a Jupyter notebook a live display,
        which `callback=None` turns off; elsewhere what `progress` says.
    - `checkpoint`, `checkpoint_seconds`: a file for the state of the fit, and how often it is written. An interrupt
        writes it as well.
    - `resume`: go on from `checkpoint`, if it exists, with the model as it was before the first step. The result is
        that of a fit never interrupted, to the last bit, unless the model draws random numbers of its own.

    **Returns:**

    A `Fit`. If the loss explodes, the fit goes back to its last good state with half the rate, with a warning; after a
    few times it raises `uniphase.Diverged`, and the model is as it was before.

    !!! example
        ```python
        result = fit(model, field, steps=20)
        print(result.metrics.snr_db)

        result = fit("camera", size=16, steps=20, progress=False)

        adam = torch.optim.Adam(model.parameters(), lr=1e-3)
        result = fit(model, field, optimizer=adam, steps=20)
        ```
    """
    if field is None and isinstance(model, nn.Module):
        raise ValueError("fit got a model but no field; call fit(model, field)")
    if field is None:
        require_options(options, _OF_SIGNAL, _OF_MODEL, "fit(model, field)")
    else:
        require_options(options, _OF_MODEL, _OF_SIGNAL, "fit(signal)")
    if "seed" in options:
        options["seed"] = as_seed(options["seed"])
    run = partial(_fit_signal, model) if field is None else partial(_fit_model, model, field)
    return run_visibly(run, options)


def _fit_signal(
    signal: Any,
    *,
    scheme: str = "uniform-phase",
    omega: float | None = None,
    width: int | None = None,
    depth: int | None = None,
    size: int | None = None,
    progress: bool = True,
    device: torch.device | str | None = None,
    noise: float = 0.0,
    seed: int = 0,
    moments: Moments | None = None,
    target_db: float | None = None,
    seconds: float | None = None,
    **options: Any,
) -> Fit:
    require_omega(omega, [scheme])  # before anything is read
    require_limits(seconds, target_db)
    require_noise(noise)
    field = as_field(signal, size)
    moments = estimate_moments(field, noise=noise) if moments is None else moments
    limits: dict[str, Any] = {"target_db": target_db, "seconds": seconds}
    chosen: dict[str, Any] = {"omega": omega, "width": width, "depth": depth}
    blueprint = default_blueprint(field, moments, scheme, **chosen, **limits)
    model = CoordinateMLP(blueprint, device=device, generator=torch.Generator().manual_seed(seed))
    if progress and "callback" not in options:
        options["callback"] = progress_line
    given: dict[str, Any] = {"noise": noise, "moments": moments, "seed": seed, "blueprint": blueprint}
    return _fit_model(model, field, **given, **limits, **options)


def _fit_model(
    model: Any,
    field: Any,
    *,
    samples: Any = None,
    noise: float = 0.0,
    recipe: Recipe | None = None,
    optimizer: Any = None,
    steps: int | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    test: Field | None = None,
    measure: bool = True,
    moments: Moments | None = None,
    blueprint: Blueprint | None = None,
    seed: int = 0,
    callback: Callable[[Progress], Any] | None = None,
    checkpoint: FilePath | None = None,
    checkpoint_seconds: float = 10.0,
    resume: bool = False,
) -> Fit:
    require_module(model)
    require_limits(seconds, target_db)
    for each in (field, test):
        if each is not None:
            _require_sizes(model, each)
    observed = _observe(model, field, samples, moments, noise)
    recipe, mover = _mover(model, observed, recipe, optimizer, steps)
    plan = observed.plan(recipe, seconds, target_db, callback, lambda _: model)
    batches = Batches(Samples.of(field, *place_of(model)), observed.sampling, recipe.batch, seed)
    moving = ModelSteps(model, mover, batches, observed.variance)
    start = State(*moving.snapshot())
    identity = "" if checkpoint is None else _identity(recipe, seed, observed, start, mover)
    file = Checkpoint(checkpoint, checkpoint_seconds, identity, TensorFiles())
    training = Training(moving, plan, np.full(recipe.steps, np.nan), file)
    state, stop = _run(training, moving, start, resume)
    nothing = None, None
    prediction, metrics = _measure(model, field, observed.sampling) if measure else nothing
    test_prediction, test_metrics = nothing if test is None or not measure else _measure(model, test, observed.sampling)
    return Fit(
        model,
        metrics,
        test_metrics,
        plan.scale * training.losses[: state.step],
        stop,  # pyright: ignore[reportArgumentType]
        state.step,
        state.seconds,
        recipe,
        seed,
        field,
        observed.sampling,
        observed.moments,
        blueprint,
        kept(prediction),
        kept(test_prediction),
    )


def _run(training: Training, moving: ModelSteps, start: State, resume: bool) -> tuple[State, str]:
    """Train to the end. The model is then in the last state or, if it diverged, in the first one."""
    try:
        state, stop = training.run(training.checkpoint.restore(start, training.losses) if resume else start)
    except Diverged:
        moving.go_to(start.parameters, start.optimizer)
        raise
    moving.go_to(state.parameters, state.optimizer)  # a checkpoint may be that of a fit that had ended
    return state, stop


def _measure(model: nn.Module, field: Field, sampling: Sampling) -> tuple[np.ndarray, Metrics]:
    prediction = predict(model, field, average=sampling == "averages" and isinstance(field, Grid))
    return prediction, evaluate(prediction, field)


def _observe(model: nn.Module, field: Field, samples: Any, moments: Moments | None, noise: float) -> FieldSamples:
    require_noise(noise)
    require_moments(moments, field.in_size, field.out_size)
    if samples is None:
        parameters = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
        samples = default_sampling(field, parameters)
    require_sampling(samples)
    if samples == "averages" and not isinstance(field, Grid):
        raise ValueError("scattered points have no cells; pass samples='points'")
    return FieldSamples(field, samples, estimate_moments(field, noise=noise) if moments is None else moments, noise)


def _require_sizes(model: nn.Module, field: Any) -> None:
    """The model takes the field's coordinates, and gives its channels."""
    if not isinstance(field, Grid | Points):
        raise ValueError(f"field is a {type(field).__name__}; pass a Grid or Points, e.g. from uniphase.load")
    device, dtype = place_of(model)
    middle = torch.tensor(field.position_moments()[0]).to(device, dtype)
    try:
        with evaluating(model), torch.no_grad():
            outputs = evaluate_rows(model, torch.stack([middle, middle]))
    except Exception as error:  # a user's model may raise anything
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"the field has {counted(field.in_size, 'coordinate')}, but the model does not accept such positions "
            f"({reason}); pass a module from positions (n, {field.in_size}) to channels (n, {field.out_size})"
        ) from error
    require_channels("model", outputs.shape[1], field)


def _mover(
    model: nn.Module, observed: FieldSamples, recipe: Recipe | None, optimizer: Any, steps: int | None
) -> tuple[Recipe, Optimizer]:
    """The recipe and the optimizer. Its rate is 1 unless it was given; the factors of the steps have the recipe's."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError("the model has no parameters to train; call model.requires_grad_()")
    _require_optimizer(optimizer, trained)
    chain, reason = (None, "") if optimizer is not None else _read(model)
    if recipe is None:
        draws = DRAWS if observed.sampling == "averages" else 1
        recipe = default_recipe(observed.field, chain, noisy=observed.noise > 0, draws=draws, steps=steps)
    recipe = recipe if steps is None else replace(recipe, steps=steps)
    if optimizer is not None:
        return replace(recipe, optimizer="given", learning_rate=1.0, final_fraction=1.0), optimizer
    if recipe.optimizer == "adam":
        return recipe, torch.optim.Adam(trained, lr=1.0)
    if chain is None:
        raise ValueError(f"recipe.optimizer is 'muon', but {reason}. Or pass optimizer=, or a recipe with adam")
    return recipe, UnitMuon(model, observed.field, observed.moments, lr=1.0)


def _require_optimizer(optimizer: Any, trained: list[nn.Parameter]) -> None:
    if optimizer is None:
        return
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"optimizer is {optimizer!r}; pass one of PyTorch, e.g. torch.optim.Adam(model.parameters())")
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    if not any(id(parameter) in held for parameter in trained):
        raise ValueError("optimizer has no parameter of the model; make it from model.parameters()")


def _read(model: nn.Module) -> tuple[Any, str]:
    """The layers of a model, or why it has none."""
    try:
        return read_layers(model), ""
    except ValueError as error:
        return None, str(error)


def _identity(recipe: Recipe, seed: int, observed: FieldSamples, start: State, optimizer: Optimizer) -> str:
    things = recipe, seed, observed, start.parameters, type(optimizer), start.optimizer
    return identify(*things, to_numpy=_to_numpy)


def _to_numpy(thing: Any) -> Any:
    if not isinstance(thing, Tensor):
        return thing
    return (thing.float() if thing.dtype == torch.bfloat16 else thing).detach().cpu().numpy()


# The options of `fit(model, field)` and of `fit(signal)`, which makes the blueprint itself.
_OF_MODEL = keywords(_fit_model)
_OF_SIGNAL = {name: each for name, each in (keywords(_fit_signal) | _OF_MODEL).items() if name != "blueprint"}

# What `help` and editors show: every option by its name and default.
fit.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
    [*list(inspect.signature(fit).parameters.values())[:2], *(_OF_SIGNAL | _OF_MODEL).values()],
    return_annotation=Fit,
)
