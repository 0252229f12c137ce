"""What an experiment consists of: runs, and the tables and figures made from their records."""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from .runs import Preset, Run
from .store import Store
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Appended to every title of the quick preset.
QUICK = "quick preset, a reduced protocol that is not the paper's"

Stage = Callable[[Preset, int, Store], Sequence[Run]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, and the runs it is made from.

    - `name`: used on the command line and for file names.
    - `artefact`: where to find it in the paper.
    - `stages`: functions that list the runs for a preset and a number of seeds. A stage may look up the records of
        earlier stages in the store.
    - `tables`, `figures`: functions that make them from the records in the store, for a preset and a number of seeds.
        Figures are keyed by file name.
    - `dependencies`: the runs of earlier stages that must be stored before a run can start.
    """

    name: str
    artefact: str
    stages: tuple[Stage, ...]
    tables: Callable[[Preset, int, Store], Sequence[Table]]
    figures: Callable[[Preset, int, Store], "Mapping[str, Figure]"]
    dependencies: Callable[[Preset, Run], Sequence[Run]] = lambda preset, run: ()

    def runs(self, preset: Preset, seeds: int, store: Store) -> list[Run]:
        """All runs, without duplicates. Those of a stage with missing dependencies are placeholders."""
        stages = range(len(self.stages))
        return list(dict.fromkeys(run for number in stages for run in self.stage(number, preset, seeds, store)))

    def stage(self, number: int, preset: Preset, seeds: int, store: Store) -> Sequence[Run]:
        """The runs of one stage."""
        if seeds < 1:
            raise ValueError(f"seeds is {seeds}; it must be at least 1")
        return self.stages[number](preset, seeds, store)


def titled(title: str, preset: Preset) -> str:
    """The title, marked if the preset is not the paper's protocol."""
    return title if preset == "paper" else f"{title} ({QUICK})"


@functools.cache
def printed() -> dict[str, Any]:
    """The numbers printed in the paper, as strings, since the number of digits matters."""
    return json.loads(files("uniphase.lab").joinpath("printed.json").read_text())
