"""Past the paper: its images and its recording by the default fit, beside its own protocol and the cubic spline.

The paper's tasks are made again with the pixels of both resolutions where they belong, as averages over their cells.
The same networks are also measured on the paper's fine grid, whose outermost pixels lie on those of the coarse one.
"""

import dataclasses
import functools
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...initialization.schemes import OUTPUT_SCALE, sm20
from ...recipe import CALM, DEPTH, DRAWS, HELD_LEAST, HELD_RATE, HELD_TENFOLD, Scales, default_recipe, default_size
from ...signals.datasets import load
from ...signals.fields import Grid
from ..experiment import Experiment, printed, titled
from ..fits import BASELINES, ReferenceRun, Signal, errors_of
from ..runs import Outcome, Preset, Record, Run, SingleRun
from ..store import Store
from ..tables import MISSING, Table, spread
from . import audio, omega_sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class DefaultRun(SingleRun):
    """Fit a signal by the default rule."""

    signal: Signal
    seed: int = 0

    kind = "default fit"

    @property
    def label(self) -> str:
        return f"{self.signal.label} seed={self.seed}"

    @property
    def cost(self) -> str:
        return f"default fit of {self.signal.label} at {self.signal.size}"

    def effective(self) -> dict[str, Any]:
        """The signal and all that the rule says for it: when the rule changes, these are other runs."""
        rule = _rule()
        if self.signal.name == "bach" and self.signal.size is not None:  # fitted as points, which the network can hold
            rule = rule | {"held": [HELD_RATE, HELD_TENFOLD, HELD_LEAST]}
        return {"signal": dict(vars(self.signal)), "seed": self.seed, "rule": rule}

    @property
    def references(self) -> list[Run]:
        return [ReferenceRun(self.signal)]

    def compute(self) -> Outcome:
        from ...training.fit import fit

        field = _field(self.signal)
        begun = time.perf_counter()
        result = fit(field, seed=self.seed, progress=False)
        seconds = time.perf_counter() - begun
        assert result.metrics is not None
        metrics = {"train_mse": result.metrics.mse, "train_snr_db": result.metrics.snr_db, "steps": result.steps}
        if self.signal.eval_size is not None:
            metrics |= _tests(result.network, self.signal, average=result.sampling == "averages")
        return Outcome(metrics, {}, seconds)


@functools.lru_cache(maxsize=4)
def _field(signal: Signal) -> Grid:
    if signal.name == "bach":
        return signal.field()
    return load(signal.name, size=signal.size, space=signal.space)


class _Size(NamedTuple):
    """A signal of which only the size is known."""

    samples: int
    out_size: int = 1


@functools.cache
def _rule() -> dict[str, Any]:
    """What the rule says for signals of several sizes. The signals themselves are not needed for it."""
    network = sm20((1, 1), width=1, depth=DEPTH)  # any of this depth that can hold none of these sizes
    sizes = [_Size(10**exponent) for exponent in range(2, 8)]
    recipes = [dataclasses.astuple(default_recipe(size, network))[:5] for size in sizes]  # all fall along a cosine
    return {
        "sizes": [list(default_size(size)) for size in sizes],
        "recipes": [list(recipe) for recipe in recipes],
        "scales": Scales()._asdict(),
        "output_scale": OUTPUT_SCALE,
        "draws": DRAWS,
        "calm": CALM,
        "order": "in turn",
    }


def _tests(network: Any, signal: Signal, *, average: bool) -> dict[str, float]:
    """The errors on the fine image: its pixels where they belong, and where the paper puts them."""
    from ...jax.render import predict, render

    fine = load(signal.name, size=signal.eval_size, space=signal.space)
    found = errors_of("centers", predict(network, fine, average=average), fine)
    coarse = _field(signal)
    centres = [(low + h / 2, high - h / 2) for (low, high), h in zip(coarse.extents, coarse.spacing, strict=True)]
    paper = render(network, fine.shape, extents=centres, align="corners", average=average)  # between the outermost
    return found | errors_of("eval", paper, fine)


def _signals(preset: Preset) -> list[Signal]:
    return [omega_sweep.signal_of(preset, name) for name in omega_sweep.tasks()]


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    signals = [*_signals(preset), audio.PROTOCOLS[preset].signal]
    fits = [DefaultRun(signal, seed) for seed in range(seeds) for signal in signals]
    return [*(ReferenceRun(signal) for signal in signals), *fits]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    return [_registered(preset, seeds, store), _as_printed(preset, seeds, store), _bach(preset, seeds, store)]


def _records(store: Store, runs: list[Run]) -> list[Record]:
    return [record for run in runs if (record := store.get(run))]


def _default(store: Store, signal: Signal, seeds: int, key: str) -> list[float]:
    return [record.metrics[key] for record in _records(store, [DefaultRun(signal, seed) for seed in range(seeds)])]


