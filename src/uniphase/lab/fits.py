"""Runs that train a network by the paper's protocol, and the cubic spline that they are compared with.

The paper places the outermost pixel centres of both its coarse and its fine grid at ±1, although resizing an image
keeps its edges fixed, not these centres. The two grids are therefore misaligned by up to 1.5 fine pixels. So every
image is evaluated twice: as in the paper, and with the fine pixels at their true positions.
"""

import functools
import inspect
import math
import time
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..initialization.blueprint import Blueprint
from ..initialization.moments import EPSILON, Moments, estimate_moments
from ..initialization.schemes import get_scheme
from ..signals.datasets import load
from ..signals.fields import Grid
from ..signals.images import Space
from ..signals.metrics import snr_db
from .runs import Outcome, Run, SingleRun

Scaling = Literal["standard", "lr", "lr+ll"]
# The sine networks that uniform-phase is compared with. Their structure is the same; only the numbers differ.
BASELINES = ("sm20", "cvp26-0", "cvp26-1")
# The width at which μP and the standard parametrization have the same learning rates.
BASE_WIDTH = 64


@dataclass(frozen=True)
class Signal:
    """The signal to fit, and the size of the signal to test on.

    - `name`, `space`: as for `load`.
    - `size`: the number of samples along the longest axis of an image, or of samples cut from the middle of a sound.
        `None`: all samples.
    - `eval_size`: the size of the test image. `None`: no test.
    """

    name: str
    space: Space | None = None
    size: int | None = None
    eval_size: int | None = None

    @property
    def label(self) -> str:
        return self.name if self.space is None else f"{self.name}/{self.space}"

    def field(self) -> Grid:
        """The training samples, on the paper's grid."""
        return _field(self.name, self.space, self.size, "corners")

    def test(self, align: Literal["corners", "centers"]) -> Grid:
        return _field(self.name, self.space, self.eval_size, align)


@functools.lru_cache(maxsize=4)
def _field(name: str, space: Space | None, size: int | None, align: Literal["corners", "centers"]) -> Grid:
    if name != "bach":
        return load(name, size=size, space=space, align=align, extents=(-1.0, 1.0))
    field = load(name, align=align)
    if size is None:
        return field
    start, (low, high) = (field.samples - size) // 2, field.extents[0]
    reach = (high - low) / 2 * (size - 1) / (field.samples - 1)  # keeps the distance between samples
    return Grid(
        field.values[start : start + size], extents=(-reach, reach), align=align, medium="sound", rate=field.rate
    )


@functools.lru_cache(maxsize=4)
def _moments(signal: Signal) -> Moments:
    return estimate_moments(signal.field(), epsilon=EPSILON)


@dataclass(frozen=True)
class FitRun(Run):
    """Train a network on a signal.

    - `scheme`, `options`: the initialization scheme, and arguments of its function that differ from the defaults.
    - `width`, `depth`: N and L of the paper.
    - `steps`, `rate`, `epsilon`: of Adam.
    - `scaling`: the standard parametrization, μP learning rates (`"lr"`), or μP learning rates and output layer
        (`"lr+ll"`).
    """

    signal: Signal
    scheme: str
    width: int
    depth: int
    steps: int
    rate: float
    options: tuple[tuple[str, float | bool], ...] = ()
    scaling: Scaling = "standard"
    epsilon: float = 1e-8
    seed: int = 0

    kind = "fit"

    @property
    def label(self) -> str:
        words = [self.signal.label, self.scheme, f"N={self.width}", f"L={self.depth}"]
        words += [f"{name}={value:.4g}" for name, value in self.options]
        words += [f"rate={self.rate:.3g}", self.scaling, f"seed={self.seed}"]
        return " ".join(words)

    @property
    def family(self) -> str:
        return self.scheme

    @property
    def shape(self) -> Hashable:
        group = "sine" if self.scheme in BASELINES else self.scheme
        switches = tuple(name for name, value in self.options if value is True)  # these may add a bias; numbers do not
        return self.signal, group, switches, self.width, self.depth, self.steps, self.epsilon

    @property
    def work(self) -> int:
        return self.steps

    @property
    def cost(self) -> str:
        name = "sine" if self.scheme in ("uniform-phase", *BASELINES) else self.scheme
        return f"{name} {self.depth} × {self.width} on {_samples(self.signal)} samples"

    def effective(self) -> dict[str, Any]:
        options = _defaults(self.scheme) | dict(self.options)
        config = vars(self) | {"signal": vars(self.signal), "options": options}  # faster than asdict, for large sweeps
        if self.width == BASE_WIDTH:
            config["scaling"] = "standard"
        return config

    @property
    def references(self) -> "Sequence[Run]":
        return [ReferenceRun(self.signal)]

    def blueprint(self) -> Blueprint:
        scheme = get_scheme(self.scheme)
        return scheme.blueprint(_moments(self.signal), width=self.width, depth=self.depth, **dict(self.options))

    @staticmethod
    def compute_together(
        runs: "Sequence[FitRun]", checkpoint: Path | None, callback: Callable[[int], Any] | None
    ) -> list[Outcome]:
        from ..training.protocol import fit_together

        networks, rates = zip(*map(_start, runs), strict=True)
        first, field = runs[0], runs[0].signal.field()
        traces = fit_together(
            networks,
            field,
            rates=rates,
            steps=first.steps,
            epsilon=first.epsilon,
            checkpoint=checkpoint,
            resume=True,
            callback=callback,
        )
        outcomes = []
        for trace in traces:
            metrics, arrays = _examine(trace.network, first.signal)
            outcomes.append(Outcome(_losses(trace.losses) | metrics, {"losses": trace.losses} | arrays, trace.seconds))
        return outcomes

    @staticmethod
    def measure_step(runs: "Sequence[FitRun]") -> float:
        from ..training.protocol import fit_together

        networks, rates = zip(*map(_start, runs), strict=True)
        first, count, seconds = runs[0], 1, 1.0
        for _ in range(3):  # one step to compile, one to find out how many take a second, then that many
            count = max(1, min(first.steps, round(count / seconds)))
            traces = fit_together(networks, first.signal.field(), rates=rates, steps=count, epsilon=first.epsilon)
            seconds = sum(trace.seconds for trace in traces)
        return seconds / count


