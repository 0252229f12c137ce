"""`uniphase fit`: from a signal to a network in a file."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from . import terminal
from .display import watching
from .options import Bits, Force, Json, Options, Output, Signals
from .running import run

if TYPE_CHECKING:
    from ..initialization.blueprint import Blueprint
    from ..jax.network import CoordinateMLP
    from ..recipe import Recipe
    from ..signals.fields import Sampling
    from ..storage.network_file import NetworkFile
    from ..training.memory import FitMemory
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
    log: str | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fit a network to a signal and write it to a file, with a picture of the fit.

    Several signals are fitted in turn, each to a file of its own, with one table at the end. One that cannot be fitted
    does not end the others; the exit code is then 1.

    For example:

        uniphase fit photo.jpg
        uniphase fit *.png --resume
        uniphase fit song.wav --seconds 60 -o song.uniphase
        uniphase fit photo.jpg --target-db 30
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
        Be ready after this time, with everything measured and written; loading the signal and compiling come before it.
        The network of a large signal is then smaller, unless --width is given. If measuring all samples would take more
        than a quarter of it, some are measured, evenly spread.
    target_db
        Stop when the signal-to-noise ratio of the latest steps reaches this. Unless --width is given, the network is
        the smallest that should be able to.
    seed
        Seed of the network and of the batches.
    output
        File of the network, or an existing directory for it. Default: the name of the signal with .uniphase, in the
        current directory. The picture is written next to it as .fit.png, and a sound as .fit.wav.
    log
        Also write the progress to this CSV file, about twice a second: step, seconds, loss, SNR, rate and speed.
    resume
        Continue a fit that was interrupted. The result is the same as without the interruption. A signal whose fit is
        finished is not fitted again.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    options = options or Options()
    from .fits import Settings, fit_signals, look_ahead, may_replace

    limits = {"seconds": seconds, "target_db": target_db}
    settings = Settings(options, scheme, seed, **limits, bits=bits, output=output, resume=resume, force=force)
    if len(signals) != 1:
        if log is not None:
            raise ValueError(f"log is {log}, but there are {len(signals)} signals; leave it out, or fit each alone")
        return fit_signals(signals, settings, json=json)
    from ..fitting.arguments import require_limits
    from .logs import require_log
    from .outputs import require_writable

    require_limits(seconds, target_db)
    if resume and (done := look_ahead(signals[0], settings)):
        return _print_done(done.summary, json)
    job = prepare(
        signals[0],
        options,
        scheme=scheme,
        seed=seed,
        seconds=seconds,
        target_db=target_db,
        bits=bits,
        output=output,
        resume=resume,
        force=may_replace(signals[0], settings),
    )
    if log is not None:
        require_writable([Path(log)], signals[0], replace=resume or force)
        require_log(Path(log), resume=resume)
    if not json:
        print(_summary(job), flush=True)
    try:
        with watching(job.subject.field, quiet=json) as watcher:
            result = run(job, seconds=seconds, target_db=target_db, watcher=watcher, log=log)
    except KeyboardInterrupt as stop:
        how = ["the same command with --resume continues the fit"] if job.outputs.state.exists() else []
        print("; ".join(["uniphase: interrupted", *map(str, stop.args), *how]), file=sys.stderr)
        sys.exit(130)
    _print_result(job, result, json)


def _summary(job: "Job") -> str:
    """What is fitted, by what, and in how much memory."""
    from ..training.memory import free_memory, in_words

    field, blueprint, recipe = job.subject.field, job.blueprint, job.recipe
    widths = {plan.rows for plan in blueprint.layers[:-1]}
    depth = sum(plan.role == "hidden" for plan in blueprint.layers)
    free = free_memory()
    return "\n".join(
        [
            f"signal   {Path(job.signal).name}: {terminal.described(field)}",
            f"network  {blueprint.scheme}, width {terminal.times(sorted(widths))}, depth {depth}, "
            f"{blueprint.parameters:,} parameters",
            f"fit      {recipe.steps:,} steps of {min(recipe.batch, field.samples):,} samples, as {job.sampling}",
            f"memory   about {in_words(job.memory.total)}" + (f" of {in_words(free)} that are free" if free else ""),
        ]
    )


def _print_result(job: "Job", result: "Fit", json: bool) -> None:
    from ..storage.network_file import read_header, read_network

    network, *others = (path for path in job.outputs.results if path.exists())
    if json:
        terminal.print_json(summary(network, read_network(network, lambda *_: None)))
        return
    pairs = {"train": result.metrics, "test": result.test_metrics}
    terminal.print_metrics({name: numbers.to_dict() for name, numbers in pairs.items() if numbers is not None})
    trained = f"{result.steps:,} steps in {result.seconds:.1f} s ({_STOPS[result.stop]})"
    print(f"\n{job.blueprint.parameters:,} parameters, samples as {result.sampling}, {trained}")
    if measured := read_header(network)["training"].get("measured"):
        print(f"measured on {measured:,} of {job.subject.field.samples:,} samples, for lack of time, without SSIM")
    if job.outputs.sound not in (None, *others):
        print(f"no {job.outputs.sound}, for lack of time; uniphase render {network} writes the sound")
    if job.subject.noise:
        print(f"noise: standard deviation {job.subject.noise:.4g}")
    if job.bits is not None and result.exact_metrics is not None and result.metrics is not None:
        fall = f"PSNR falls from {result.exact_metrics.psnr_db:.2f} to {result.metrics.psnr_db:.2f} dB"
        print(f"hidden weights in {job.bits} bits: {fall}")
    if advice := _advice(job, result):
        print(advice)
    print(f"wrote {network} ({network.stat().st_size:,} bytes), {', '.join(map(str, others))}")


def _print_done(found: dict[str, Any], json: bool) -> None:
    """What was printed when the fit ended, but for its progress."""
    if json:
        return terminal.print_json(found)
    terminal.print_metrics({name: found[name] for name in ("train", "test") if name in found})
    print(f"\n{found['output']}: done already by the same command; without --resume, --force fits it again")


def _advice(job: "Job", result: "Fit") -> str | None:
    """What a larger network would be good for, if this one cannot hold the signal."""
    from ..recipe import size_to_hold

    assert result.metrics is not None
    found = size_to_hold(job.subject.field, job.blueprint.parameters, result.metrics.snr_db)
    if found is None or job.subject.noise or result.stop != "steps":
        return None
    width, expected = found
    values, longer = job.subject.field.values.size, (width / job.blueprint.width) ** 2
    return (
        f"the network is too small for this signal: {job.blueprint.parameters:,} parameters for {values:,} values; "
        f"--width {width} should reach about {expected:.0f} dB SNR, in {longer:.2g} times the time"
    )


def summary(path: Path, content: "NetworkFile[None]") -> dict[str, Any]:
    """What `--json` prints about a finished fit, from its file."""
    training, pairs = content.training, {"train": content.metrics, "test": content.training["test_metrics"]}
    metrics = {
        name: {key: numbers[key] for key in terminal.METRICS} for name, numbers in pairs.items() if numbers is not None
    }
    measured = {"measured": training["measured"]} if "measured" in training else {}
    totals = {"steps": training["steps"], "seconds": training["seconds"], "parameters": content.blueprint.parameters}
    return {**metrics, **measured, **totals, "stop": training["stop"], "output": str(path)}


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
    force: bool = False
    bits: int | None = None

    @property
    def sampling(self) -> "Sampling":
        """As what the samples are fitted."""
        from ..recipe import default_sampling

        return self.options.samples or default_sampling(self.subject.field, self.blueprint.parameters)

    @property
    def memory(self) -> "FitMemory":
        """What the fit will take."""
        from ..training.memory import fit_memory

        return fit_memory(self.subject.field, self.blueprint, self.recipe, self.subject.test)


def prepare(
    signal: str,
    options: Options,
    *,
    scheme: str = "uniform-phase",
    seed: int = 0,
    seconds: float | None = None,
    target_db: float | None = None,
    bits: int | None = None,
    output: str | None = None,
    resume: bool = False,
    force: bool = False,
) -> Job:
    """Load a signal, draw its network, and check that the results can be written before training starts.

    **Arguments:**

    - `signal`, `scheme`: a name or a file, and the initialization.
    - `seed`: of the network and of the batches.
    - `seconds`, `target_db`: the time in which the network should be trained, and the signal-to-noise ratio that it
        should be large enough for.
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
    from .outputs import alone
    from .subjects import choose_recipe, draw_network, is_sound, load_subject, make_blueprint

    require_choices(scheme, options, seed)
    subject = load_subject(signal, options)
    outputs = name_outputs(signal, output, sound=is_sound(subject.field))
    if resume and not outputs.state.exists():
        warnings.warn(f"{outputs.state}: there is no interrupted fit; starting one", stacklevel=2)
    with alone(outputs.network):
        require_free(outputs, signal, resume=resume, force=force)
    blueprint = make_blueprint(subject, scheme, options, seconds=seconds, target_db=target_db)
    recipe = choose_recipe(subject.field, blueprint, options, subject.noise)
    network = draw_network(blueprint, seed)
    job = Job(signal, options, subject, blueprint, network, recipe, seed, outputs, resume, force, bits)
    require_memory(job)
    return job


def require_memory(job: Job) -> None:
    """Raise an error if the fit would take more memory than there is."""
    from ..training.memory import free_memory, in_words

    memory, free = job.memory, free_memory()
    if free is not None and memory.total > free:
        option = "--width" if memory.network > memory.samples else "--size"
        raise ValueError(
            f"{job.signal}: the fit would take about {in_words(memory.total)} of memory, but {in_words(free)} are "
            f"free; pass a smaller {option}"
        )


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


def name_outputs(signal: str, output: str | None, *, sound: bool) -> Outputs:
    """The files of a fit: next to the one that is given, or by the name of the signal in a directory."""
    from ..signals.paths import stem_of

    path = Path("." if output is None else output)
    network = path / f"{stem_of(signal)}.uniphase" if path.is_dir() else path
    if network.suffix != ".uniphase":
        raise ValueError(f"{network}: the suffix is {network.suffix!r}; use .uniphase")
    heard = network.with_suffix(".fit.wav") if sound else None
    return Outputs(network, network.with_suffix(".uniphase.part"), network.with_suffix(".fit.png"), heard)
