"""`python -m benchmarks.soak`: every part for its share of the time, then the page."""

import argparse
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator

from . import files, fits, kills, sweep, trouble
from .records import Batch, Part, Trial, append, next_seed, open_failures, read_batches, write_page

PARTS = (kills.PART, sweep.PART, files.PART, fits.PART, trouble.PART)
# Hours that all parts take together, unless HOURS says otherwise.
HOURS = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.soak")
    parser.add_argument("--only", choices=[part.name for part in PARTS], help="one part, which gets all the time")
    parser.add_argument("--hours", type=float, default=float(os.environ.get("HOURS") or HOURS))
    parser.add_argument(
        "--seed", type=int, nargs="+", help="repeat these trials of one part, print how each ends, and keep a record"
    )
    parser.add_argument("--page", action="store_true", help="only write the page from the records")
    arguments = parser.parse_args()
    parts = [part for part in PARTS if arguments.only in (None, part.name)]
    if arguments.seed is not None and arguments.only is None:
        parser.error("--seed needs --only, as every part has seeds of its own")
    total = sum(part.share for part in parts)
    failed = 0
    for part in () if arguments.page else parts:
        if arguments.seed is None:
            failed += soak(part, 3600 * arguments.hours * part.share / total)
        else:
            failed += repeat(part, arguments.seed)
    write_page(PARTS)
    sys.exit(1 if failed else 0)


def soak(part: Part, seconds: float) -> int:
    """Try what failed before and then new seeds, until the time is over; return how many failed."""
    end, failed, done = time.monotonic() + seconds, 0, 0
    print(f"{part.name}: {seconds / 60:.1f} minutes", flush=True)
    with part.trials() as attempt:
        for seeds in _batches(part):
            begun = time.monotonic()
            trials: list[Trial] = []
            with contextlib.suppress(KeyboardInterrupt):
                for trial in attempt(seeds):
                    trials.append(trial)
                    if trial.failure is not None:
                        print(f"  seed {trial.seed}, {trial.kind}: {trial.failure}", flush=True)
                    if time.monotonic() > end:
                        break
            if trials:
                append(Batch.of(part.name, trials, time.monotonic() - begun))
            failed, done = failed + sum(trial.failure is not None for trial in trials), done + len(trials)
            if len(trials) < len(seeds) or time.monotonic() > end:
                break
    print(f"  {done} trials, {failed} failed", flush=True)
    return failed


def repeat(part: Part, seeds: list[int]) -> int:
    """Try some seeds again."""
    begun, trials = time.monotonic(), []
    with part.trials() as attempt:
        for trial in attempt(seeds):
            ending = f"{trial.ending}: {trial.failure or 'as it should be'}"
            print(f"{part.name} {trial.seed}: {trial.kind}, {ending}", flush=True)
            trials.append(trial)
    append(Batch.of(part.name, trials, time.monotonic() - begun))
    return sum(trial.failure is not None for trial in trials)


def _batches(part: Part) -> Iterator[list[int]]:
    batches = read_batches()
    if again := list(open_failures(batches, part.name)):
        yield again
    for start in itertools.count(next_seed(batches, part.name), part.batch):
        yield list(range(start, start + part.batch))


if __name__ == "__main__":
    main()
