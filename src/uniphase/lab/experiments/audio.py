"""Section 4.2: a recording of Bach, 308,207 samples on [-100, 100], fitted with every scheme."""

from typing import TYPE_CHECKING

from ...initialization.schemes import get_scheme
from ..experiment import Experiment, printed, titled
from ..fits import FitRun, ReferenceRun, Signal
from ..runs import Preset, Run
from ..store import Store
from ..tables import MISSING, Table, spread, verdict
from .cameraman import SCHEMES, Protocol, values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Bach, one network per scheme"
PROTOCOLS: dict[Preset, Protocol] = {
    "paper": Protocol(Signal("bach"), width=256, depth=5, steps=5000, rate=5e-5),
    # 0.37 s from the middle, since the recording starts with silence; the distance between samples is the same
    "quick": Protocol(Signal("bach", size=16_384), width=128, depth=5, steps=500, rate=5e-5),
}


def fit_of(preset: Preset, scheme: str, seed: int) -> FitRun:
    p = PROTOCOLS[preset]
    options = tuple(get_scheme(scheme).sound.items())
    return FitRun(p.signal, scheme, p.width, p.depth, p.steps, p.rate, options, seed=seed)


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    fits = [fit_of(preset, scheme, seed) for seed in range(seeds) for scheme in SCHEMES]
    return [ReferenceRun(PROTOCOLS[preset].signal), *fits]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows = []
    for scheme in SCHEMES:
        records = [record for seed in range(seeds) if (record := store.get(fit_of(preset, scheme, seed)))]
        ours = values(records, "train_snr_db")
        theirs = printed()["audio"].get(scheme, {}).get("train_snr_db")
        words = theirs or printed()["audio_words"].get(scheme, MISSING)
        judged = verdict(theirs, ours, preset, lower_is_better=False)
        rows.append((scheme, words, spread(ours, ".2f"), str(len(records)), judged))
    header = ("network", "SNR dB, paper", "ours", "seeds", "verdict")
    return [Table("audio", titled(_TITLE, preset), header, tuple(rows))]


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from ..plots import waveforms

    reference = store.get(ReferenceRun(PROTOCOLS[preset].signal), needs="train")
    shown = {scheme: record for scheme in SCHEMES if (record := store.get(fit_of(preset, scheme, 0), needs="train"))}
    return {"audio": waveforms(titled(_TITLE, preset), reference, shown)} if reference and shown else {}


EXPERIMENT = Experiment("audio", "section 4.2, figure of the audio fits", (_runs,), _tables, _figures)
