"""What `uniphase fit` does: from a signal to a network in a file."""

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import plots as figures
from ..initialization.blueprint import Blueprint
from ..initialization.schemes import get_scheme
from ..jax.files import save_network
from ..jax.network import CoordinateMLP
from ..recipe import Recipe
from ..signals import files
from ..signals.fields import Grid
from ..storage.network_file import Saved
from ..training.loop import Diverged, Fit, Progress, fit
from .outputs import require_writable, writing
from .subjects import Options, Subject, choose_recipe, draw_network, evaluate_at, load_subject, require_seed, shown_part


@dataclass(frozen=True)
class Outputs:
    """The files of a fit: the network, the state while it runs, the picture, and for sound the sound."""

    network: Path
    state: Path
    preview: Path
    sound: Path | None

    @property
    def results(self) -> tuple[Path, ...]:
        """The files that a fit leaves."""
        return tuple(path for path in (self.network, self.preview, self.sound) if path is not None)


@dataclass(frozen=True, eq=False)
class Job:
    """A fit that is ready to run."""

    signal: str
    subject: Subject
    blueprint: Blueprint
    network: CoordinateMLP
    recipe: Recipe
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
    """Load a signal, draw its network and see that the results can be written, before any work is done for them.

    **Arguments:**

    - `signal`, `scheme`: a name or a file, and the initialization.
    - `seed`: of the network and of the batches.
    - `output`: where the network goes. Default: the name of the signal with the suffix `.uniphase`, in the current
        directory.
    - `resume`: whether to go on from the state that an interrupted fit left, if there is one.
    - `force`: whether files that exist may be replaced.

    !!! example
        ```python
        job = prepare("camera", Options(size=64))
        print(job.blueprint)
        ```
    """
    get_scheme(scheme)
    require_seed(seed)
    subject = load_subject(signal, options)
    outputs = _outputs(Path(f"{Path(signal).stem}.uniphase" if output is None else output), subject.field)
    interrupted = outputs.state.exists()
    if resume and not interrupted:
        warnings.warn(f"{outputs.state}: there is no interrupted fit; starting one", stacklevel=2)
    if interrupted and not (resume or force):
        raise FileExistsError(
            f"{outputs.state}: left by an interrupted fit; pass --resume to go on, --force to drop it"
        )
    require_writable(outputs.results, signal, replace=force or (resume and interrupted))
    blueprint, network = draw_network(subject, scheme, options, seed)
    recipe = choose_recipe(subject.field, network, options)
    return Job(signal, subject, blueprint, network, recipe, seed, outputs, resume)


def run(
    job: Job,
    *,
    seconds: float | None = None,
    target_db: float | None = None,
    callback: Callable[[Progress], Any] | None = None,
    checkpoint_seconds: float = 10.0,
) -> Fit:
    """Fit, write the results and remove the state. The arguments are those of `fit`.

    !!! example
        ```python
        result = run(prepare("camera", Options(size=16, steps=20)))
        ```
    """
    outputs, (field, test, moments) = job.outputs, job.subject
    if not job.resume:
        outputs.state.unlink(missing_ok=True)
    with writing(outputs.network, "mend that, and go on with --resume"):
        try:
            result = fit(
                job.network,
                field,
                recipe=job.recipe,
                seconds=seconds,
                target_db=target_db,
                test=test,
                moments=moments,
                seed=job.seed,
                callback=callback,
                checkpoint=outputs.state,
                checkpoint_seconds=checkpoint_seconds,
                resume=job.resume,
            )
        except Diverged as error:
            outputs.state.unlink(missing_ok=True)
            raise ValueError(f"{job.signal}: {error} with --lr") from error
        training = {
            "signal": job.signal,
            "scheme": job.blueprint.scheme,
            "recipe": dataclasses.asdict(result.recipe),
            "seed": job.seed,
            "steps": result.steps,
            "seconds": result.seconds,
            "stop": result.stop,
            "test_metrics": None if result.test_metrics is None else result.test_metrics.to_dict(),
        }
        saved = Saved.of(
            result.network, job.blueprint, field, moments=moments, metrics=result.metrics, training=training
        )
        save_network(outputs.network, saved)
        shown = shown_part(field)
        prediction = evaluate_at(result.network, shown)
        if outputs.sound:
            files.write(outputs.sound, prediction, rate=field.rate)
        title = f"{Path(job.signal).name}: {job.blueprint.scheme}, {job.blueprint.parameters:,} parameters"
        figures.preview(outputs.preview, shown, prediction, result.losses, result.metrics, title)
        outputs.state.unlink(missing_ok=True)
    return result


def _outputs(network: Path, field: Grid) -> Outputs:
    if network.suffix != ".uniphase":
        raise ValueError(f"{network}: the suffix is {network.suffix!r}; use .uniphase")
    sound = network.with_suffix(".fit.wav") if field.medium == "sound" else None
    return Outputs(network, network.with_suffix(".uniphase.part"), network.with_suffix(".fit.png"), sound)
