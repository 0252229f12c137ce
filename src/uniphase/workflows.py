"""Workflows: what the commands do, from a signal to a file and back, without parsing or printing."""

import contextlib
import dataclasses
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from soundfile import SoundFileError

from . import figures, files
from .blueprints import Blueprint
from .checkpoints import load_network, save_network
from .datasets import load
from .diagnostics import diagnose
from .doctor import Report
from .fields import Align, Extent, Grid, axis_coordinates
from .metrics import Metrics, evaluate
from .moments import Moments, estimate_moments
from .network_files import Domain, Saved
from .networks import CoordinateMLP
from .recipes import Optimizer, Recipe, default_rate, default_recipe, default_size, paper_recipe
from .render import Derivative, render
from .schemes import get_scheme
from .training import Diverged, Fit, Progress, fit

# Signals of more samples are tested only if a size is asked for, and drawn with some of their samples left out.
_MANY_SAMPLES = 1 << 22


@dataclass(frozen=True)
class Options:
    """What may be chosen for a fit; whatever is `None` follows from the signal.

    **Arguments:**

    - `recipe`: the rule that gives all the rest: that of this package, or the paper's protocol.
    - `width`, `depth`: of the network.
    - `steps`, `optimizer`, `lr`, `batch`: entries of the `Recipe`.
    - `size`, `space`, `align`, `axes`: how to load the signal, as for `load`.
    - `eval_size`: the size at which to load the signal again for a test. Default: as stored, if `size` is less.
    """

    recipe: Literal["default", "paper"] = "default"
    width: int | None = None
    depth: int | None = None
    steps: int | None = None
    optimizer: Optimizer | None = None
    lr: float | None = None
    batch: int | None = None
    size: int | None = None
    eval_size: int | None = None
    space: files.Space | None = None
    align: Align | None = None
    axes: int | None = None


class Subject(NamedTuple):
    """A signal as it is fitted, and as it is tested."""

    field: Grid
    test: Grid | None
    moments: Moments


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
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; it must lie between 0 and 2³² - 1")
    subject = _load_subject(signal, options)
    outputs = _outputs(Path(f"{Path(signal).stem}.uniphase" if output is None else output), subject.field)
    interrupted = outputs.state.exists()
    if resume and not interrupted:
        warnings.warn(f"{outputs.state}: there is no interrupted fit; starting one", stacklevel=2)
    if interrupted and not (resume or force):
        raise FileExistsError(
            f"{outputs.state}: left by an interrupted fit; pass --resume to go on, --force to drop it"
        )
    _require_writable(outputs.results, signal, replace=force or (resume and interrupted))
    blueprint, network = _draw(subject, scheme, options, seed)
    recipe = _recipe(subject.field, network, options)
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
    with _writing(outputs.network, "mend that, and go on with --resume"):
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
        shown = _shown(field)
        prediction = _at(result.network, shown)
        if outputs.sound:
            files.write(outputs.sound, prediction, rate=field.rate)
        title = f"{Path(job.signal).name}: {job.blueprint.scheme}, {job.blueprint.parameters:,} parameters"
        figures.preview(outputs.preview, shown, prediction, result.losses, result.metrics, title)
        outputs.state.unlink(missing_ok=True)
    return result


class Rendered(NamedTuple):
    """A file that `render_file` wrote, and the number of samples along each axis."""

    path: Path
    shape: tuple[int, ...]


def render_file(
    path: str,
    *,
    size: int | None = None,
    scale: float | None = None,
    region: str | None = None,
    derivative: Derivative | None = None,
    output: str | None = None,
    force: bool = False,
) -> Rendered:
    """Evaluate the network of a `.uniphase` file on a grid, and write the values as PNG, WAV or NPY.

    A picture of a derivative has the 99.5th percentile of its size for white: the gradient of all channels together
    as gray, the Laplacian of each channel around a medium gray.

    **Arguments:**

    - `path`: the file.
    - `size`, `scale`: samples along the longest axis, or in proportion to the field that was fitted. Default: as many
        as that had.
    - `region`: `low:high` for each axis, separated by commas, in the units of the extents. Default: all of it.
    - `derivative`: as for `render`.
    - `output`: where to, with the suffix .png, .wav or .npy. Default: a name with the size in it, in the current
        directory.
    - `force`: whether a file that exists may be replaced.

    !!! example
        ```python
        run(prepare("camera", Options(size=16, steps=20)))
        render_file("camera.uniphase", size=64, region="-1:0,-1:0").shape  # (64, 64)
        ```
    """
    saved = load_network(path)
    domain, name = saved.domain, Path(path).stem
    if domain.shape is None and size is None:
        raise ValueError(f"{path}: fitted to scattered points, which are of no size; pass --size")
    spans = domain.extents if region is None else _parse_region(region, len(domain.extents))
    stored = _stored_samples(domain, spans)
    shape = _render_shape(stored, domain.align, size, scale)
    suffix = {"sound": ".wav", None: ".npy"}.get(saved.medium, ".png")
    if derivative is not None:
        name, suffix = f"{name}-{derivative}", ".npy" if suffix == ".wav" else suffix
    size_text = "x".join(map(str, reversed(shape) if suffix == ".png" else shape))
    target = Path(f"{name}-{size_text}{suffix}" if output is None else output)
    _require_format(target, saved, derivative)
    _require_writable([target], path, replace=force)
    values = render(
        saved.network, shape, extents=domain.extents, align=domain.align, region=spans, derivative=derivative
    )
    with _writing(target):
        if target.suffix.lower() == ".png":
            files.write(target, _picture(values, saved, derivative), medium=None if derivative else saved.medium)
        else:
            files.write(target, values, rate=None if saved.rate is None else saved.rate * shape[0] / stored[0])
    return Rendered(target, shape)


