"""Mutated files of every format that is read, each opened by the command line or as it would open it.

A file must be read, or refused in one line: without a traceback, within 10 seconds of the processor and 2 GB of memory,
and without any file being written.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from .children import complaint, in_child, scratch
from .mutations import PLAIN, inside, splice
from .records import Part, Trial
from .specimens import Specimen, specimens


@contextlib.contextmanager
def trials() -> Iterator[Callable[[Sequence[int]], Iterator[Trial]]]:
    with scratch() as base:
        made, work, logs = (base / name for name in ("made", "work", "logs"))
        for directory in (made, logs):
            directory.mkdir()
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
        whole = specimens(made)
        for specimen in whole:
            if failure := _attempt(specimen, specimen.name, specimen.files, work, logs):
                raise RuntimeError(f"{specimen.group}, {specimen.name} is not read as it is: {failure}")
        yield lambda seeds: (_trial(seed, whole, work, logs) for seed in seeds)


def _trial(seed: int, whole: list[Specimen], work: Path, logs: Path) -> Trial:
    rng = np.random.default_rng([seed, 3])
    specimen = whole[rng.integers(len(whole))]
    mutation, name, files = _mutated(rng, specimen, whole)
    failure = _attempt(specimen, name, files, work, logs)
    read = "failed" if failure else "read" if (logs / "code").read_text() == "0" else "refused"
    what = None if failure is None else f"{specimen.name}, {mutation}: {failure}"
    return Trial(seed, specimen.group, read, what)


def _mutated(rng: np.random.Generator, specimen: Specimen, whole: list[Specimen]) -> tuple[str, str, dict[str, bytes]]:
    """The name of a mutation, that of the file that is read, and the files."""
    files = dict(specimen.files)
    target = sorted(files)[rng.integers(len(files))]
    kind = str(rng.choice([*PLAIN, "spliced header", "suffix"]))
    if kind == "suffix" and len(files) == 1 and "." in specimen.name:
        suffix = Path(whole[rng.integers(len(whole))].name).suffix
        name = Path(specimen.name).stem + suffix
        return kind, name, {name: files[target]}
    if kind in ("spliced header", "suffix"):
        other = whole[rng.integers(len(whole))]
        files[target] = splice(rng, files[target], next(iter(other.files.values())))
        return "spliced header", specimen.name, files
    mutation = PLAIN[kind]
    if rng.random() < 0.5:
        files[target] = inside(rng, files[target], mutation)
    else:
        files[target] = mutation(rng, files[target])
    if rng.random() < 0.1:
        files[target] = PLAIN["bit flips"](rng, files[target] or b"\0")
    return kind, specimen.name, files


def _attempt(specimen: Specimen, name: str, files: dict[str, bytes], work: Path, logs: Path) -> str | None:
    """What goes wrong when the files are read in a directory of their own, which is the temporary one as well."""
    shutil.rmtree(work, ignore_errors=True)
    for path, content in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(content)
    before = _tree(work)

    def read() -> None:
        tempfile.tempdir = str(work)
        specimen.read(name)

    ended = in_child(read, work, logs)
    (logs / "code").write_text(str(ended.code))
    written = sorted(str(path.relative_to(work)) for path in _tree(work).keys() - before.keys())
    allowed = ended.code == 0 and len(written) == 1 and written[0].startswith("out.")
    changed = [str(path) for path, content in before.items() if _tree(work).get(path) != content]
    if failure := complaint(ended):
        return failure
    if (written and not allowed) or changed:
        return f"writes {', '.join(written + changed)}"
    return None


def _tree(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


PART = Part("files", "a damaged file of every format that is read", 10_000, 0.3, 100, trials)
