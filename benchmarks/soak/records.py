"""Trials, their records in a file with a JSON line for each batch, and the page that is written from them."""

import functools
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RECORDS, PAGE = ROOT / "results" / "soak.jsonl", ROOT / "results" / "soak.md"


class Trial(NamedTuple):
    """What was tried with one seed, how it ended, and what was wrong with that, if anything was."""

    seed: int
    kind: str
    ending: str
    failure: str | None = None


@dataclass(frozen=True)
class Part:
    """One kind of bad luck.

    - `name`, `about`: for the command line and for the page.
    - `wanted`: how many trials a real soak should have.
    - `share`: of the time.
    - `batch`: trials to a record.
    - `trials`: a context in which a function turns seeds into trials; what the trials share is made once, on entry.
    """

    name: str
    about: str
    wanted: int
    share: float
    batch: int
    trials: Callable[[], AbstractContextManager[Callable[[Sequence[int]], Iterable[Trial]]]]


@dataclass(frozen=True)
class Batch:
    """A line of the records: how often each kind of trial came to each ending, and the failures with their seeds."""

    part: str
    seeds: list[int]
    endings: list[tuple[str, str, int]]
    failures: list[dict[str, Any]]
    seconds: float
    commit: str
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @staticmethod
    def of(part: str, trials: Sequence[Trial], seconds: float) -> "Batch":
        counts = Counter((trial.kind, trial.ending) for trial in trials)
        return Batch(
            part,
            [trial.seed for trial in trials],
            [(*key, count) for key, count in sorted(counts.items())],
            [{"seed": t.seed, "kind": t.kind, "what": t.failure} for t in trials if t.failure is not None],
            round(seconds, 1),
            _commit(),
        )


def read_batches(path: Path | None = None) -> list[Batch]:
    """All records. A last line that was cut off by a kill is left out."""
    path, batches = path or RECORDS, []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            batches.append(Batch(**json.loads(line)))
        except json.JSONDecodeError:
            continue
    return batches


def append(batch: Batch, path: Path | None = None) -> None:
    """Add a record. A line that was cut off is ended first, so that it takes no other with it."""
    path = path or RECORDS
    path.parent.mkdir(exist_ok=True)
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    with path.open("a") as stream:
        stream.write(("" if whole else "\n") + json.dumps(asdict(batch)) + "\n")


def open_failures(batches: Iterable[Batch], part: str) -> dict[int, dict[str, Any]]:
    """The seeds whose latest trial failed, with what was wrong."""
    latest: dict[int, dict[str, Any] | None] = {}
    for batch in batches:
        if batch.part == part:
            failed = {failure["seed"]: failure | {"commit": batch.commit} for failure in batch.failures}
            latest |= {seed: failed.get(seed) for seed in batch.seeds}
    return {seed: failure for seed, failure in latest.items() if failure is not None}


def next_seed(batches: Iterable[Batch], part: str) -> int:
    """The first seed beyond those that were tried."""
    return max((max(batch.seeds) + 1 for batch in batches if batch.part == part), default=0)


def write_page(parts: Sequence[Part], path: Path = PAGE) -> None:
    """Write the summary of all records."""
    batches = read_batches()
    path.write_text("\n".join(_page(parts, batches)) + "\n")


def _page(parts: Sequence[Part], batches: Sequence[Batch]) -> Iterator[str]:
    yield "# A week of bad luck\n"
    yield "Written by `make soak` (benchmarks/soak/) from the records in soak.jsonl. A failure is repeated by"
    yield "`python -m benchmarks.soak --only PART --seed SEED`. One that passes later is no longer open.\n"
    yield "| part | what is tried | trials | wanted | failed ever | still failing | minutes |"
    yield "|---|---|---|---|---|---|---|"
    for part in parts:
        mine = [batch for batch in batches if batch.part == part.name]
        seeds = {seed for batch in mine for seed in batch.seeds}
        failed = {failure["seed"] for batch in mine for failure in batch.failures}
        minutes = sum(batch.seconds for batch in mine) / 60
        row = f"{len(seeds):,} | {part.wanted:,} | {len(failed)} | {len(open_failures(mine, part.name))}"
        yield f"| {part.name} | {part.about} | {row} | {minutes:.1f} |"
    for part in parts:
        yield from _section(part, [batch for batch in batches if batch.part == part.name])


def _section(part: Part, batches: Sequence[Batch]) -> Iterator[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for batch in batches:
        counts.update({(kind, ending): count for kind, ending, count in batch.endings})
    if not counts:
        return
    kinds, endings = sorted({kind for kind, _ in counts}), sorted({ending for _, ending in counts})
    yield f"\n## {part.name}\n"
    yield f"| | {' | '.join(endings)} |"
    yield f"|---|{'---|' * len(endings)}"
    for kind in kinds:
        yield f"| {kind} | {' | '.join(str(counts[kind, ending] or '') for ending in endings)} |"
    still, ever = open_failures(batches, part.name), [failure for batch in batches for failure in batch.failures]
    if ever:
        yield "\nFailures:\n"
    seen: set[tuple[int, str]] = set()
    for batch in batches:
        for failure in batch.failures:
            seed, what = failure["seed"], failure["what"]
            if (seed, what) not in seen:
                state = "**open**" if seed in still else "passes now"
                yield f"- seed {seed} ({failure['kind']}, commit {batch.commit}): {_plain(what)}. {state}"
            seen.add((seed, what))


def _plain(text: str) -> str:
    """Text for a line of Markdown, without what it could take as markup."""
    return "`" + " ".join(text.split()).replace("`", "'")[:300] + "`"


@functools.cache
def _commit() -> str:
    """The commit of what is tried, as it was at the start; the records themselves may have changed."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "benchmarks/soak"]).returncode
    return (head or "unknown") + ("-dirty" if changed else "")
