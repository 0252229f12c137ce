"""`--log`: the progress of a fit as a CSV file, written as it goes on."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from ..signals.paths import atomic_path

if TYPE_CHECKING:
    from ..fitting.plan import Progress

COLUMNS = ("step", "seconds", "loss", "snr_db", "rate", "steps_per_second")


class Log:
    """A file with a row for every progress of a fit. Each is on the disk when the next steps begin.

    **Arguments:**

    - `path`: the file.
    - `resume`: whether to continue the log of an interrupted fit. Rows of steps that are taken again are dropped.

    !!! example
        ```python
        fit(network, field, steps=20, callback=Log("run.csv").add)
        ```
    """

    def __init__(self, path: str | Path, *, resume: bool = False):
        self.path, self._resume, self._begun = Path(path), resume, False

    def add(self, progress: "Progress") -> None:
        """Write a row."""
        if not self._begun:
            self._begin(progress.step)
        row = (progress.step, progress.seconds, progress.mse, progress.snr_db, progress.rate, progress.steps_per_second)
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(f"{value:.6g}" if isinstance(value, float) else value for value in row)

    def _begin(self, step: int) -> None:
        kept = _rows_before(self.path, step) if self._resume and self.path.exists() else []
        with atomic_path(self.path) as temporary, temporary.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *kept])
        self._begun = True


def _rows_before(path: Path, step: int) -> list[list[str]]:
    """The whole rows of earlier steps; a kill may have cut off the last one."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == len(COLUMNS) and row[0].isdigit()]
    return [row for row in rows if int(row[0]) < step]


def require_log(path: Path, *, resume: bool) -> None:
    """Raise an error for a file that is not the log of a fit, if it is to be continued as one."""
    if not resume or not path.exists():
        return
    with path.open(newline="", errors="replace") as file:
        header = next(csv.reader(file), None)
    if header is not None and tuple(header) != COLUMNS:
        raise ValueError(f"{path}: not the log of a fit; pass another --log")
