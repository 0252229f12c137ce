"""The store: a directory with a JSON file and an NPZ file for every record.

Files are written whole or not at all and never change, so that any number of processes may share the directory without
locks. The JSON file is written last: where it is, the record is complete.
"""

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..files import atomic_path
from .runs import Record, Run, identify

_HEADER = [field.name for field in fields(Record) if field.name != "load"]


class Store:
    """Records by the identity of their runs.

    **Arguments:**

    - `directory`: made when something is first written.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.directory = Path(directory)

    def __contains__(self, run: Run) -> bool:
        return self._path(identify(run)).exists()

    def get(self, run: Run) -> Record | None:
        """The record of a run, if it was computed."""
        path = self._path(identify(run))
        return self._read(path) if path.exists() else None

    def put(self, record: Record) -> None:
        """Keep a record."""
        path = self._path(record.identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path.with_suffix(".npz")) as temporary:
            np.savez_compressed(temporary, **record.load())  # pyright: ignore[reportArgumentType]
        with atomic_path(path) as temporary:
            content = {name: getattr(record, name) for name in _HEADER}
            temporary.write_text(json.dumps(content, indent=1, allow_nan=False))

    def records(self) -> Iterator[Record]:
        """All records, in the order of their identities."""
        for path in sorted((self.directory / "records").glob("*.json")):
            yield self._read(path)

    def checkpoint(self, runs: Sequence[Run]) -> Path:
        """Where runs that are computed together keep their state."""
        directory = self.directory / "checkpoints"
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{identify(runs[0])}-{len(runs)}.state"

    def _path(self, identity: str) -> Path:
        return self.directory / "records" / f"{identity}.json"

    def _read(self, path: Path) -> Record:
        try:
            content = json.loads(path.read_text())
            return Record(**{name: content[name] for name in _HEADER}, load=lambda: _arrays(path.with_suffix(".npz")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: not a record ({error!r}); remove it, and the run is computed again") from error


def _arrays(path: Path) -> Mapping[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def flat(record: Record) -> dict[str, Any]:
    """A record as a row of a table: config and metrics by dotted names, without arrays."""
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
    """All records, without their arrays, as CSV and as Parquet. Without DuckDB only CSV is written: `False`."""
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
    # All rows are looked at for the type of a column, but an identity is a text, even if it looks like 12e34.
    with duckdb.connect() as connection, atomic_path(parquet_path) as temporary:
        table = connection.read_csv(str(csv_path), sample_size=-1, dtype={"identity": "VARCHAR"})
        table.write_parquet(str(temporary), compression="zstd")
    return True
