"""Running a fit: train, save, measure, write and draw, within its time."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import Watcher, duration
from .options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from ..fitting.budget import Budget
    from ..fitting.plan import Progress
    from ..jax.network import CoordinateMLP
    from ..signals.fields import Field, Grid
    from ..training.result import Fit
    from .fit import Job
    from .measuring import Measured

# What drawing and writing take after the last step, in seconds, where no time is set. Measured on two cores.
_DRAWING = 1.5
# Of a sound that is not evaluated in full, at most so many samples are drawn.
_EXCERPT = 1 << 16


def run(
    job: "Job",
    *,
    seconds: float | None = None,
    target_db: float | None = None,
    watcher: Watcher | None = None,
    log: str | None = None,
    checkpoint_seconds: float = 10.0,
) -> "Fit":
    """Train, write the network, measure it, write and draw the results, and remove the state.

    **Arguments:**

    - `job`: what to do.
    - `seconds`: the time for all of it but compiling.
    - `target_db`, `checkpoint_seconds`: as for `fit`.
    - `watcher`: who is told how far it is.
    - `log`: a CSV file for the progress.

    !!! example
        ```python
        result = run(prepare("camera", Options(size=16, steps=20)))
        ```
    """
    from .fit import require_free
    from .outputs import alone, writing

    watcher = Watcher() if watcher is None else watcher
    with alone(job.outputs.network), writing(job.outputs.network, "fix that, then continue with --resume"):
        # Again: another fit may have written them since.
        require_free(job.outputs, job.signal, resume=job.resume, force=job.force)
        if not job.resume:
            job.outputs.state.unlink(missing_ok=True)
        watcher.stage("compiling")
        limits = {"seconds": seconds, "target_db": target_db}
        made_from = origin(job.signal, job.blueprint.scheme, job.options, seed=job.seed, **limits, bits=job.bits)
        budget = _rehearse(job, seconds, watcher)
        exact = _train(job, budget, target_db, _reporting(budget, watcher, log, job.resume), checkpoint_seconds)
        ended = time.perf_counter()
        result = exact if job.bits is None else exact.quantized(job.bits)
        result.save(job.outputs.network, training=made_from)
        most = budget.affordable(result.seconds + time.perf_counter() - ended)
        try:
            result = _finish(job, result, exact, most, made_from, watcher)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(f"the network is in {job.outputs.network}") from stop
        job.outputs.state.unlink(missing_ok=True)
    return result


def _rehearse(job: "Job", seconds: float | None, watcher: Watcher) -> "Budget":
    """Compile what comes after the last step, and see what it costs."""
    from ..fitting.budget import Budget
    from .measuring import sample_seconds

    watcher.rehearse(job.network)
    fields = [field for field in (job.subject.field, job.subject.test) if field is not None]
    costs = [field.samples * sample_seconds(job.network, field, job.sampling) for field in fields]
    samples = sum(field.samples for field in fields)
    networks = 1 if job.bits is None else 2
    drawing = _DRAWING if seconds is None else _rehearse_drawing(job)
    return Budget(seconds, samples, networks * sum(costs) / samples, drawing)


def _rehearse_drawing(job: "Job") -> float:
    """What drawing takes on this machine, by a picture of a small part of the signal."""
    from tempfile import TemporaryDirectory

    import numpy as np

    from ..plots.preview import write_preview
    from ..signals.metrics import evaluate
    from .measuring import middle

    part = middle(job.subject.field)
    begun = time.perf_counter()
    with TemporaryDirectory() as directory:
        metrics = evaluate(part.values, part)
        write_preview(Path(directory, "part.png"), part, part.values, np.ones(2), metrics, "")
    return time.perf_counter() - begun


def _reporting(budget: "Budget", watcher: Watcher, log: str | None, resume: bool) -> "Callable[[Progress], None]":
    """The callback of a fit: it says how long all of it takes as soon as that is known."""
    from .logs import Log

    written, expected = None if log is None else Log(log, resume=resume), []

    def report(progress: "Progress") -> None:
        if not expected and progress.stop is None:
            speed = 1 / progress.steps_per_second
            expected.append(budget.expected(speed, progress.steps))
            parts = f"{1e3 * speed:.3g} ms a step, {duration(budget.after)} for measuring and drawing"
            watcher.expect(f"time     about {duration(expected[0])} ({parts})", budget.after)
        if written is not None:
            written.add(progress)
        watcher.progress(progress)

    return report


def _train(
    job: "Job",
    budget: "Budget",
    target_db: float | None,
    callback: "Callable[[Progress], None]",
    checkpoint_seconds: float,
) -> "Fit":
    from ..fitting.plan import Diverged
    from ..training.fit import fit
    from .subjects import observations

    try:
        return fit(
            job.network,
            observations(job.subject, job.blueprint, job.options),
            recipe=job.recipe,
            seconds=budget.training,
            target_db=target_db,
            test=job.subject.test,
            measure=False,
            blueprint=job.blueprint,
            seed=job.seed,
            callback=callback,
            checkpoint=job.outputs.state,
            checkpoint_seconds=checkpoint_seconds,
            resume=job.resume,
        )
    except Diverged as error:
        job.outputs.state.unlink(missing_ok=True)
        raise ValueError(f"{job.signal}: {error}, with --lr") from error


def _finish(job: "Job", result: "Fit", exact: "Fit", most: int, made_from: dict[str, Any], watcher: Watcher) -> "Fit":
    """Measure the network, write and draw what it gives, and add the metrics to its file."""
    from ..fitting.result import kept
    from .measuring import measure

    field, test = job.subject.field, job.subject.test
    share = most / (field.samples + (0 if test is None else test.samples))
    if share < 1 and job.outputs.sound:
        share *= 0.8  # the rest is for the excerpt that is drawn

    def measured(network: "CoordinateMLP", seen: "Field") -> "Measured":
        return measure(network, seen, result.sampling, round(share * seen.samples), watcher.stage)

    trained = measured(result.network, field)
    tested = None if test is None else measured(result.network, test)
    before = None if exact is result else measured(exact.network, field)
    whole, changes = trained.field is field, {}
    if tested is not None:
        changes = {"test_metrics": tested.metrics, "test_prediction": kept(tested.prediction) if whole else None}
    result = replace(
        result,
        metrics=trained.metrics,
        prediction=kept(trained.prediction) if whole else None,
        exact_metrics=None if before is None else before.metrics,
        **changes,
    )
    watcher.stage("writing")
    _write_results(job, result, trained, watcher)
    # At last: a network with metrics is of a fit that is finished.
    some = {} if whole else {"measured": trained.field.samples}
    result.save(job.outputs.network, training=made_from | some)
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


def _write_results(job: "Job", result: "Fit", trained: "Measured", watcher: Watcher) -> None:
    from ..plots.preview import write_preview
    from ..plots.scatter import surface_shape
    from ..signals import files
    from ..signals.fields import Grid
    from .subjects import shown_part, shown_prediction

    outputs, field = job.outputs, job.subject.field
    drawn, prediction = trained.field, trained.prediction
    if outputs.sound and isinstance(field, Grid):
        if drawn is field:
            files.write(outputs.sound, prediction, rate=field.rate)
        else:
            outputs.sound.unlink(missing_ok=True)  # one of an earlier fit
            samples = min(_EXCERPT, drawn.samples // 4)
            drawn, prediction = _excerpt(result, field, samples, watcher)
    watcher.stage("drawing")
    title = f"{Path(job.signal).name}: {job.blueprint.scheme}, {job.blueprint.parameters:,} parameters"
    shape = surface_shape(field)
    between = {} if shape is None else {"surface": result.render(shape)}
    shown = shown_part(drawn), shown_prediction(result.network, drawn, prediction)
    write_preview(outputs.preview, *shown, result.losses, trained.metrics, title, **between)


def _excerpt(result: "Fit", field: "Grid", samples: int, watcher: Watcher) -> "tuple[Grid, np.ndarray]":
    """The middle of a sound and of what the network makes of it: every n-th sample would be another sound."""
    from .measuring import excerpt, predict_told

    part, indices = excerpt(field, samples)
    prediction = predict_told(result.network, field, indices, result.sampling, watcher.stage)
    return part, prediction.reshape(part.values.shape)
