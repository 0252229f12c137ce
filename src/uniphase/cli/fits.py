"""`uniphase fit` with several signals: one after the other, and one table of all.

A signal that cannot be fitted does not end the others. With `--resume`, what was finished by the same command is not
fitted again, and what was interrupted goes on. One that was killed before its first state was written begins anew.
"""

import contextlib
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import terminal
from .display import watching
from .failures import explain
from .fit import Outputs, name_outputs, prepare, require_choices, require_free, summary
from .options import Options
from .outputs import alone
from .running import origin, run

_HEADER = ("signal", "samples", "parameters", "train SNR dB", "PSNR dB", "SSIM", "seconds", "file")


@dataclass(frozen=True)
class Settings:
    """What holds for each of the signals: the arguments of `prepare` and `run`, with a directory as the output."""

    options: Options
    scheme: str = "uniform-phase"
    seed: int = 0
    seconds: float | None = None
    target_db: float | None = None
    bits: int | None = None
    output: str | None = None
    resume: bool = False
    force: bool = False


class Finished(NamedTuple):
    """A signal whose network is in its file: its size in words, and what `--json` prints about it."""

    signal: str
    size: str
    summary: dict[str, Any]
    done_already: bool


class Failed(NamedTuple):
    """A signal that could not be fitted, and why."""

    signal: str
    reason: str


def fit_signals(signals: Sequence[str], settings: Settings, *, json: bool = False) -> None:
    """Fit each signal, print all results, and exit with 1 if one failed, with 130 after an interrupt.

    **Arguments:**

    - `signals`: names or files. Files that fits of the others write are left out; `*.png` matches them, too.
    - `settings`: for each of them.
    - `json`: whether to print one JSON object, without progress, in place of a table.

    !!! example
        ```python
        fit_signals(["camera", "brick"], Settings(Options(size=16, steps=20)))
        ```
    """
    require_choices(settings.scheme, settings.options, settings.seed)
    signals = _without_results(signals, settings.output)
    _require_distinct(signals, settings.output)
    try:
        endings = _fit_each(signals, settings, quiet=json)
    except KeyboardInterrupt:
        print("uniphase: interrupted; the same command with --resume continues the fits", file=sys.stderr)
        sys.exit(130)
    if json:
        terminal.print_json(_as_json(endings))
    else:
        terminal.print_table(_HEADER, [_row(ending) for ending in endings])
    if any(isinstance(ending, Failed) for ending in endings):
        sys.exit(1)


def _without_results(signals: Sequence[str], output: str | None) -> list[str]:
    """The signals, except files written by fits of the other signals."""
    if output is not None and not Path(output).is_dir():
        raise ValueError(
            f"output is {output}, but there are {len(signals)} signals; leave it out, or pass a directory that exists, "
            f"e.g. after mkdir {Path(output).stem}"
        )
    outputs = {signal: name_outputs(signal, output, sound=True) for signal in signals}
    writers: defaultdict[Path, set[str]] = defaultdict(set)
    for signal, files in outputs.items():
        for path in (*files.results, files.state):
            writers[path.resolve()].add(signal)
    left_out = [signal for signal in signals if writers[Path(signal).resolve()] - {signal}]
    if left_out:
        warnings.warn(f"left out {', '.join(left_out)}: written by fits of the other signals", stacklevel=2)
    return [signal for signal in signals if signal not in left_out]


def _require_distinct(signals: Sequence[str], output: str | None) -> None:
    """Raise an error if two signals would be written to the same file."""
    owners: dict[Path, str] = {}
    for signal in signals:
        network = name_outputs(signal, output, sound=False).network
        if network in owners:
            raise ValueError(
                f"{owners[network]} and {signal} would both be written to {network}; rename one, or fit each alone "
                "with its own --output"
            )
        owners[network] = signal


def _fit_each(signals: Sequence[str], settings: Settings, *, quiet: bool) -> list[Finished | Failed]:
    """What can be known without a fit comes first, so that nobody waits hours to read of a misspelt name."""
    endings = {signal: _attempt(look_ahead, signal, settings) for signal in signals}
    for i, signal in enumerate(signals, 1):
        if endings[signal] is None:
            if not quiet:
                print(f"[{i}/{len(signals)}] {signal}", file=sys.stderr, flush=True)
            with warnings.catch_warnings():  # a note on one signal is no reason to keep silent on the next
                endings[signal] = _attempt(_fit_one, signal, settings, quiet)
    return [ending for ending in endings.values() if ending is not None]


