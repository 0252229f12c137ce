"""`uniphase fit`: from a signal to a network in a file."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from . import terminal
from .options import Force, Json, Options, Output, Signal

if TYPE_CHECKING:
    from ..initialization.blueprint import Blueprint
    from ..jax.network import CoordinateMLP
    from ..recipe import Recipe
    from ..signals.fields import Field
    from ..training.plan import Progress
    from ..training.result import Fit
    from .subjects import Subject

_STOPS = {"steps": "all of them", "seconds": "time limit reached", "target": "target reached"}


def fit(
    signal: Signal,
    /,
    *,
    scheme: str = "uniform-phase",
    options: Options | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    seed: int = 0,
    output: Output = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a network to a signal and write it to a small file, with a picture of the fit.

    For example:

        uniphase fit photo.jpg
        uniphase fit song.wav --seconds 60 -o song.uniphase
        uniphase fit photo.jpg --scheme siren --omega 60
        uniphase fit clip.mp4 --size 128
        uniphase fit stations.csv --coordinates lon,lat --values temperature

    Parameters
    ----------
    scheme
        Initialization; `uniphase schemes` lists them.
    seconds
        Stop after this time.
    target_db
        Stop when the signal-to-noise ratio of the latest steps reaches this.
    seed
        Seed of the network and of the batches.
    output
        File of the network. Default: the name of the signal with .uniphase, in the current directory. The picture is
        written next to it as .fit.png, and a sound as .fit.wav.
    resume
        Continue a fit that was interrupted. The result is the same as without the interruption.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    job = prepare(signal, options or Options(), scheme=scheme, seed=seed, output=output, resume=resume, force=force)
    if not json:
        print(f"{job.blueprint}\n", flush=True)
    try:
        with terminal.fit_progress(quiet=json) as tell:
            result = run(job, seconds=seconds, target_db=target_db, callback=tell)
    except KeyboardInterrupt:
        how = "; the same command with --resume continues the fit" if job.outputs.state.exists() else ""
        print(f"uniphase: interrupted{how}", file=sys.stderr)
        sys.exit(130)
    _print_result(job, result, json)


def _print_result(job: "Job", result: "Fit", json: bool) -> None:
    pairs = {"train": result.metrics, "test": result.test_metrics}
    metrics = {name: numbers.to_dict() for name, numbers in pairs.items() if numbers is not None}
    if json:
        metrics = {name: {key: numbers[key] for key in terminal.METRICS} for name, numbers in metrics.items()}
        totals = {"steps": result.steps, "seconds": result.seconds, "parameters": job.blueprint.parameters}
        terminal.print_json(metrics | totals | {"stop": result.stop, "output": str(job.outputs.network)})
        return
    terminal.print_metrics(metrics)
    done = f"{result.steps:,} steps in {result.seconds:.1f} s ({_STOPS[result.stop]})"
    network, *others = job.outputs.results
    print(f"\n{job.blueprint.parameters:,} parameters, {done}")
    print(f"wrote {network} ({network.stat().st_size:,} bytes), {', '.join(map(str, others))}")


@dataclass(frozen=True)
class Outputs:
    """The files of a fit: the network, the state while it runs, the picture and, for a sound, the sound."""

    network: Path
    state: Path
    preview: Path
    sound: Path | None

    @property
    def results(self) -> tuple[Path, ...]:
        """The files that remain after the fit."""
        return tuple(path for path in (self.network, self.preview, self.sound) if path is not None)


@dataclass(frozen=True, eq=False)
class Job:
    """A fit that is ready to run."""

    signal: str
    subject: "Subject"
    blueprint: "Blueprint"
    network: "CoordinateMLP"
    recipe: "Recipe"
    seed: int
    outputs: Outputs
    resume: bool


def prepare(
    signal: str,
    options: Options,
    *,
    scheme: str = "uniform-phase",
    seed: int = 0,
    output: str | None = None,
    resume: bool = False,
    force: bool = False,
) -> Job:
    """Load a signal, draw its network, and check that the results can be written before training starts.

    **Arguments:**

    - `signal`, `scheme`: a name or a file, and the initialization.
    - `seed`: of the network and of the batches.
    - `output`: where the network is written. Default: the name of the signal with the suffix `.uniphase`, in the
        current directory.
    - `resume`: whether to continue from the state that an interrupted fit left, if there is one.
    - `force`: whether existing files may be replaced.

    !!! example
        ```python
        job = prepare("camera", Options(size=64))
        print(job.blueprint)
        ```
    """
    from ..plots.drawing import require_matplotlib
    from ..signals.paths import stem_of
    from .outputs import require_writable
    from .subjects import choose_recipe, draw_network, load_subject, make_blueprint, require_omega, require_seed

    require_matplotlib()
    require_omega([scheme], options)
    require_seed(seed)
    subject = load_subject(signal, options)
    outputs = _outputs(Path(f"{stem_of(signal)}.uniphase" if output is None else output), subject.field)
    interrupted = outputs.state.exists()
    if resume and not interrupted:
        warnings.warn(f"{outputs.state}: there is no interrupted fit; starting one", stacklevel=2)
    if interrupted and not (resume or force):
        raise FileExistsError(
            f"{outputs.state}: left by an interrupted fit; pass --resume to continue it, --force to discard it"
        )
    require_writable(outputs.results, signal, replace=force or (resume and interrupted))
    blueprint = make_blueprint(subject, scheme, options)
    recipe = choose_recipe(subject.field, blueprint, options)
    return Job(signal, subject, blueprint, draw_network(blueprint, seed), recipe, seed, outputs, resume)


def run(
    job: Job,
    *,
    seconds: float | None = None,
    target_db: float | None = None,
    callback: "Callable[[Progress], Any] | None" = None,
    checkpoint_seconds: float = 10.0,
) -> "Fit":
    """Train, write the results and remove the state. The arguments are those of `fit`.

    !!! example
        ```python
        result = run(prepare("camera", Options(size=16, steps=20)))
        ```
    """
    from ..training.fit import fit
    from ..training.plan import Diverged
    from .outputs import writing

    outputs, (field, test, moments) = job.outputs, job.subject
    if not job.resume:
        outputs.state.unlink(missing_ok=True)
    with writing(outputs.network, "fix that, then continue with --resume"):
        try:
            result = fit(
                job.network,
                field,
                recipe=job.recipe,
                seconds=seconds,
                target_db=target_db,
                test=test,
                moments=moments,
                blueprint=job.blueprint,
                seed=job.seed,
                callback=callback,
                checkpoint=outputs.state,
                checkpoint_seconds=checkpoint_seconds,
                resume=job.resume,
            )
        except Diverged as error:
            outputs.state.unlink(missing_ok=True)
            raise ValueError(f"{job.signal}: {error} with --lr") from error
        _write_results(job, result)
    outputs.state.unlink(missing_ok=True)
    return result


def _write_results(job: Job, result: "Fit") -> None:
    from ..plots.preview import write_preview
    from ..plots.scatter import surface_shape
    from ..signals import files
    from ..signals.fields import Grid
    from .subjects import shown_part, shown_prediction

    outputs, field = job.outputs, job.subject.field
    result.save(outputs.network, training={"signal": job.signal, "scheme": job.blueprint.scheme})
    prediction = shown_prediction(result.network, field, result.prediction)
    if outputs.sound and isinstance(field, Grid):
        files.write(outputs.sound, prediction, rate=field.rate)
    title = f"{Path(job.signal).name}: {job.blueprint.scheme}, {job.blueprint.parameters:,} parameters"
    assert result.metrics is not None
    shape = surface_shape(field)
    between = {} if shape is None else {"surface": result.render(shape)}
    write_preview(outputs.preview, shown_part(field), prediction, result.losses, result.metrics, title, **between)


def _outputs(network: Path, field: "Field") -> Outputs:
    from .subjects import is_sound

    if network.suffix != ".uniphase":
        raise ValueError(f"{network}: the suffix is {network.suffix!r}; use .uniphase")
    sound = network.with_suffix(".fit.wav") if is_sound(field) else None
    return Outputs(network, network.with_suffix(".uniphase.part"), network.with_suffix(".fit.png"), sound)
