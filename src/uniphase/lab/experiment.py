"""What an experiment consists of."""

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

# What a title says of everything that was not made by the paper's protocol.
QUICK = "quick preset, a reduced protocol that is not the paper's"

Stage = Callable[[Preset, int, Store], Sequence[Run]]


@dataclass(frozen=True)
class Experiment:
    """An artefact of the paper.

    - `name`, `artefact`: ours and the paper's.
    - `stages`: the runs of a preset for a number of seeds. A stage may look up the records of those before it.
    - `tables`, `figures`: made from the records that there are, for a preset and a number of seeds; the figures by the
        names of their files.
    - `forerunners`: the runs of earlier stages that a run depends on.
    """

    name: str
    artefact: str
    stages: tuple[Stage, ...]
    tables: Callable[[Preset, int, Store], Sequence[Table]]
    figures: Callable[[Preset, int, Store], "Mapping[str, Figure]"]
    forerunners: Callable[[Preset, Run], Sequence[Run]] = lambda preset, run: ()

    def runs(self, preset: Preset, seeds: int, store: Store) -> list[Run]:
        """All runs, each once. Those of a stage whose forerunners are missing are provisional, and only counted."""
        stages = range(len(self.stages))
        return list(dict.fromkeys(run for number in stages for run in self.stage(number, preset, seeds, store)))

    def stage(self, number: int, preset: Preset, seeds: int, store: Store) -> Sequence[Run]:
        """The runs of one stage."""
        if seeds < 1:
            raise ValueError(f"seeds is {seeds}; it must be at least 1")
        return self.stages[number](preset, seeds, store)


def titled(title: str, preset: Preset) -> str:
    """A title that says so if it is not the paper's protocol."""
    return title if preset == "paper" else f"{title} ({QUICK})"


@functools.cache
def printed() -> dict[str, Any]:
    """The figures that the paper prints, as strings, for their precision is part of them."""
    return json.loads(files("uniphase.lab").joinpath("printed.json").read_text())
