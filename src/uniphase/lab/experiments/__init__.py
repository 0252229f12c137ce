"""The laboratory: every table and figure of the paper as runs that are stored, shared and drawn.

An experiment is data: a file here names the paper's artefact, lists its runs, and turns their records into tables and
figures. They are found by name and imported when asked for.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..experiment import Experiment

# Cheap ones first: the order of `reproduce all`.
NAMES = ("moments", "theory", "spectrum", "narrow", "readings", "cameraman", "audio", "omega-sweep", "mup-sweep")


def get_experiment(name: str) -> "Experiment":
    """The experiment of a name."""
    if name not in NAMES:
        raise ValueError(f"there is no experiment {name!r}; the known ones are {', '.join(NAMES)}")
    return importlib.import_module(f".{name.replace('-', '_')}", __name__).EXPERIMENT
