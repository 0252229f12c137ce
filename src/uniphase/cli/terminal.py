"""What the commands print: progress, tables, reports and numbers. Rich is imported only when it is needed."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..diagnosis.report import Report
    from ..fitting.plan import Progress
    from ..lab.engine import Estimate, Progress as Standing
    from ..signals.fields import Field, Medium

METRICS = {"mse": "MSE", "snr_db": "SNR dB", "psnr_db": "PSNR dB", "ssim": "SSIM"}
# Between two lines of progress if the output is not a terminal.
LINE_SECONDS = 5.0


@contextlib.contextmanager
def fit_progress(*, quiet: bool) -> Iterator[Callable[..., None] | None]:
    """A function that shows the progress of a fit: in a table on a terminal, otherwise a line every few seconds."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda progress, name="": live.update(_progress_table(progress, name), refresh=True)
        return
    due = every(LINE_SECONDS)

    def tell(progress: "Progress", name: str = "") -> None:
        if due(progress.stop is not None):
            cells = [f"{key} {value}" for key, value in progress_cells(progress).items()]
            print("  ".join([*([name] if name else []), *cells]), file=sys.stderr, flush=True)

    yield tell


@contextlib.contextmanager
def lab_progress(name: str) -> "Iterator[Callable[[Standing], None]]":
    """A function that shows the progress of an experiment: a bar on a terminal, otherwise a line every few seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True))
    task, due = bar.add_task("", name=name, total=None), every(LINE_SECONDS)

    def tell(at: "Standing") -> None:
        words = f"{at.label}, step {at.step}/{at.steps}"
        bar.update(task, completed=at.done, total=at.total, description=words)
        if not bar.console.is_terminal and due(at.done == at.total):
            print(f"{name}: {at.done} of {at.total} runs  {words}", file=sys.stderr, flush=True)

    with bar if bar.console.is_terminal else contextlib.nullcontext():
        yield tell


def every(seconds: float) -> Callable[[bool], bool]:
    """A rate limiter: a function that is true at most once in this many seconds, and whenever `always` is."""
    latest = -seconds

    def due(always: bool) -> bool:
        nonlocal latest
        now = time.monotonic()
        if not always and now - latest < seconds:
            return False
        latest = now
        return True

    return due


def progress_cells(progress: "Progress", after: float = 0.0) -> dict[str, str]:
    """The progress of a fit in words; `after` are the seconds that come after its last step."""
    return {
        "step": f"{progress.step}/{progress.steps}",
        "loss": f"{progress.mse:.3e}",
        "SNR": f"{progress.snr_db:.2f} dB",
        "PSNR": f"{progress.psnr_db:.2f} dB",
        "steps/s": f"{progress.steps_per_second:.1f}",
        "left": str(timedelta(seconds=round(progress.seconds_left + after))),
    }


def _progress_table(progress: "Progress", name: str):
    cells = ({"run": name} if name else {}) | progress_cells(progress)
    return table(tuple(cells), [tuple(cells.values())])


def print_plan(runs: Sequence[tuple[str, bool]], estimates: "Sequence[Estimate]") -> None:
    """Print the labels of the runs, whether each is stored, and an estimate of the time for the others."""
    for label, stored in runs:
        print(f"{'stored' if stored else 'to do '}  {label}")
    rows = [
        (row.cost, str(row.runs), str(row.stored), f"{row.steps_left:,}", number(row.step_seconds), _time_left(row))
        for row in estimates
    ]
    print()
    print_table(("kind", "runs", "stored", "steps left", "seconds a step", "time left"), rows)
    left = timedelta(seconds=round(sum(row.seconds_left for row in estimates)))
    print(f"\n{sum(row.stored for row in estimates)} of {len(runs)} runs are stored; the others take about {left} here")


def _time_left(row: "Estimate") -> str:
    return "short" if row.step_seconds is None else str(timedelta(seconds=round(row.seconds_left)))


def print_metrics(metrics: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Print a row of metrics for each of the fields that have any."""
    rows = [(name, *(number(row.get(key)) for key in METRICS)) for name, row in metrics.items() if row is not None]
    print_table(("", *METRICS.values()), rows)


def print_report(report: "Report") -> None:
    """Print a diagnosis, with the severity of each finding in colour."""
    from rich.text import Text

    styles, screen = {"ok": "green", "warn": "yellow", "bad": "bold red"}, console()
    for line in str(report).splitlines():
        text, word = Text(line), line.partition(" ")[0]
        text.stylize(styles.get(word, ""), 0, len(word))
        screen.print(text, soft_wrap=True)


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table."""
    console().print(table(header, rows))


def console():
    """The console that tables are printed on: as wide as the terminal, or wide enough for all of them."""
    from rich.console import Console

    # File names and reasons are printed unchanged, even with brackets and colons.
    return Console(width=None if sys.stdout.isatty() else 1000, markup=False, emoji=False)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]):
    """A table for a console."""
    from rich.table import Table

    made = Table(*header, box=None, pad_edge=False)
    for row in rows:
        made.add_row(*row)
    return made


def print_json(content: dict) -> None:
    """Print one JSON object."""
    import json

    print(json.dumps(content))


def number(value: float | None) -> str:
    """A number in four digits, or a dash if there is none."""
    return "—" if value is None else f"{value:.4g}"


def words(value: Any) -> str:
    """A value, or a mapping of values, for reading."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {words(entry)}" for key, entry in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def described(field: "Field") -> str:
    """A field in words, e.g. 640 × 480 pixels (width × height), 3 channels."""
    from ..signals.fields import Grid

    channels = "1 channel" if field.out_size == 1 else f"{field.out_size} channels"
    if not isinstance(field, Grid):
        return f"{field.samples:,} points of {field.in_size} coordinates, {channels}"
    length = f", {field.samples / field.rate:.1f} s" if field.medium == "sound" and field.rate else ""
    return f"{sized(field.shape, field.medium, field.rate)}{length}, {channels}"


def sized(shape: Sequence[int], medium: "Medium | None", rate: float | None) -> str:
    """The size of a grid: that of a picture as it is seen, across first; others along each axis."""
    if medium == "sound":
        return f"{shape[0]:,} samples" + (f" at {rate:g} Hz" if rate else "")
    sides, *frames = as_seen(shape, medium, rate)
    if frames:
        return f"{sides} pixels (width × height), {frames[0]} frames at {rate:g} per second"
    return f"{sides} pixels (width × height)" if len(shape) == 2 and medium is not None else f"{sides} samples"


def as_seen(shape: Sequence[int], medium: "Medium | None", rate: float | None) -> tuple[str, ...]:
    """The sides of a picture, across first, and the frames of a video; the samples along each axis of anything else."""
    if len(shape) == 3 and rate is not None:
        return times(shape[:0:-1]), str(shape[0])
    return (times(shape[::-1] if len(shape) == 2 and medium is not None else shape),)


def times(shape: Sequence[int]) -> str:
    """A shape, e.g. 512 × 512."""
    return " × ".join(map(str, shape))


def ranges(extents: Sequence[tuple[float, float]]) -> str:
    """A domain, e.g. [-1, 1] × [-1, 1]."""
    return " × ".join(f"[{low:g}, {high:g}]" for low, high in extents)
