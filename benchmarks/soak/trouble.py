"""What befalls a fit from outside: full and read-only disks, quotas, signals, clocks, limits, and another fit.

Each ends well, or in one clear line, and keeps what the user had: the signal, an older result until the new one is
whole, and the state from which `--resume` goes on to the bits of a fit that nothing disturbed.
"""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from .children import Ended, complaint
from .records import Part, Trial
from .small_fits import PATIENCE, SIGNALS, Fits, content, fits, is_finished, names, results, state

Scenario = Callable[[np.random.Generator, str, Fits], tuple[str, str | None]]


@contextlib.contextmanager
def trials() -> Iterator[Callable[[Sequence[int]], Iterator[Trial]]]:
    with fits() as small:
        yield lambda seeds: (_trial(seed, small) for seed in seeds)


def _trial(seed: int, small: Fits) -> Trial:
    rng = np.random.default_rng([seed, 2])
    name = list(SCENARIOS)[seed % len(SCENARIOS)]
    kind = str(rng.choice(list(SIGNALS)))
    ending, failure = SCENARIOS[name](rng, kind, small)
    return Trial(seed, name, "failed" if failure else ending, failure and f"{kind}: {failure}")


def _full_disk(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    """On a file system of a few pages. As a user without mounts, by a limit on the size of a file."""
    directory = small.fresh(kind)
    with mounted(directory / "out", f"size={4 * int(rng.integers(1, 30))}k") as there:
        before = None if there else lambda: limit(resource.RLIMIT_FSIZE, int(rng.integers(1, 60_000)))
        ended = small.run(kind, directory, "-o", "out", before=before or (lambda: None))
        failure = _ended_in_a_line(ended, "cannot be written") or _whole(kind, directory / "out", ended)
        if ended.code == 0 or failure:
            return "ended well", failure
        if there:
            subprocess.run(["mount", "-o", "remount,size=10m", str(directory / "out")], check=True)
        return "refused, then resumed", _resumed_elsewhere(kind, directory, small)


def _file_too_large(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    directory, most = small.fresh(kind), int(rng.integers(1, 60_000))
    old = _older(kind, directory)
    ended = small.run(kind, directory, "--force", before=lambda: limit(resource.RLIMIT_FSIZE, most))
    if failure := _ended_in_a_line(ended, "cannot be written") or _whole(kind, directory, ended, old):
        return "", failure
    if ended.code == 0:
        return "ended well", None
    return "refused, then resumed", small.resumed(kind, directory) if state(kind) in names(directory) else None


def _quota(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    directory, left = small.fresh(kind), [int(rng.integers(0, 64))]
    old, sync = _older(kind, directory), os.fsync

    def refuse(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        sync(descriptor)

    ended = small.run(kind, directory, "--force", before=lambda: setattr(os, "fsync", refuse))
    failure = _ended_in_a_line(ended, "cannot be written (Disk quota exceeded)") or _whole(kind, directory, ended, old)
    if failure or ended.code == 0:
        return "ended well", failure
    return "refused, then resumed", small.resumed(kind, directory) if state(kind) in names(directory) else None


def _read_only(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    directory = small.fresh(kind)
    with mounted(directory / "out", "ro") as there:
        if not there:
            os.chmod(directory / "out", 0o555)
        ended = small.run(kind, directory, "-o", "out")
        failure = _ended_in_a_line(ended, "cannot be written")
        return "refused", failure or ("it ends well" if ended.code == 0 else _strays(directory / "out", set()))


def _another_file_system(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    directory = small.fresh(kind)
    with mounted(directory / "out", "size=10m"):
        ended = small.run(kind, directory, "-o", "out")
        return "ended well", _ended_in_a_line(ended, "no error") or _as_alone(kind, directory / "out", small)


def _clock(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    """The clock of the day goes back, at random, by up to a year."""
    directory, now, jumps = small.fresh(kind), time.time, [0.0]

    def earlier() -> float:
        if rng.random() < 0.3:
            jumps[0] += rng.exponential(3e6)
        return now() - jumps[0]

    ended = small.run(kind, directory, before=lambda: setattr(time, "time", earlier))
    return "ended well", _ended_in_a_line(ended, "no error") or small.difference(kind, directory)


def _two_fits(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    """Of the same command, started at about the same time: one is refused."""
    directory = small.fresh(kind)
    pause, waits = rng.uniform(0, 0.5 * small.seconds(kind)), []
    for log in ("first", "second"):
        waits.append(small.start(kind, directory, log=log)[1])
        time.sleep(pause)
    ends = [wait(PATIENCE) for wait in waits]
    failures = [_ended_in_a_line(ended, "another --output") for ended in ends]
    good = sum(ended.code == 0 for ended in ends)
    failure = next((failure for failure in failures if failure), None)
    if failure is None and good != 1:
        failure = f"{good} of 2 end well: {ends[0].err.strip()[-200:]} / {ends[1].err.strip()[-200:]}"
    return "one refused", failure or small.difference(kind, directory)


def _signalled(number: signal.Signals) -> Scenario:
    """A signal at a random moment. There is nobody to read a line if the terminal is closed."""

    def scenario(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
        directory = small.fresh(kind)
        old = _older(kind, directory) if rng.random() < 0.5 else {}
        moment = 0.05 + rng.uniform(0, small.seconds(kind))
        pid, wait = small.start(kind, directory, *(["--force"] if old else []))
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        ended = wait(PATIENCE)
        # While Python exits, signals are no longer caught.
        if ended.code == 0 or (ended.code == -number and is_finished(kind, directory) and _all_new(directory, old)):
            return "ended before", small.difference(kind, directory)
        talk = _ended_in_a_line(ended, "interrupted") or _whole(kind, directory, ended, old)
        if talk or ended.code != 130:
            return "", talk or f"exit code {ended.code}, not 130"
        if state(kind) in names(directory):
            return "interrupted, then resumed", small.resumed(kind, directory)
        return "interrupted before a step", None

    return scenario


def _little_memory(rng: np.random.Generator, kind: str, small: Fits) -> tuple[str, str | None]:
    """`ulimit -v`: libraries of others may end the process in words of their own; what the user had must stay."""
    directory, most = small.fresh(kind), int(rng.uniform(0.2, 3.0) * 2**30)
    old = _older(kind, directory)
    small.seconds(kind)
    ended = small.run(kind, directory, "--force", before=lambda: limit(resource.RLIMIT_AS, _addresses() + most))
    ending = "ended well" if ended.code == 0 else "refused" if complaint(ended) is None else "ended by a library"
    return ending, _whole(kind, directory, ended, old)


SCENARIOS: dict[str, Scenario] = {
    "disk full": _full_disk,
    "limit on files": _file_too_large,
    "quota": _quota,
    "read-only": _read_only,
    "another file system": _another_file_system,
    "clock set back": _clock,
    "two fits, one output": _two_fits,
    "Ctrl-C": _signalled(signal.SIGINT),
    "closed terminal": _signalled(signal.SIGHUP),
    "SIGTERM": _signalled(signal.SIGTERM),
    "little memory": _little_memory,
}


@contextlib.contextmanager
def mounted(path: Path, options: str) -> Iterator[bool]:
    """A small file system at a path, if this user may mount one; otherwise a directory."""
    path.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(path)], capture_output=True)
    try:
        yield mount.returncode == 0
    finally:
        if mount.returncode == 0:
            subprocess.run(["umount", str(path)], check=True)


def limit(what: int, most: int) -> None:
    """Set a limit of the process."""
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def _addresses() -> int:
    return resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])


def _ended_in_a_line(ended: Ended, words: str) -> str | None:
    """What is wrong with the talk of a fit: progress comes first, then the line, which has these words."""
    lines = [line for line in ended.err.splitlines() if line.startswith("uniphase: ") and "note: " not in line]
    if ended.code == 0:
        return None
    if "Traceback" in ended.err or ended.code < 0 or len(lines) != 1:
        return complaint(ended) or f"ends in {len(lines)} lines: {ended.err[-200:]}"
    return None if words in lines[0] else f"says {lines[0]!r}"


def _older(kind: str, directory: Path) -> dict[str, bytes]:
    """Results that were there before."""
    old = {name: f"older {name}".encode() for name in sorted(results(kind))}
    for name, data in old.items():
        (directory / name).write_bytes(data)
    return old


def _all_new(directory: Path, old: dict[str, bytes]) -> bool:
    return all((directory / name).read_bytes() != data for name, data in old.items())


def _whole(kind: str, directory: Path, ended: Ended, old: dict[str, bytes] | None = None) -> str | None:
    """Every result is as it was before or whole, and nothing else is there but a state."""
    there = names(directory) - {SIGNALS[kind], state(kind)}
    if odd := there - results(kind):
        return f"strays: {', '.join(sorted(odd))}"
    old = old or {}
    if gone := old.keys() - there:
        return f"lost: {', '.join(sorted(gone))}"
    changed = {name for name in there if (directory / name).read_bytes() != old.get(name)}
    if ended.code != 0 and changed and state(kind) not in names(directory):
        return f"replaced {', '.join(sorted(changed))} without a state to go on from"
    if f"{Path(SIGNALS[kind]).stem}.uniphase" not in changed:
        return None
    if changed != results(kind):
        return None if ended.code else f"only {', '.join(sorted(changed))} are new"
    try:
        content(kind, directory)
    except Exception as error:
        return f"a result is damaged: {error!r}"
    return None


def _strays(directory: Path, allowed: set[str]) -> str | None:
    odd = names(directory) - allowed
    return f"strays: {', '.join(sorted(odd))}" if odd else None


def _as_alone(kind: str, directory: Path, small: Fits) -> str | None:
    if odd := names(directory) ^ results(kind):
        return f"strays or missing files: {', '.join(sorted(odd))}"
    expected = small.reference(kind)
    return None if content(kind, directory) == expected else "other bits than a fit that nothing disturbed"


def _resumed_elsewhere(kind: str, directory: Path, small: Fits) -> str | None:
    ended = small.run(kind, directory, "-o", "out", "--resume")
    if ended.code != 0:
        return f"does not go on: {ended.err[-200:]}"
    return _as_alone(kind, directory / "out", small)


PART = Part("trouble", "a fit that is disturbed from outside", 300, 0.15, len(SCENARIOS), trials)
