"""The command line: the options of each command and its last words. All else is imported when it is needed."""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

from cyclopts import App, Parameter

from . import terminal

if TYPE_CHECKING:
    from ..signals.metrics import Metrics

app = App(
    name="uniphase",
    help=(
        "Neural fields without tuning: sine networks whose initialization follows from the signal.\n\n"
        "Examples: uniphase fit photo.jpg  |  uniphase render photo.uniphase --scale 4"
    ),
    version=lambda: version("uniphase"),
)

Json = Annotated[bool, Parameter(negative="", help="Print one JSON object.")]
Force = Annotated[bool, Parameter(negative="", help="Replace files that exist.")]
Output = Annotated[str | None, Parameter(alias="-o")]

# Where records are kept, unless one says otherwise.
_STORE = "uniphase-lab"


@Parameter(name="*")
@dataclass(frozen=True)
class Choices:
    """What one may choose for a fit. The fields are those of `Options` in `workflows`."""

    recipe: Literal["default", "paper"] = "default"
    """Rule for all that is not given. "paper": 256 × 11 (sound: 256 × 5), full batches, Adam at 1e-4 for 3,000 steps
    (sound: 5e-5 for 5,000), samples at the corners."""
    width: int | None = None
    """Neurons of a layer. Default: by the size of the signal."""
    depth: int | None = None
    """Number of hidden layers. Default: by the size of the signal."""
    steps: int | None = None
    """Number of steps. Default: by the size of the signal."""
    optimizer: Literal["muon", "adam"] | None = None
    """Default: Muon, in the units of the signal."""
    lr: float | None = None
    """Learning rate at the start. Default: by the depth for Muon, 1e-3 for Adam."""
    batch: int | None = None
    """Samples of a step. Default: by the size of the signal."""
    size: int | None = None
    """Resize the signal first, so that its longest axis has this many samples."""
    eval_size: int | None = None
    """Test on the signal at this size. Default: as stored, if --size is less."""
    space: Literal["gray", "rgb", "lab"] | None = None
    """Colour space of an image. Default: gray or rgb, as stored."""
    align: Literal["centers", "corners"] | None = None
    """Whether samples lie at the centers of their cells or include the corners of the domain. Default: centers."""
    axes: int | None = None
    """Number of coordinate axes of an array. Default: all, but for a last one of at most 4 entries (the channels)."""