def _protocol(preset: Preset, store: Store, name: str, seeds: int, key: str) -> list[float]:
    """A metric of uniform-phase networks by the paper's protocol."""
    runs: list[Run] = [omega_sweep.fit_of(preset, name, "uniform-phase", None, seed) for seed in range(seeds)]
    return [value for record in _records(store, runs) if (value := record.metrics[key]) is not None]


def _registered(preset: Preset, seeds: int, store: Store) -> Table:
    rows, ahead, compared, behind = [], 0, 0, 0
    for name, signal in zip(omega_sweep.tasks(), _signals(preset), strict=True):
        ours, theirs = _default(store, signal, seeds, "centers_mse"), _protocol(preset, store, name, 5, "centers_mse")
        spline = _records(store, [ReferenceRun(signal)])
        if not ours or not spline:
            rows.append((name, *[MISSING] * 5, "not run"))
            continue
        bound = spline[0].metrics["centers_mse"]
        ratio = statistics.fmean(ours) / bound
        cells = [spread(ours, ".5g"), f"{bound:.5g}", spread(theirs, ".5g"), f"{ratio:.3f}", str(len(ours))]
        ahead, compared = ahead + (ratio <= 1), compared + 1
        behind += bool(theirs) and statistics.fmean(ours) > statistics.fmean(theirs)
        rows.append((name, *cells, "at or below the spline" if ratio <= 1 else "above the spline"))
    title = titled("The paper's images by the default fit, pixels registered: the error on the fine image", preset)
    header = ("image", "default fit", "cubic spline", "the paper's protocol", "default / spline", "seeds", "so")
    notes = (
        f"At or below the spline on {ahead} of {compared} images; above the paper's protocol on {behind}.",
        "*The paper's protocol* is its network and training, measured with the fine pixels where they belong. The "
        "default fit takes the samples as averages over their cells.",
    )
    return Table("beyond", title, header, tuple(rows), notes)


def _as_printed(preset: Preset, seeds: int, store: Store) -> Table:
    rows = []
    for name, signal in zip(omega_sweep.tasks(), _signals(preset), strict=True):
        ours = _default(store, signal, seeds, "eval_mse")
        best = {scheme: float(printed()["omega-sweep"][name][scheme]["eval_mse"]) for scheme in BASELINES}
        least = min(best, key=lambda scheme: best[scheme])
        mine = printed()["omega-sweep"][name]["uniform-phase"]["eval_mse"]
        ratio = f"{statistics.fmean(ours) / min(best[least], float(mine)):.3f}" if ours else MISSING
        printed_best = f"{best[least]:.5g} ({least})"
        rows.append((name, spread(ours, ".5g"), mine, printed_best, ratio, str(len(ours))))
    title = titled("The same networks on the paper's fine grid, whose pixels are shifted", preset)
    header = ("image", "default fit", "uniform-phase, paper", "best tuned of three, paper", "default / best", "seeds")
    return Table("beyond-printed", title, header, tuple(rows))


def _bach(preset: Preset, seeds: int, store: Store) -> Table:
    signal = audio.PROTOCOLS[preset].signal
    ours = _records(store, [DefaultRun(signal, seed) for seed in range(seeds)])
    rows = []
    if ours:
        cells = [spread([r.metrics["train_snr_db"] for r in ours], ".2f"), spread([r.seconds for r in ours], ".0f")]
        rows.append(("default fit", MISSING, *cells, str(len(ours))))
    for scheme in ("uniform-phase", "sm20"):
        records = _records(store, [audio.fit_of(preset, scheme, seed) for seed in range(5)])
        theirs = printed()["audio"].get(scheme, {}).get("train_snr_db", MISSING)
        cells = [
            spread([r.metrics[k] if k else r.seconds for r in records], d)
            for k, d in (("train_snr_db", ".2f"), ("", ".0f"))
        ]
        rows.append((f"{scheme}, the paper's protocol", theirs, *cells, str(len(records))))
    title = titled("Bach by the default fit", preset)
    return Table("beyond-bach", title, ("fit", "SNR dB, paper", "ours", "seconds", "seeds"), tuple(rows))


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from ..plots import ratios_to_spline

    found: dict[str, dict[str, list[float]]] = {}
    for name, signal in zip(omega_sweep.tasks(), _signals(preset), strict=True):
        spline = _records(store, [ReferenceRun(signal)])
        ours = _default(store, signal, seeds, "centers_mse")
        if spline and ours:
            bound = spline[0].metrics["centers_mse"]
            theirs = _protocol(preset, store, name, 5, "centers_mse")
            found[name] = {"default fit": [x / bound for x in ours], "paper's protocol": [x / bound for x in theirs]}
    title = titled("Error on the fine image, relative to the cubic spline", preset)
    return {"beyond": ratios_to_spline(title, found)} if found else {}


EXPERIMENT = Experiment("beyond", "nothing; the default fit on its tasks", (_runs,), _tables, _figures)
