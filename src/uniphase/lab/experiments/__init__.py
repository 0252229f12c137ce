"""The experiments, one file each, named after a table or figure of the paper: which runs it needs, and what its tables
and figures show of their records. `get_experiment` imports the file of a name.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..experiment import Experiment

# In the order in which `reproduce all` runs them: the cheapest first.
EXPERIMENT_NAMES = (
    "moments",
    "theory",
    "spectrum",
    "narrow",
    "readings",
    "cameraman",
    "audio",
    "omega-sweep",
    "mup-sweep",
    "beyond",
)


def get_experiment(name: str) -> "Experiment":
    """The experiment with the given name."""
    if name not in EXPERIMENT_NAMES:
        raise ValueError(f"there is no experiment {name!r}; the known ones are {', '.join(EXPERIMENT_NAMES)}")
    return importlib.import_module(f".{name.replace('-', '_')}", __name__).EXPERIMENT
