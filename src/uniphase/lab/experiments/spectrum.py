"""Appendix A.4: the singular values of ∂h_L/∂h_1 at initialization, for several depths."""

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...initialization.moments import EPSILON, Moments, estimate_moments
from ...initialization.schemes import cvp26_0, get_scheme
from ...signals.fields import Grid
from ..experiment import Experiment, titled
from ..runs import Outcome, Preset, Run, SingleRun
from ..store import Store
from ..tables import MISSING, Table, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = ("uniform-phase", "cvp26-0", "cvp26-1", "sm20")
_WIDTHS: dict[Preset, int] = {"paper": 256, "quick": 64}
_DEPTHS = (4, 8, 16, 32)
_OMEGA = 30.0


@dataclass(frozen=True)
class SpectrumRun(SingleRun):
    """The mean of the sorted singular values over `networks` networks and `inputs` positions on [-π, π]."""

    scheme: str
    width: int
    depth: int
    networks: int = 5
    inputs: int = 10
    seed: int = 0

    kind = "spectrum"

    @property
    def label(self) -> str:
        return f"{self.scheme} N={self.width} L={self.depth} seed={self.seed}"

    def effective(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"omega": _OMEGA}

    def compute(self) -> Outcome:
        import jax

        from ...jax.diagnostics import jacobian_spectra
        from ...jax.network import CoordinateMLP

        begun = time.perf_counter()
        options = {} if self.scheme == "uniform-phase" else {"omega": _OMEGA}
        moments = _target(self.width, self.seed)
        blueprint = get_scheme(self.scheme).blueprint(moments, width=self.width, depth=self.depth, **options)
        spectra = []
        for key in jax.random.split(jax.random.key(self.seed), self.networks):
            draw, place = jax.random.split(key)
            positions = jax.random.uniform(place, (self.inputs, 1), np.float32, -math.pi, math.pi)
            network = CoordinateMLP(blueprint, dtype=np.float32, key=draw)
            # h_1 is the first hidden layer's output, activation 2: there are L - 1 matrices between h_1 and h_L.
            spectra.append(jacobian_spectra(network, positions, 2, self.depth + 1))
        mean = np.concatenate(spectra).mean(axis=0, dtype=np.float64)
        squares = np.square(np.asarray(spectra, np.float64)).mean(axis=(1, 2))  # one per network
        metrics = {
            "largest": float(mean[0]),
            "median": float(np.median(mean)),
            "smallest": float(mean[-1]),
            "mean_square": float(squares.mean()),
            "mean_square_error": float(squares.std(ddof=1) / math.sqrt(len(squares))),
        }
        return Outcome(metrics, {"spectrum": mean}, time.perf_counter() - begun)


def _target(width: int, seed: int) -> Moments:
    """The moments for uniform-phase: those of a cvp26-0 network of depth 4, estimated at 1,000 points."""
    import jax

    from ...jax.network import CoordinateMLP
    from ...jax.render import render

    network = CoordinateMLP(cvp26_0((1, 1), width=width, depth=4, omega=_OMEGA), key=jax.random.key(1000 + seed))
    extents = (-math.pi, math.pi)
    values = render(network, (1000,), extents=extents, align="corners")
    return estimate_moments(Grid(values, extents=extents, align="corners"), epsilon=EPSILON)


def _run(preset: Preset, scheme: str, depth: int, seed: int) -> SpectrumRun:
    return SpectrumRun(scheme, _WIDTHS[preset], depth, seed=seed)


def _runs(preset: Preset, seeds: int, store: Store) -> list[Run]:
    return [_run(preset, scheme, depth, seed) for seed in range(seeds) for scheme in SCHEMES for depth in _DEPTHS]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows = []
    for scheme in SCHEMES:
        for depth in _DEPTHS:
            records = [record for seed in range(seeds) if (record := store.get(_run(preset, scheme, depth, seed)))]
            keys = ("largest", "median", "smallest", "mean_square")
            cells = [spread([record.metrics[key] for record in records], ".3g") for key in keys]
            errors = [record.metrics["mean_square_error"] for record in records]
            error = f"{math.hypot(*errors) / len(errors):.2g}" if errors else MISSING  # seeds are independent
            rows.append((scheme, str(depth), *cells, error, str(len(records))))
    header = ("network", "L", "largest", "median", "smallest", "mean square", "its standard error", "seeds")
    note = (
        "For uniform-phase the expected mean square is 1 at every depth: E JᵀJ = I. The standard error is that of "
        "the mean over all networks of all seeds. Values below some 1e-7 of the largest are rounding in float32. The "
        "paper prints no figures here."
    )
    title = titled(f"Singular values of ∂h_L/∂h_1, N = {_WIDTHS[preset]}", preset)
    return [Table("spectrum", title, header, tuple(rows), (note,))]


def _figures(preset: Preset, seeds: int, store: Store) -> "dict[str, Figure]":
    from ..plots import spectra

    found = {(s, depth): store.get(_run(preset, s, depth, 0)) for s in SCHEMES for depth in _DEPTHS}
    curves = {key: record for key, record in found.items() if record}
    title = titled(f"Mean singular values of ∂h_L/∂h_1, N = {_WIDTHS[preset]}", preset)
    return {"spectrum": spectra(title, curves, SCHEMES)} if curves else {}


EXPERIMENT = Experiment("spectrum", "appendix A.4, figure of singular values", (_runs,), _tables, _figures)
