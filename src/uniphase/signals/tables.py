"""Tables: columns of CSV and Parquet files, as `Points`."""

import contextlib
import csv
import glob
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from .fields import Points
from .paths import FilePath, reading
from .sources import require_package, require_suffix

TABLES = (".csv", ".tsv", ".parquet")

Columns = str | Sequence[str]


def table(source: FilePath, *, coordinates: Columns | None = None, values: Columns | None = None) -> Points:
    """Scattered points from the columns of a table, with a row for each point.

    Rows that lack one of the numbers (an empty cell, NaN or NULL) are dropped with a warning that counts them.

    **Arguments:**

    - `source`: the path of a CSV file (separated by commas or semicolons), a TSV file or a Parquet file, whose first
        row has the names of the columns. Parquet needs the extra `tables`.
    - `coordinates`: the name of a column, or several, which are the positions of the points.
    - `values`: the name of a column, or several, which are the channels.

    !!! example
        ```python
        stations = table("stations.csv", coordinates=["lon", "lat"], values="temperature")
        stations.in_size  # 2
        ```
    """
    path = os.fspath(source)
    require_suffix(path, TABLES)
    parquet = Path(path).suffix.lower() == ".parquet"
    if parquet:
        require_package("duckdb", "tables", path)
    fix = "get a whole copy, correct it, or choose other columns"
    with reading(path, "a table of numbers", fix):
        names = _parquet_names(path) if parquet else _csv_names(path)
    columns = _chosen(path, names, coordinates), _chosen(path, names, values)
    if not all(columns):
        raise ValueError(f"{path}: {_which(names)}")
    chosen = [*columns[0], *columns[1]]
    if repeated := [name for name in chosen if chosen.count(name) > 1]:
        raise ValueError(f"{path}: the column {repeated[0]!r} is chosen twice; choose it once")
    with reading(path, "a table of numbers", fix):
        rows = _parquet_rows(path, chosen) if parquet else _csv_rows(path, names, chosen)
    numbers = _complete(path, rows)
    return Points(numbers[:, : len(columns[0])], numbers[:, len(columns[0]) :])


def _chosen(path: str, names: Sequence[str], columns: Columns | None) -> list[str]:
    chosen = [] if columns is None else [columns] if isinstance(columns, str) else list(columns)
    for name in chosen:
        if name not in names:
            raise ValueError(f"{path}: there is no column {name!r}; it has {', '.join(names)}")
        if names.count(name) > 1:
            raise ValueError(f"{path}: {names.count(name)} columns are named {name!r}; rename all but one")
    return chosen


def _which(names: Sequence[str]) -> str:
    """What to do if no columns were chosen, with this table as the example."""
    if len(names) < 2:
        return f"its only column is {', '.join(names)}; a table has at least a coordinate and a value"
    coordinates = ",".join(names[: min(2, len(names) - 1)])
    return (
        f"its columns are {', '.join(names)}; choose coordinates and values among them, on the command line "
        f"with, e.g., --coordinates {coordinates} --values {names[-1]}"
    )


def _complete(path: str, rows: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "samples columns"]:
    """The rows that lack nothing. Warns of the others."""
    whole = ~np.isnan(rows).any(axis=1)
    kept = rows[whole]
    if len(kept) == 0:
        raise ValueError(f"{path}: none of its {len(rows)} rows has a number in every chosen column; choose others")
    if len(kept) < len(rows):
        warnings.warn(f"{path}: dropped {len(rows) - len(kept)} of its {len(rows)} rows with empty cells", stacklevel=3)
    return kept


def _csv_records(path: str) -> Iterator[tuple[int, list[str]]]:
    """The line number and the cells of every row, the names of the columns first."""
    with open(path, newline="", encoding="utf-8-sig") as stream:
        separator = "\t" if Path(path).suffix.lower() == ".tsv" else ","
        if separator == "," and "," not in (header := stream.readline()) and ";" in header:
            separator = ";"
        stream.seek(0)
        reader = csv.reader(stream, delimiter=separator, strict=True)
        for cells in reader:
            if cells:
                yield reader.line_num, [cell.strip() for cell in cells]


def _csv_names(path: str) -> list[str]:
    for _, names in _csv_records(path):
        return names
    raise ValueError("it has no rows")


def _csv_rows(path: str, names: Sequence[str], chosen: Sequence[str]) -> np.ndarray:
    indices = [names.index(name) for name in chosen]
    records = _csv_records(path)
    next(records)
    rows = []
    for line, cells in records:
        if len(cells) != len(names):
            raise ValueError(f"line {line} has {len(cells)} cells, but there are {len(names)} columns")
        rows.append([_number(cells[i], line, names[i]) for i in indices])
    return np.array(rows, np.float64).reshape(-1, len(chosen))


def _number(cell: str, line: int, column: str) -> float:
    with contextlib.suppress(ValueError):
        number = float(cell) if cell else math.nan
        if not math.isinf(number):
            return number
    raise ValueError(f"line {line}, column {column}: {cell!r} is not a finite number")


def _parquet_names(path: str) -> list[str]:
    import duckdb

    with duckdb.connect() as connection:
        return list(connection.read_parquet(glob.escape(path)).columns)


def _parquet_rows(path: str, chosen: Sequence[str]) -> np.ndarray:
    import duckdb

    with duckdb.connect() as connection:
        relation = connection.read_parquet(glob.escape(path))
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        for name in chosen:
            if not _is_number(kinds[name]):
                raise ValueError(f"column {name} holds {kinds[name]}, not numbers")
        quoted = ['"' + name.replace('"', '""') + '"' for name in chosen]
        columns = relation.project(", ".join(f"CAST({name} AS DOUBLE) AS c{i}" for i, name in enumerate(quoted)))
        arrays = columns.fetchnumpy()
    rows = np.stack([np.ma.filled(arrays[f"c{i}"], np.nan) for i in range(len(chosen))], axis=-1)
    if np.isinf(rows).any():
        raise ValueError("it has infinite numbers")
    return rows


def _is_number(kind: str) -> bool:
    return kind.lstrip("U").endswith("INT") or kind in ("INTEGER", "UINTEGER", "FLOAT", "DOUBLE") or "DECIMAL" in kind