def _attempt(work: Callable[..., Finished | None], signal: str, *arguments: Any) -> Finished | Failed | None:
    """Do some work for a signal. An error that the user can fix is printed at once and returned."""
    try:
        return work(signal, *arguments)
    except BrokenPipeError:  # nobody reads what is printed: this ends all
        raise
    except Exception as error:
        if (words := explain(error)) is None:
            raise
        reason = " ".join(words.split()).removeprefix(f"{signal}: ")
        print(f"uniphase: {signal}: {reason}", file=sys.stderr, flush=True)
        return Failed(signal, reason)


def look_ahead(signal: str, settings: Settings) -> Finished | None:
    """Raise what is wrong before anything is loaded, and return what is done already."""
    from ..signals.datasets import require_signal

    require_signal(signal)
    outputs = name_outputs(signal, settings.output, sound=False)
    left = _left(signal, outputs, settings) if settings.resume else None
    if left is not None:
        if not left.differences and left.finished:
            return _finished(signal, outputs, done_already=True)
        if left.differences and not settings.force:
            raise FileExistsError(
                f"{outputs.network}: exists, but from another {', '.join(left.differences)}; pass --force to replace "
                "it, or another --output"
            )
    with alone(outputs.network):
        require_free(outputs, signal, resume=settings.resume, force=settings.force or left is not None)
    return None


def may_replace(signal: str, settings: Settings) -> bool:
    """Whether files of the fit that exist may be replaced: if told so, or if a kill left them of this very fit."""
    if settings.force or not settings.resume:
        return settings.force
    left = _left(signal, name_outputs(signal, settings.output, sound=False), settings)
    return left is not None and not left.differences and not left.finished


class _Left(NamedTuple):
    """A network that a fit left without a state: in what it was made from something else, and whether to the end."""

    differences: list[str]
    finished: bool


def _left(signal: str, outputs: Outputs, settings: Settings) -> _Left | None:
    """What there is of an earlier fit, if it is not a state to go on from."""
    from ..storage.network_file import read_header

    if outputs.state.exists() or not outputs.network.exists():
        return None
    limits = {"seconds": settings.seconds, "target_db": settings.target_db}
    wanted = origin(signal, settings.scheme, settings.options, seed=settings.seed, **limits, bits=settings.bits)
    header: dict[str, Any] = {}
    with contextlib.suppress(ValueError):  # no network at all
        header = read_header(outputs.network)
    found = header.get("training", {})
    # A file is known by its hash: it may be named by another path.
    keys = ("sha256" if "sha256" in wanted else "signal", "scheme", "seed", "options")
    names = ("signal", "scheme", "seed", "options")
    differences = [name for name, key in zip(names, keys, strict=True) if found.get(key) != wanted[key]]
    return _Left(differences, finished=header.get("metrics") is not None)  # they are written last


def _fit_one(signal: str, settings: Settings, quiet: bool) -> Finished:
    interrupted = name_outputs(signal, settings.output, sound=False).state.exists()
    job = prepare(
        signal,
        settings.options,
        scheme=settings.scheme,
        seed=settings.seed,
        seconds=settings.seconds,
        target_db=settings.target_db,
        bits=settings.bits,
        output=settings.output,
        resume=settings.resume and interrupted,
        force=may_replace(signal, settings),
    )
    with watching(job.subject.field, quiet=quiet) as watcher:
        run(job, seconds=settings.seconds, target_db=settings.target_db, watcher=watcher)
    return _finished(signal, job.outputs, done_already=False)


def _finished(signal: str, outputs: Outputs, *, done_already: bool) -> Finished:
    from ..storage.network_file import read_network

    content = read_network(outputs.network, lambda *_: None)
    shape = content.domain.shape
    size = "" if shape is None else " × ".join(terminal.as_seen(shape, content.medium, content.rate))
    return Finished(signal, size, summary(outputs.network, content), done_already)


def _row(ending: Finished | Failed) -> tuple[str, ...]:
    if isinstance(ending, Failed):
        return (ending.signal, *["—"] * (len(_HEADER) - 2), f"failed: {ending.reason}")
    found, train = ending.summary, ending.summary.get("train", {})
    metrics = [terminal.number(train.get(key)) for key in ("snr_db", "psnr_db", "ssim")]
    file = found["output"] + (" (done already)" if ending.done_already else "")
    return (ending.signal, ending.size, f"{found['parameters']:,}", *metrics, f"{found['seconds']:.1f}", file)


def _as_json(endings: Sequence[Finished | Failed]) -> dict[str, Any]:
    return {
        "fits": [
            {"signal": ending.signal, **ending.summary, "done_already": ending.done_already}
            for ending in endings
            if isinstance(ending, Finished)
        ],
        "failed": [ending._asdict() for ending in endings if isinstance(ending, Failed)],
    }
