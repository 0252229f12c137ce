"""Fits that are killed at random moments, once or twice, and resumed: the same bits as without, and no stray file."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from .records import Part, Trial
from .small_fits import PATIENCE, SIGNALS, Fits, fits, is_finished, names, results, state


@contextlib.contextmanager
def trials() -> Iterator[Callable[[Sequence[int]], Iterator[Trial]]]:
    with fits() as small:
        yield lambda seeds: (_trial(seed, small) for seed in seeds)


def _trial(seed: int, small: Fits) -> Trial:
    rng = np.random.default_rng([seed, 1])
    kind = str(rng.choice(list(SIGNALS)))
    directory = small.fresh(kind)
    phases = []
    for again in range(int(rng.integers(1, 3))):
        moment = rng.uniform(0, small.seconds(kind))
        pid, wait = small.start(kind, directory, *(["--resume"] if again else []))
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        ended = wait(PATIENCE)
        if ended.code != -signal.SIGKILL:
            if failure := small.difference(kind, directory):
                return Trial(seed, kind, "failed", f"ended before the kill: {failure}")
            return Trial(seed, kind, "ended before the kill")
        phases.append(_phase(kind, directory))
        if odd := [name for name in names(directory) if not _known(name, kind)]:
            return Trial(seed, kind, "failed", f"strays after a kill: {', '.join(odd)}")
    failure = small.resumed(kind, directory)
    words = f"killed {phases[-1]}"
    return Trial(seed, kind, words if failure is None else "failed", failure and f"{' then '.join(phases)}: {failure}")


def _phase(kind: str, directory: Path) -> str:
    """How far a fit was when it was killed."""
    there = names(directory)
    if any(name.startswith(".uniphase-") for name in there):
        return "while writing"
    if is_finished(kind, directory):
        return "after the last result"
    if results(kind) & there:
        return "between results"
    return "between steps" if state(kind) in there else "before the first state"


def _known(name: str, kind: str) -> bool:
    return name in {SIGNALS[kind], state(kind)} | results(kind) or name.startswith(".uniphase-")


PART = Part("kills", "a fit killed at random moments and resumed", 100, 0.15, 4, trials)