@app.command
def fit(
    signal: str,
    /,
    *,
    scheme: str = "uniform-phase",
    choices: Choices | None = None,
    seconds: float | None = None,
    target_db: float | None = None,
    seed: int = 0,
    output: Output = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    force: Force = False,
    json: Json = False,
):
    """Fit a network to a signal and write it to a small file, with a picture of the fit.

    Examples: uniphase fit photo.jpg  |  uniphase fit song.wav --seconds 60 -o song.uniphase

    Parameters
    ----------
    signal
        A file (image, sound or NPY array), or a name: camera, brick, gravel, clock, hubble, skin, astronaut, coffee,
        bach.
    scheme
        Initialization; `uniphase schemes` lists them.
    seconds
        End after this time.
    target_db
        End when the signal-to-noise ratio of the latest steps reaches this.
    seed
        Of the network and the batches.
    output
        File of the network. Default: the name of the signal with .uniphase, in the current directory. The picture goes
        beside it with .fit.png, and a sound with .fit.wav.
    resume
        Go on with a fit that was interrupted, to the same result.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    from .fit import prepare, run
    from .subjects import Options

    options = Options(**asdict(choices or Choices()))
    job = prepare(signal, options, scheme=scheme, seed=seed, output=output, resume=resume, force=force)
    if not json:
        print(f"{job.blueprint}\n", flush=True)
    try:
        with terminal.fit_progress(quiet=json) as tell:
            result = run(job, seconds=seconds, target_db=target_db, callback=tell)
    except KeyboardInterrupt:
        how = "; the same command with --resume goes on" if job.outputs.state.exists() else ""
        print(f"uniphase: interrupted{how}", file=sys.stderr)
        sys.exit(130)
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


@app.command
def render(
    file: str,
    /,
    *,
    size: int | None = None,
    scale: float | None = None,
    region: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    derivative: Literal["gradient", "laplacian"] | None = None,
    output: Output = None,
    force: Force = False,
):
    """Write the picture, sound or array that a network stands for, at any resolution.

    Examples: uniphase render photo.uniphase --size 4096  |  uniphase render photo.uniphase --region -1:0,0:1 --scale 8

    Parameters
    ----------
    file
        A network that `uniphase fit` wrote.
    size
        Samples along the longest axis. Default: as many as the signal had.
    scale
        Samples in proportion to those the signal had, e.g. 4.
    region
        What to show, as low:high for each axis: -1:0,0:1 is the upper right quarter of an image, whose axes run from -1
        to 1, down and to the right. Time in a sound runs from -100 to 100. Beyond these, the network goes on.
    derivative
        Of the values by the coordinates. A picture shows the size of the gradient from black to white, and the
        Laplacian around gray; NPY has the numbers.
    output
        Where to: .png, .wav or .npy. Default: the name of the file with the size added, in the current directory.
    """
    from .render import render_file

    written = render_file(
        file, size=size, scale=scale, region=region, derivative=derivative, output=output, force=force
    )
    print(f"wrote {written.path}, {terminal.times(written.shape)} samples")


@app.command
def info(file: str, /, *, json: Json = False):
    """Show what a network is and how it was made.

    Examples: uniphase info photo.uniphase  |  uniphase info photo.uniphase --json

    Parameters
    ----------
    file
        A network that `uniphase fit` wrote.
    """
    from ..jax.files import load_network
    from ..storage.network_file import read_header

    saved = load_network(file)
    size = os.path.getsize(file)
    if json:
        terminal.print_json({"bytes": size, "parameters": saved.blueprint.parameters, **read_header(file)})
        return
    domain, training = saved.domain, dict(saved.training)
    metrics = {"train": saved.metrics, "test": training.pop("test_metrics", None)}
    shape = "scattered points" if domain.shape is None else f"{terminal.times(domain.shape)} samples"
    medium = "" if saved.medium is None else f", {saved.medium}"
    rate = "" if saved.rate is None else f" at {saved.rate:g} Hz"
    print(f"{file}: {size:,} bytes\n\n{saved.blueprint}\n")
    print(f"domain: {shape} on {terminal.ranges(domain.extents)}, {domain.align}{medium}{rate}")
    if saved.moments is not None:
        print(saved.moments)
    print()
    terminal.print_metrics(metrics)
    print()
    for name, value in {**training, "versions": saved.versions}.items():
        print(f"{name}: {terminal.words(value)}")


@app.command
def compare(
    signal: str,
    /,
    *,
    schemes: str,
    seeds: int = 1,
    choices: Choices | None = None,
    output: Output = None,
    force: Force = False,
    json: Json = False,
):
    """Train several initializations on a signal, all with the same recipe, and show them side by side.

    The default recipe was settled on uniform-phase networks; --recipe paper is the one the paper compares them with.

    Examples: uniphase compare camera --size 128 --schemes uniform-phase,sm20,relu --seeds 3

    Parameters
    ----------
    signal
        A file (image, sound or NPY array), or a name, as for `uniphase fit`.
    schemes
        Initializations, separated by commas; `uniphase schemes` lists them.
    seeds
        Number of runs of each.
    output
        Picture (.png), or a directory for it. Default: the name of the signal with .compare.png, in the current
        directory. The learning curves go beside it.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    from .compare import compare as compare_schemes
    from .subjects import Options

    options = Options(**asdict(choices or Choices()))
    with terminal.fit_progress(quiet=json) as tell:
        callback = None if tell is None else lambda name, progress: tell(progress, name)
        result = compare_schemes(
            signal, schemes.split(","), options, seeds=seeds, output=output, force=force, callback=callback
        )
    if json:
        rows = [
            {"scheme": row.scheme} | {part: _per_run(getattr(row, part)) for part in ("train", "test")}
            for row in result.rows
        ]
        terminal.print_json({"rows": rows, "recipe": asdict(result.recipe), "output": list(map(str, result.outputs))})
        return
    header = ("scheme", "train MSE", "train SNR dB", "test MSE", "test SNR dB")
    *trained, spline = result.rows
    rows = [(row.scheme, *_spread(row.train, "diverged"), *_spread(row.test, "—")) for row in trained]
    terminal.print_table(header, [*rows, (spline.scheme, "exact", "exact", *_spread(spline.test, "not applicable"))])
    print(f"\nrecipe: {terminal.words(asdict(result.recipe))}\nwrote {', '.join(map(str, result.outputs))}")