class Row(NamedTuple):
    """A row of a comparison: the metrics for every seed. Both are empty if no run ended well."""

    scheme: str
    train: tuple[Metrics, ...]
    test: tuple[Metrics, ...]


class Comparison(NamedTuple):
    """The rows, how all were trained, and the files written."""

    rows: tuple[Row, ...]
    recipe: Recipe
    outputs: tuple[Path, ...]


def compare(
    signal: str,
    schemes: Sequence[str],
    options: Options,
    *,
    seeds: int = 1,
    output: str | None = None,
    force: bool = False,
    callback: Callable[[str, Progress], Any] | None = None,
) -> Comparison:
    """Train several schemes on a signal, all with the same recipe, and draw them side by side.

    **Arguments:**

    - `signal`, `schemes`: a name or a file, and the names of the initializations.
    - `seeds`: the number of runs of each.
    - `output`: the picture, a PNG; or a directory for it. The learning curves go beside it.
    - `force`: whether files that exist may be replaced.
    - `callback`: called with the name of the run and the `Progress`.

    **Returns:**

    A `Comparison`, whose last row is the cubic spline through the training samples. It has no metrics if there is no
    test field.

    !!! example
        ```python
        rows = compare("camera", ["uniform-phase", "sm20"], Options(size=16, steps=20)).rows
        ```
    """
    schemes = [get_scheme(name).name for name in dict.fromkeys(schemes)]
    if seeds < 1:
        raise ValueError(f"seeds is {seeds}; it must be at least 1")
    outputs = _comparison_outputs(signal, output)
    _require_writable(outputs, signal, replace=force)
    subject = _load_subject(signal, options)
    field, test, moments = subject
    _, first = _draw(subject, schemes[0], options, 0)
    recipe = _recipe(field, first, options)
    rows, columns, losses = [], {}, {}
    for scheme in schemes:
        results = []
        for seed in range(seeds):
            name = scheme if seeds == 1 else f"{scheme}, seed {seed}"
            tell = None if callback is None else lambda progress, name=name: callback(name, progress)
            _, network = _draw(subject, scheme, options, seed)
            try:
                results.append(fit(network, field, recipe=recipe, test=test, moments=moments, seed=seed, callback=tell))
            except Diverged as error:
                warnings.warn(f"{name}: left out, as {error}", stacklevel=2)
        rows.append(_row(scheme, results))
        if results:
            columns[scheme] = _column(results[0], field, test)
            losses[scheme] = [result.losses for result in results]
    rows.append(Row("bicubic", (), () if test is None else (evaluate(cubic_spline(field, test), test),)))
    if not columns:
        raise ValueError(f"{signal}: every run diverged; pass a smaller --lr than {recipe.learning_rate:g}")
    with _writing(outputs[0]):
        figures.comparison(outputs[0], _shown(field), None if test is None else _shown(test), columns)
        figures.learning_curves(outputs[1], losses)
    return Comparison(tuple(rows), recipe, outputs)


