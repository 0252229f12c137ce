"""Beyond the paper: where its text is ambiguous, what the other reading gives with narrow networks."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...initialization.blueprint import Blueprint
from ...initialization.distributions import Uniform
from ..experiment import Experiment, printed, titled
from ..fits import FitRun
from ..runs import Preset, Run
from ..store import Store
from ..tables import Table, spread, verdict
from .cameraman import values
from .narrow import PROTOCOLS


@dataclass(frozen=True)
class SwappedFansRun(FitRun):
    """A ReLU network with fan-in and fan-out swapped, as by JAX's He initializer for weights of shape (out, in)."""

    kind = "fit with swapped fans"

    @property
    def label(self) -> str:
        return f"{super().label} swapped-fans"

    def blueprint(self) -> Blueprint:
        blueprint = super().blueprint()
        plans = [dataclasses.replace(plan, weight=Uniform(math.sqrt(6 / plan.out_size))) for plan in blueprint.layers]
        return dataclasses.replace(blueprint, layers=tuple(plans))


def _make(run: type[FitRun] = FitRun, fewer: int = 0, **options: Any) -> Callable[[Preset, str, int], FitRun]:
    def fit(preset: Preset, scheme: str, seed: int) -> FitRun:
        p = PROTOCOLS[preset]
        return run(p.signal, scheme, p.width, p.depth - fewer, p.steps, p.rate, tuple(options.items()), seed=seed)

    return fit


# The same runs as in `narrow`.
DEFAULT = _make()
# A description of the other reading, the schemes that it affects, and a function that makes the run.
READINGS = (
    ("L counts the input layer", tuple(printed()["narrow"]), _make(fewer=1)),
    ("first bias of CVP26 is zero", ("cvp26-0",), _make(zero_input_bias=True)),
    ("output layer of SIREN's own code", ("cvp26-0", "sm20"), _make(official_output=True)),
    ("fans of He's law swapped", ("relu",), _make(SwappedFansRun)),
)


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    return [fit(preset, scheme, seed) for seed in range(seeds) for _, schemes, fit in READINGS for scheme in schemes]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows = []
    for words, schemes, other in READINGS:
        for scheme in schemes:
            theirs = printed()["narrow"][scheme]["eval_snr_db"]
            cells = []
            for fit in (DEFAULT, other):
                found = [record for seed in range(seeds) if (record := store.get(fit(preset, scheme, seed)))]
                ours = values(found, "eval_snr_db")
                judged = verdict(theirs, ours, preset, lower_is_better=False)
                cells += [spread(ours, ".2f"), str(len(ours)), judged]
            rows.append((words, scheme, theirs, *cells))
    header = ("reading", "network", "SNR dB, paper", "default reading", "seeds", "verdict")
    header = (*header, "other reading", "seeds", "verdict")
    title = titled("Other readings of the paper, narrow networks (N = 16)", preset)
    return [Table("readings", title, header, tuple(rows), (_FANS,))]


_FANS = (
    "Xavier's law stays the same when its fans are swapped, so that ReLU is the only network that this can make a "
    "difference to."
)

EXPERIMENT = Experiment("readings", "left open; other readings of section 4.3", (_runs,), _tables, lambda *_: {})