@app.command
def diagnose(
    signal: str,
    /,
    *,
    network: str | None = None,
    scheme: str | None = None,
    width: int | None = None,
    depth: int | None = None,
    size: int | None = None,
    space: Literal["gray", "rgb", "lab"] | None = None,
    align: Literal["centers", "corners"] | None = None,
    axes: int | None = None,
    seed: int = 0,
    output: Output = None,
    force: Force = False,
    json: Json = False,
):
    """Examine a network at its start: phases, Jacobians, gradients and moments for a signal, with verdicts in words.

    Examples: uniphase diagnose photo.jpg --scheme sm20  |  uniphase diagnose photo.jpg --network photo.uniphase

    Parameters
    ----------
    signal
        A file (image, sound or NPY array), or a name, as for `uniphase fit`.
    network
        A file that `uniphase fit` wrote, to be examined in place of a new network.
    scheme
        Initialization of a new network; `uniphase schemes` lists them. Default: uniform-phase.
    width
        Of a new network. Default: by the size of the signal.
    depth
        Hidden layers of a new network. Default: by the size of the signal.
    size
        Resize the signal first, so that its longest axis has this many samples.
    space
        Colour space of an image. Default: gray or rgb, as stored.
    align
        Whether samples lie at the centers of their cells or include the corners of the domain. Default: centers, or as
        the network of a file was fitted.
    axes
        Number of coordinate axes of an array. Default: all, but for a last one of at most 4 entries (the channels).
    seed
        Of the new network, and of the samples that are looked at.
    output
        Picture of the report (.png). Default: none.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    from .diagnose import examine_signal
    from .subjects import Options

    options = Options(width=width, depth=depth, size=size, space=space, align=align, axes=axes)
    report = examine_signal(signal, options, scheme=scheme, network=network, seed=seed, output=output, force=force)
    if json:
        terminal.print_json(report.to_dict())
        return
    terminal.console().print(report)
    if output is not None:
        print(f"\nwrote {output}")


@app.command
def moments(
    signal: str,
    /,
    *,
    size: int | None = None,
    space: Literal["gray", "rgb", "lab"] | None = None,
    align: Literal["centers", "corners"] = "centers",
    axes: int | None = None,
    json: Json = False,
):
    """Print the mean, covariance and structure tensor of a signal.

    Examples: uniphase moments photo.jpg  |  uniphase moments camera --size 128 --align corners --json

    Parameters
    ----------
    signal
        A file (image, sound or NPY array), or a name: camera, brick, gravel, clock, hubble, skin, astronaut, coffee,
        bach.
    size
        Resize first, so that the longest axis has this many samples.
    space
        Colour space of an image. Default: gray or rgb, as stored.
    align
        Whether samples lie at the centers of their cells or include the corners of the domain, as in the paper.
    axes
        Number of coordinate axes of an array. Default: all, but for a last one of at most 4 entries (the channels).
    """
    from ..initialization.moments import estimate_moments
    from ..signals.datasets import load

    field = load(signal, size=size, space=space, align=align, axes=axes)
    estimate = estimate_moments(field)
    if json:
        terminal.print_json(
            {key: getattr(estimate, key).tolist() for key in ("mean", "covariance", "structure_tensor")}
        )
        return
    domain = f"{terminal.times(field.shape)} samples of {field.out_size} channel(s) on {terminal.ranges(field.extents)}"
    print(f"{signal}: {domain}, {field.align}\n{estimate}")


@app.command
def reproduce(
    experiment: str,
    /,
    *,
    preset: Literal["quick", "paper"] = "quick",
    seeds: int = 1,
    only: str = "",
    engine: Literal["serial", "dask"] = "serial",
    address: str | None = None,
    workers: int | None = None,
    store: str = _STORE,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
):
    """Run an experiment of the paper, or what is missing of it. Every run is kept as soon as it is done.

    Examples: uniphase reproduce narrow --seeds 3  |  uniphase reproduce all --preset paper --dry-run

    Parameters
    ----------
    experiment
        One of moments, theory, spectrum, narrow, readings, cameraman, audio, omega-sweep, mup-sweep; or all.
    preset
        "paper": the protocol to the letter. "quick": the same in small, in minutes.
    seeds
        Number of runs of each kind: seeds 0, 1, and so on.
    only
        Words that a run must have, as --dry-run prints them, e.g. "camera/gray uniform-phase". The bicubic row, which
        its table needs, comes with it.
    engine
        "serial": in this process. "dask": on a cluster.
    address
        Of a Dask scheduler. Default: a cluster of this machine, for as long as it takes.
    workers
        Of a cluster of this machine. Default: one for each GPU, otherwise one for every four cores.
    store
        Directory of the records. All machines must see it.
    dry_run
        Print the runs, which of them are stored, and the time that the others will take, from a few steps of each kind.
    """
    from ..lab.engine import estimate, reproduce as compute, select
    from ..lab.experiments import NAMES, get_experiment
    from ..lab.store import Store

    chosen, records = [get_experiment(name) for name in (NAMES if experiment == "all" else [experiment])], Store(store)
    runs = select([run for each in chosen for run in select(each.runs(preset, seeds, records), only)], "")
    if not runs:
        raise ValueError(f"only is {only!r}, but no run has these words; --dry-run alone prints those that they have")
    if dry_run:
        terminal.print_plan([(run.label, run in records) for run in runs], estimate(runs, records))
        return
    try:
        for each in chosen:
            with terminal.lab_progress(each.name) as tell:
                places = {"engine": engine, "address": address, "workers": workers}
                done = compute(each, preset, seeds, records, only=only, callback=tell, **places)
            print(f"{each.name}: {done} runs computed; `uniphase report --store {store}` shows them", flush=True)
    except KeyboardInterrupt:
        print("uniphase: interrupted; the same command goes on", file=sys.stderr)
        sys.exit(130)


@app.command
def report(*, store: str = _STORE, output: Annotated[str, Parameter(alias="-o")] = "uniphase-report"):
    """Write tables and figures of all runs that are stored, beside those of the paper.

    Examples: uniphase report  |  uniphase report --store /shared/lab -o results

    Parameters
    ----------
    store
        Directory of the records.
    output
        Directory for report.md, report.html (all in one file), figures, LaTeX tables, and the records as CSV and, with
        the extra `lab` installed, Parquet; and as JSON lines, from which a report can be made again.
    """

    from ..lab.report import write_report
    from ..lab.store import Store

    paths = write_report(Store(store), output)
    print(f"wrote {', '.join(map(str, paths))}")


@app.command
def schemes(name: str | None = None, /):
    """List the initializations, or show one in full.

    Examples: uniphase schemes  |  uniphase schemes cvp26-1

    Parameters
    ----------
    name
        One of the list.
    """
    from ..initialization.schemes import SCHEMES, get_scheme

    if name is None:
        rows = [(scheme.name, scheme.paper, scheme.biases) for scheme in SCHEMES.values()]
        terminal.print_table(("scheme", "paper", "biases"), rows)
        return
    scheme = get_scheme(name)
    print(f"{scheme.summary}\n\nReference: {scheme.reference}\n\nFor a gray image:\n\n{scheme.example}")


_STOPS = {"steps": "all of them", "seconds": "the time was over", "target": "the target was reached"}


def _spread(runs: "Sequence[Metrics]", if_none: str) -> tuple[str, str]:
    """The error and the signal-to-noise ratio over several runs."""
    from ..lab.tables import spread

    if not runs:
        return if_none, if_none
    return spread([run.mse for run in runs], ".2e"), spread([run.snr_db for run in runs], ".2f")


def _per_run(runs: "Sequence[Metrics]") -> dict[str, list] | None:
    return {key: [run.to_dict()[key] for run in runs] for key in terminal.METRICS} if runs else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. What a user can mend is said in one line, without a traceback."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: print(f"uniphase: note: {message}", file=sys.stderr)
        try:
            app(sys.argv[1:] if arguments is None else arguments)
        except BrokenPipeError:  # the reader of a pipe has seen enough; nothing is left to be flushed to it at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except (ValueError, OSError) as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"{str(error) or 'out of memory'}; pass a smaller --size")
        except RuntimeError as error:
            if "Out of memory" not in str(error):  # JAX has no type of its own for this
                raise
            _fail("out of memory; pass a smaller --width, --batch or --size")


def _fail(message: str) -> NoReturn:
    print(f"uniphase: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