def examine_signal(
    signal: str,
    options: Options,
    *,
    scheme: str = "uniform-phase",
    network: str | None = None,
    seed: int = 0,
    output: str | None = None,
    force: bool = False,
) -> Report:
    """Examine the network that a scheme draws for a signal, or that of a file, and draw the report if asked to.

    **Arguments:**

    - `signal`, `options`: a name or a file, and how to load it; of the rest, only the width and the depth are used.
    - `scheme`, `seed`: what to draw. The seed also chooses the samples that are looked at.
    - `network`: a `.uniphase` file to read, in place of drawing one.
    - `output`: the picture, a PNG.
    - `force`: whether a file that exists may be replaced.

    !!! example
        ```python
        report = examine_signal("camera", Options(size=16, width=16), scheme="sm20")
        ```
    """
    target = None if output is None else Path(output)
    if target is not None:
        if target.suffix.lower() != ".png":
            raise ValueError(f"{target}: the suffix is {target.suffix!r}; use .png")
        _require_writable([target], signal, replace=force)
    saved = None if network is None else load_network(network)
    if saved is not None and options.align is None:
        options = dataclasses.replace(options, align=saved.domain.align)
    field = _load(signal, options, options.size)
    moments = estimate_moments(field)
    if saved is None:
        _, model = _draw(Subject(field, None, moments), scheme, options, seed)
    else:
        model = saved.network
    report = diagnose(model, field, moments, seed=seed)
    if target is not None:
        with _writing(target):
            figures.diagnosis(target, report, f"{scheme if network is None else network} for {Path(signal).name}")
    return report


def cubic_spline(field: Grid, test: Grid) -> np.ndarray:
    """The cubic spline through the samples of a field, at the positions of another on the same domain.

    Beyond the outermost samples it is constant.

    !!! example
        ```python
        fine = cubic_spline(load("camera", size=16), load("camera", size=64))
        ```
    """
    from scipy.interpolate import make_interp_spline

    values = field.values.astype(np.float64)
    for axis, (n, m) in enumerate(zip(field.shape, test.shape, strict=True)):
        known = axis_coordinates(n, field.extents[axis], field.align)
        wanted = axis_coordinates(m, test.extents[axis], test.align)
        values = make_interp_spline(known, values, k=min(3, n - 1), axis=axis)(np.clip(wanted, known[0], known[-1]))
    return values


def _load(signal: str, options: Options, size: int | None) -> Grid:
    align = options.align or ("corners" if options.recipe == "paper" else "centers")
    return load(signal, size=size, space=options.space, align=align, axes=options.axes)


def _load_subject(signal: str, options: Options) -> Subject:
    field, test = _load(signal, options, options.size), None
    if options.eval_size is not None:
        test = _load(signal, options, options.eval_size)
    elif options.size is not None and (stored := _load(signal, options, None)).samples > field.samples:
        if stored.samples <= _MANY_SAMPLES:
            test = stored
        else:
            warnings.warn(
                f"{signal}: not tested on all of its {stored.samples:,} samples; see --eval-size", stacklevel=2
            )
    return Subject(field, test, estimate_moments(field))


def _draw(subject: Subject, scheme: str, options: Options, seed: int) -> tuple[Blueprint, CoordinateMLP]:
    field = subject.field
    width, depth = default_size(field)
    if options.recipe == "paper":
        width, depth = 256, 5 if field.medium == "sound" else 11
    width = width if options.width is None else options.width
    depth = depth if options.depth is None else options.depth
    entry = get_scheme(scheme)
    frequencies = entry.sound if field.medium == "sound" else {}
    blueprint = entry.blueprint(subject.moments, width=width, depth=depth, **frequencies)
    return blueprint, CoordinateMLP(blueprint, key=jax.random.key(seed))


def _recipe(field: Grid, network: CoordinateMLP, options: Options) -> Recipe:
    if options.recipe == "default":
        recipe = default_recipe(field, network)
    else:
        recipe = paper_recipe(field, steps=5000, learning_rate=5e-5) if field.medium == "sound" else paper_recipe(field)
    rate = options.lr
    if rate is None and options.optimizer not in (None, recipe.optimizer):
        rate = default_rate(network) if options.optimizer == "muon" else 1e-3
    given = {"optimizer": options.optimizer, "learning_rate": rate, "steps": options.steps, "batch": options.batch}
    return dataclasses.replace(recipe, **{key: value for key, value in given.items() if value is not None})


def _outputs(network: Path, field: Grid) -> Outputs:
    if network.suffix != ".uniphase":
        raise ValueError(f"{network}: the suffix is {network.suffix!r}; use .uniphase")
    sound = network.with_suffix(".fit.wav") if field.medium == "sound" else None
    return Outputs(network, network.with_suffix(".uniphase.part"), network.with_suffix(".fit.png"), sound)


def _comparison_outputs(signal: str, output: str | None) -> tuple[Path, Path]:
    path = Path("." if output is None else output)
    path = path / f"{Path(signal).stem}.compare.png" if path.is_dir() else path
    if path.suffix.lower() != ".png":
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, or the name of a directory that exists")
    return path, path.with_suffix(".curves.png")


