"""`uniphase fit`: from a signal to a network in a file."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from . import terminal
from .options import Bits, Force, Json, Options, Output, Signals

if TYPE_CHECKING:
    from ..fitting.plan import Progress
    from ..initialization.blueprint import Blueprint
    from ..jax.network import CoordinateMLP
    from ..recipe import Recipe
    from ..storage.network_file import NetworkFile
    from ..training.result import Fit
    from .subjects import Subject

_STOPS = {
    "steps": "all of them",
    "seconds": "time limit reached",
    "target": "target reached",
    "noise": "only noise was left",
}


def fit(
    *signals: Signals,
    scheme: str = "uniform-phase",
    options: Options | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    seed: int = 0,
    bits: Bits = None,
    output: Output = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a network to a signal and write it to a small file, with a picture of the fit.

    Several signals are fitted in turn, each to a file of its own, with one table at the end. One that cannot be fitted
    does not end the others; the exit code is then 1.

    For example:

        uniphase fit photo.jpg
        uniphase fit *.png --resume
        uniphase fit song.wav --seconds 60 -o song.uniphase
        uniphase fit photo.jpg --scheme siren --omega 60
        uniphase fit scratched.png --mask scratches.png
        uniphase fit night.jpg --denoise
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
        File of the network, or an existing directory for it. Default: the name of the signal with .uniphase, in the
        current directory. The picture is written next to it as .fit.png, and a sound as .fit.wav.
    resume
        Continue a fit that was interrupted. The result is the same as without the interruption. Of several signals,
        those that are finished are not fitted again.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    options = options or Options()
    if len(signals) != 1:
        from .fits import Settings, fit_signals

        limits = {"seconds": seconds, "target_db": target_db}
        settings = Settings(options, scheme, seed, **limits, bits=bits, output=output, resume=resume, force=force)
        return fit_signals(signals, settings, json=json)
    job = prepare(signals[0], options, scheme=scheme, seed=seed, bits=bits, output=output, resume=resume, force=force)
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
    if json:
        from ..storage.network_file import read_network

        network = job.outputs.network
        terminal.print_json(summary(network, read_network(network, lambda *_: None)))
        return
    pairs = {"train": result.metrics, "test": result.test_metrics}
    terminal.print_metrics({name: numbers.to_dict() for name, numbers in pairs.items() if numbers is not None})
    done = f"{result.steps:,} steps in {result.seconds:.1f} s ({_STOPS[result.stop]})"
    network, *others = job.outputs.results
    print(f"\n{job.blueprint.parameters:,} parameters, samples as {result.sampling}, {done}")
    if job.subject.noise:
        print(f"noise: standard deviation {job.subject.noise:.4g}")
    if job.bits is not None and result.exact_metrics is not None and result.metrics is not None:
        fall = f"PSNR falls from {result.exact_metrics.psnr_db:.2f} to {result.metrics.psnr_db:.2f} dB"
        print(f"hidden weights in {job.bits} bits: {fall}")
    print(f"wrote {network} ({network.stat().st_size:,} bytes), {', '.join(map(str, others))}")


def summary(path: Path, content: "NetworkFile[None]") -> dict[str, Any]:
    """What `--json` prints about a finished fit, from its file."""
    training, pairs = content.training, {"train": content.metrics, "test": content.training["test_metrics"]}
    metrics = {
        name: {key: numbers[key] for key in terminal.METRICS} for name, numbers in pairs.items() if numbers is not None
    }
    totals = {"steps": training["steps"], "seconds": training["seconds"], "parameters": content.blueprint.parameters}
    return {**metrics, **totals, "stop": training["stop"], "output": str(path)}


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
    options: Options
    subject: "Subject"
    blueprint: "Blueprint"
    network: "CoordinateMLP"
    recipe: "Recipe"
    seed: int
    outputs: Outputs
    resume: bool
    bits: int | None = None


def prepare(
    signal: str,
    options: Options,
    *,
    scheme: str = "uniform-phase",
    seed: int = 0,
    bits: int | None = None,
    output: str | None = None,
    resume: bool = False,
    force: bool = False,
) -> Job:
    """Load a signal, draw its network, and check that the results can be written before training starts.

    **Arguments:**

    - `signal`, `scheme`: a name or a file, and the initialization.
    - `seed`: of the network and of the batches.
    - `bits`: of the hidden weights in the file, as for `NetworkFile`.
    - `output`: where the network is written: a file, or a directory for one with the name of the signal and the suffix
        `.uniphase`. Default: the current directory.
    - `resume`: whether to continue from the state that an interrupted fit left, if there is one.
    - `force`: whether existing files may be replaced.

    !!! example
        ```python
        job = prepare("camera", Options(size=64))
        print(job.blueprint)
        ```
    """
    from .subjects import choose_recipe, draw_network, is_sound, load_subject, make_blueprint

    require_choices(scheme, options, seed)
    subject = load_subject(signal, options)
    outputs = name_outputs(signal, output, sound=is_sound(subject.field))
    if resume and not outputs.state.exists():
        warnings.warn(f"{outputs.state}: there is no interrupted fit; starting one", stacklevel=2)
    require_free(outputs, signal, resume=resume, force=force)
    blueprint = make_blueprint(subject, scheme, options)
    recipe = choose_recipe(subject.field, blueprint, options, subject.noise)
    return Job(signal, options, subject, blueprint, draw_network(blueprint, seed), recipe, seed, outputs, resume, bits)


def require_choices(scheme: str, options: Options, seed: int) -> None:
    """Raise an error for what would be wrong with any signal."""
    from ..initialization.schemes import get_scheme, require_omega
    from ..plots.drawing import require_matplotlib
    from ..recipe import as_seed

    require_matplotlib()
    get_scheme(scheme)
    require_omega(options.omega, [scheme])
    as_seed(seed)


def require_free(outputs: Outputs, signal: str, *, resume: bool, force: bool) -> None:
    """Raise an error if a fit would replace files that it must not."""
    from .outputs import require_writable

    interrupted = outputs.state.exists()
    if interrupted and not (resume or force):
        raise FileExistsError(
            f"{outputs.state}: left by an interrupted fit; pass --resume to continue it, --force to discard it"
        )
    require_writable(outputs.results, signal, replace=force or (resume and interrupted))


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
    from ..fitting.plan import Diverged
    from ..training.fit import fit
    from .outputs import writing
    from .subjects import observations

    outputs = job.outputs
    made_from = origin(
        job.signal,
        job.blueprint.scheme,
        job.options,
        seed=job.seed,
        seconds=seconds,
        target_db=target_db,
        bits=job.bits,
    )
    if not job.resume:
        outputs.state.unlink(missing_ok=True)
    with writing(outputs.network, "fix that, then continue with --resume"):
        try:
            result = fit(
                job.network,
                observations(job.subject, job.blueprint, job.options),
                recipe=job.recipe,
                seconds=seconds,
                target_db=target_db,
                test=job.subject.test,
                blueprint=job.blueprint,
                seed=job.seed,
                callback=callback,
                checkpoint=outputs.state,
                checkpoint_seconds=checkpoint_seconds,
                resume=job.resume,
            )
        except Diverged as error:
            outputs.state.unlink(missing_ok=True)
            raise ValueError(f"{job.signal}: {error}, with --lr") from error
        if job.bits is not None:
            result = result.quantized(job.bits, test=job.subject.test)
        _write_results(job, result, made_from)
    outputs.state.unlink(missing_ok=True)
    return result


def origin(
    signal: str,
    scheme: str,
    options: Options,
    *,
    seed: int,
    seconds: float | None,
    target_db: float | None,
    bits: int | None,
) -> dict[str, Any]:
    """What a fit is made from, for its file: the signal, with the hash of its file, and all that was chosen."""
    from ..signals.datasets import SIGNAL_NAMES

    chosen = asdict(options) | {"seconds": seconds, "target_db": target_db, "bits": bits}
    given = {name: value for name, value in chosen.items() if value is not None and value is not False}
    notes = {"signal": signal, "scheme": scheme, "seed": seed, "options": given}
    if signal in SIGNAL_NAMES:
        return notes
    return notes | {"sha256": _hash(Path(signal))}


def _hash(path: Path) -> str:
    """The SHA-256 of a file; of a directory, that of the names and hashes of all files in it."""
    import hashlib

    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return hashlib.sha256(repr([(str(f.relative_to(path)), _hash(f)) for f in files]).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_results(job: Job, result: "Fit", made_from: dict[str, Any]) -> None:
    from ..plots.preview import write_preview
    from ..plots.scatter import surface_shape
    from ..signals import files
    from ..signals.fields import Grid
    from .subjects import shown_part, shown_prediction

    outputs, field = job.outputs, job.subject.field
    result.save(outputs.network, training=made_from)
    prediction = shown_prediction(result.network, field, result.prediction)
    if outputs.sound and isinstance(field, Grid):
        files.write(outputs.sound, prediction, rate=field.rate)
    title = f"{Path(job.signal).name}: {job.blueprint.scheme}, {job.blueprint.parameters:,} parameters"
    assert result.metrics is not None
    shape = surface_shape(field)
    between = {} if shape is None else {"surface": result.render(shape)}
    write_preview(outputs.preview, shown_part(field), prediction, result.losses, result.metrics, title, **between)


def name_outputs(signal: str, output: str | None, *, sound: bool) -> Outputs:
    """The files of a fit: next to the one that is given, or by the name of the signal in a directory."""
    from ..signals.paths import stem_of

    path = Path("." if output is None else output)
    network = path / f"{stem_of(signal)}.uniphase" if path.is_dir() else path
    if network.suffix != ".uniphase":
        raise ValueError(f"{network}: the suffix is {network.suffix!r}; use .uniphase")
    heard = network.with_suffix(".fit.wav") if sound else None
    return Outputs(network, network.with_suffix(".uniphase.part"), network.with_suffix(".fit.png"), heard)
