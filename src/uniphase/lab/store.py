"""The store: a directory with a JSON file and an NPZ file for every record.

Files are written atomically and never change, so any number of processes can share the directory without locks. The
JSON file is written last: if it exists, the record is complete.

A report packs all records into a single file, without large arrays, that is small enough to be published. The directory
of a report is therefore a store, too: its tables, and the figures that need no arrays, can be made again from it.
"""

import csv
import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..signals.paths import atomic_path, reading
from .runs import Record, Run, identify

_HEADER = [field.name for field in fields(Record) if field.name != "load"]
PACKED = "records.jsonl"
# The arrays kept in a packed record. Losses and images are left out.
_KEPT = ("spectrum",)

_Load = Callable[[], Mapping[str, np.ndarray]]


def require_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Check that a path can be used as a directory; it need not exist yet."""
    if not os.fspath(path):
        raise ValueError(f"{name} is ''; pass a directory, '.' for the current one")
    if Path(path).exists() and not Path(path).is_dir():
        raise ValueError(f"{name} is {os.fspath(path)!r}, but that is a file; pass a directory")
    return Path(path)


class Store:
    """A directory of records, looked up by run.

    **Arguments:**

    - `directory`: created when something is first written.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = require_directory("store", directory)

    def __contains__(self, run: Run) -> bool:
        return self.get(run) is not None

    def get(self, run: Run, *, needs: str | None = None) -> Record | None:
        """The record of a run, or `None` if it is not stored or lacks the array called `needs`."""
        identity = identify(run)
        path = self._path(identity)
        record = self._read(path) if path.exists() else self._packed.get(identity)
        return None if record is None or (needs is not None and needs not in record.load()) else record

    def put(self, record: Record) -> None:
        """Write a record."""
        path = self._path(record.identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path.with_suffix(".npz")) as temporary:
            np.savez_compressed(temporary, **record.load())  # pyright: ignore[reportArgumentType]
        with atomic_path(path) as temporary:
            content = {name: getattr(record, name) for name in _HEADER}
            temporary.write_text(json.dumps(content, indent=1, allow_nan=False))

    def records(self) -> Iterator[Record]:
        """All records of the current numerics, sorted by identity."""
        # A process that is killed while it writes a record leaves a hidden file, whole or not.
        loose = {path.stem: path for path in (self.directory / "records").glob("[!.]*.json")}
        for identity in sorted({*loose, *self._packed}):
            record = self._read(loose[identity]) if identity in loose else self._packed[identity]
            if record.current:
                yield record

    def checkpoint(self, runs: Sequence[Run]) -> Path:
        """The path of the checkpoint of runs that are computed together."""
        directory = self.directory / "checkpoints"
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{identify(runs[0])}-{len(runs)}.state"

    def _path(self, identity: str) -> Path:
        return self.directory / "records" / f"{identity}.json"

    @functools.cached_property
    def _packed(self) -> Mapping[str, Record]:
        path = self.directory / PACKED
        lines = path.read_bytes().splitlines() if path.exists() else []
        records = [
            _parse(line, f"{path}, line {number}", "that line", _kept_arrays) for number, line in enumerate(lines, 1)
        ]
        return {record.identity: record for record in records}

    def _read(self, path: Path) -> Record:
        arrays = functools.partial(_arrays, path.with_suffix(".npz"))
        return _parse(path.read_bytes(), str(path), "it", lambda content: arrays)


def _parse(text: bytes, place: str, remove: str, loader: Callable[[Mapping[str, Any]], _Load]) -> Record:
    try:
        content = json.loads(text)
        _require_kinds(content)
        return Record(**{name: content[name] for name in _HEADER}, load=loader(content))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{place}: not a record ({error!r}); remove {remove}, and the run is computed again"
        ) from error


def _require_kinds(content: Mapping[str, Any]) -> None:
    """Raise an error if an entry is not of the kind that is written, or is not there."""
    kinds = {"identity": str, "kind": str, "config": dict, "metrics": dict, "seconds": int | float, "cost": str}
    for name, kind in (kinds | {"work": int, "provenance": dict}).items():
        if not isinstance(content[name], kind):
            raise ValueError(f"{name} is {content[name]!r}")
    if "device" not in content["provenance"]:  # by which the times of runs are told apart
        raise ValueError("its provenance has no device")


def _arrays(path: Path) -> Mapping[str, np.ndarray]:
    with (
        reading(path, "the arrays of a record", "remove it with its JSON file, and the run is computed again"),
        path.open("rb") as stream,  # which NumPy leaves open if it is no archive
        np.load(stream, allow_pickle=False) as file,
    ):
        return dict(file)


def _kept_arrays(content: Mapping[str, Any]) -> _Load:
    arrays = {name: np.asarray(values, np.float64) for name, values in content["arrays"].items()}
    return lambda: arrays


def pack(records: Sequence[Record], path: Path) -> None:
    """Write all records, without large arrays, to one file with a line each."""
    with atomic_path(path) as temporary, temporary.open("w") as stream:
        for record in records:
            kept = {name: array.tolist() for name, array in record.load().items() if name in _KEPT}
            content = {name: getattr(record, name) for name in _HEADER} | {"arrays": kept}
            stream.write(json.dumps(content, allow_nan=False) + "\n")


def flat(record: Record) -> dict[str, Any]:
    """A record as a row of a table: config, metrics and provenance under dotted names, without arrays."""
    parts = {"config": record.config, "metrics": record.metrics, "provenance": record.provenance}
    row = {name: getattr(record, name) for name in ("identity", "kind", "seconds", "work", "cost")}
    return row | {name: entry for part, content in parts.items() for name, entry in _flatten(part, content)}


def _flatten(prefix: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flatten(f"{prefix}.{key}", value)
        else:
            yield f"{prefix}.{key}", json.dumps(value) if isinstance(value, list) else value


def write_tables(records: Sequence[Record], csv_path: Path, parquet_path: Path) -> bool:
    """Write all records, without arrays, as CSV and Parquet. Without DuckDB, write CSV only and return `False`."""
    rows = [flat(record) for record in records]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_path(csv_path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    try:
        import duckdb
    except ImportError:
        return False
    # Column types are inferred from all rows; an identity is always text, even if it looks like a number (12e34).
    with duckdb.connect() as connection, atomic_path(parquet_path) as temporary:
        table = connection.read_csv(str(csv_path), sample_size=-1, dtype={"identity": "VARCHAR"})
        table.write_parquet(str(temporary), compression="zstd")
    return True