def _require_writable(paths: Sequence[Path], source: str, *, replace: bool) -> None:
    directory = paths[0].parent
    if not directory.is_dir():
        raise FileNotFoundError(f"{paths[0]}: there is no directory {directory}; make it first")
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"{path}: a directory; pass the path of a file")
        if not path.exists():
            continue
        if Path(source).exists() and path.samefile(source):
            raise FileExistsError(f"{path}: would replace what is read; pass another --output")
        if not replace:
            raise FileExistsError(f"{path}: exists; pass --force to replace it, or another --output")
    with _writing(paths[0]), tempfile.TemporaryFile(dir=directory):
        pass


@contextlib.contextmanager
def _writing(path: Path, fix: str = "make room, or pass another --output") -> Iterator[None]:
    """What the system refuses to write is said with the path that the user knows."""
    try:
        yield
    except (OSError, SoundFileError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(f"{path}: cannot be written ({reason}); {fix}") from error


def _shown(field: Grid) -> Grid:
    """A field as it is drawn. If it has many samples some are left out, and the others keep their positions."""
    stride = math.ceil((field.samples / _MANY_SAMPLES) ** (1 / field.in_size))
    if stride == 1 or field.medium == "sound":
        return field
    strides = [min(stride, n - 1) for n in field.shape]
    axes = [
        axis_coordinates(n, extent, field.align)[::step]
        for n, extent, step in zip(field.shape, field.extents, strides, strict=True)
    ]
    values = field.values[tuple(slice(None, None, step) for step in strides)]
    return Grid(values, extents=[(x[0], x[-1]) for x in axes], align="corners", medium=field.medium)


def _at(network: CoordinateMLP, field: Grid) -> np.ndarray:
    return render(network, field.shape, extents=field.extents, align=field.align)


def _row(scheme: str, results: Sequence[Fit]) -> Row:
    test = tuple(result.test_metrics for result in results if result.test_metrics is not None)
    return Row(scheme, tuple(result.metrics for result in results), test)


def _column(result: Fit, field: Grid, test: Grid | None) -> figures.Column:
    tested = None if test is None else _at(result.network, _shown(test))
    return figures.Column(_at(result.network, _shown(field)), tested, result.metrics, result.test_metrics)


def _parse_region(text: str, axes: int) -> tuple[Extent, ...]:
    with contextlib.suppress(ValueError):
        region = np.array([part.split(":") for part in text.split(",")], np.float64)
        if region.shape == (axes, 2) and np.isfinite(region).all() and (region[:, 0] < region[:, 1]).all():
            return tuple((float(low), float(high)) for low, high in region)
    example = ",".join(["-0.5:0.5"] * axes)
    raise ValueError(f"region is {text!r}; pass low:high for each of {axes} axes, low first, e.g. {example}")


def _stored_samples(domain: Domain, spans: Sequence[Extent]) -> list[float]:
    """How many samples of the fitted field lie within the spans; of scattered points, one for each unit of length."""
    lengths = [high - low for low, high in spans]
    if domain.shape is None:
        return lengths
    wholes = [high - low for low, high in domain.extents]
    return [n * length / whole for n, length, whole in zip(domain.shape, lengths, wholes, strict=True)]


def _render_shape(stored: Sequence[float], align: Align, size: int | None, scale: float | None) -> tuple[int, ...]:
    if size is not None and scale is not None:
        raise ValueError(f"size is {size} and scale is {scale}; pass one of them")
    for name, value in (("size", size), ("scale", scale)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; it must be positive")
    factor = (1.0 if scale is None else scale) if size is None else size / max(stored)
    return tuple(max(2 if align == "corners" else 1, round(n * factor)) for n in stored)


def _require_format(path: Path, saved: Saved, derivative: Derivative | None) -> None:
    suffix, axes = path.suffix.lower(), len(saved.domain.extents)
    if suffix not in (".png", ".wav", ".npy"):
        raise ValueError(f"{path}: the suffix is {path.suffix!r}; use .png, .wav or .npy")
    if suffix == ".png" and axes != 2:
        raise ValueError(f"{path}: a picture has 2 axes, but the network has {axes}; write .npy")
    if suffix == ".wav" and (saved.medium != "sound" or derivative is not None):
        what = f"the {derivative}" if derivative else "the field"
        raise ValueError(f"{path}: {what} is no sound; write .npy")


def _picture(values: np.ndarray, saved: Saved, derivative: Derivative | None) -> np.ndarray:
    if derivative == "gradient":
        values = np.linalg.norm(values, axis=(-2, -1))[..., None]
        return values / (np.percentile(values, 99.5) or 1.0)
    if derivative == "laplacian":
        return 0.5 + 0.5 * values / (np.percentile(np.abs(values), 99.5) or 1.0)
    if saved.medium is None:
        low, high = saved.value_range
        return (values - low) / ((high - low) or 1.0)
    return values