@dataclass(frozen=True)
class ReferenceRun(SingleRun):
    """The signal itself, for figures, and for an image the cubic spline through its training samples ("bicubic")."""

    signal: Signal
    seed: int = 0

    kind = "reference"

    @property
    def label(self) -> str:
        return f"{self.signal.label} {'cubic spline' if self.signal.name == 'bach' else 'bicubic'}"

    def effective(self) -> dict[str, Any]:
        return {"signal": dict(vars(self.signal))}

    def compute(self) -> Outcome:
        from ..signals.splines import cubic_spline

        begun, field = time.perf_counter(), self.signal.field()
        if self.signal.eval_size is None:
            return Outcome({}, {"train": drawable(field.values, field)}, time.perf_counter() - begun)
        test = self.signal.test("corners")
        spline = cubic_spline(field, test)
        metrics = errors_of("eval", spline, test)
        centers = self.signal.test("centers")
        coarse = _field(self.signal.name, self.signal.space, self.signal.size, "centers")
        metrics |= errors_of("centers", cubic_spline(coarse, centers), centers)
        pictures = {"train": field.values, "test": test.values, "spline": spline}
        arrays = {name: drawable(values, field) for name, values in pictures.items()}
        return Outcome(metrics, arrays, time.perf_counter() - begun)


def drawable(values: np.ndarray, field: Grid) -> np.ndarray:
    """Values as stored for figures: images in 8 bits, gray or RGB; sounds in float16."""
    if field.medium == "sound":
        return np.nan_to_num(values).astype(np.float16)
    if field.medium == "lab":
        from skimage.color import lab2rgb

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Conversion from CIE-LAB", UserWarning)  # out of gamut: clipped
            values = lab2rgb(np.nan_to_num(values.astype(np.float64)))
    return np.round(255 * np.clip(np.nan_to_num(values), 0, 1)).astype(np.uint8)


@functools.cache
def _defaults(scheme: str) -> dict[str, Any]:
    known = get_scheme(scheme)
    parameters = inspect.signature(known.blueprint).parameters.values()
    # What only other fits choose stays as it was published, and out of the identity of a record.
    return {
        p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty and p.name not in known.fit
    }


def _start(run: FitRun):
    """The initialized network of a run, and its learning rates."""
    import jax

    from ..jax.network import CoordinateMLP
    from ..training.mup import Rates, mup_output, mup_rates

    network = CoordinateMLP(run.blueprint(), dtype=np.float32, key=jax.random.key(run.seed))
    if run.scaling == "lr+ll":
        network = mup_output(network, base_width=BASE_WIDTH)
    if run.scaling == "standard":
        return network, Rates.uniform(run.rate)
    return network, mup_rates(run.rate, width=run.width, base_width=BASE_WIDTH)


def _samples(signal: Signal) -> int:
    return signal.field().samples


def _losses(losses: np.ndarray) -> dict[str, float]:
    """The arithmetic and the geometric mean of the losses of all steps; mup-sweep selects by the former."""
    losses = losses.astype(np.float64)
    with np.errstate(all="ignore"):
        return {"mean_loss": float(losses.mean()), "geometric_mean_loss": float(np.exp(np.log(losses).mean()))}


def _examine(network, signal: Signal) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """The errors of a trained network, and the arrays that figures need."""
    from ..jax.render import render

    field = signal.field()
    fitted = render(network, field.shape, extents=field.extents, align="corners")
    metrics = errors_of("train", fitted, field)
    if field.medium == "sound":
        return metrics, {"train": drawable(fitted, field)}
    if signal.eval_size is None:
        return metrics, {}
    test = signal.test("corners")
    tested = render(network, test.shape, extents=test.extents, align="corners")
    edges = outer_edges(field.shape)
    centered = render(network, test.shape, extents=test.extents, align="centers", region=edges)
    metrics |= errors_of("eval", tested, test) | errors_of("centers", centered, test)
    return metrics, {"train": drawable(fitted, field), "test": drawable(tested, field)}


def outer_edges(shape: tuple[int, ...]) -> list[tuple[float, float]]:
    """The edges of an image whose outermost pixel centres are at ±1. Finer grids of the same image share them."""
    return [(-n / (n - 1), n / (n - 1)) for n in shape]


def errors_of(name: str, prediction: np.ndarray, truth: Grid) -> dict[str, float]:
    with np.errstate(all="ignore"):
        mse = float(np.mean(np.square(prediction.astype(np.float64) - truth.values)))
        return {
            f"{name}_mse": mse,
            f"{name}_snr_db": snr_db(prediction, truth.values) if math.isfinite(mse) else math.nan,
        }
