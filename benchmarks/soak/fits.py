"""Random fits: any shape, content, unit and type of number, each as `fit(field)` does it without any option.

A fit must end with finite numbers, say so where it diverged, and be no worse than the mean of the signal, up to what
numbers of 32 bits can hold. Compiling takes longer than fitting, so that some fits in a row share their program: the
shape, the type of numbers, whether some are missing, and what a sample is.
"""

import contextlib
import json
import math
import os
import select
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from uniphase.recipe import BATCH

from .children import scratch
from .records import ROOT, Part, Trial

# Fits that share a program, and steps of those that would take long.
SHARED, STEPS = 5, 30
# Every third fit has as many steps as it takes by default, if its signal has fewer numbers than the first of these, or
# than the second where its samples take several batches, as some things of the default rule are only done there.
SMALL, SEVERAL_BATCHES = 3_000, 50_000
# Fits of one process. Each program takes a few of the memory maps that a process may have, about 65,000.
FITS = 150
# A fit that takes longer hangs.
PATIENCE = 600.0
CONTENTS = ("waves", "noise", "constant", "impulses", "edges", "offset by 1e9", "mixed units")
KINDS = ("float16", "float32", "float64", "uint8", "int16", "uint16", "int32", "bool")


class Shape(NamedTuple):
    """Samples along each axis, channels, and whether they lie on a grid."""

    samples: tuple[int, ...]
    channels: int
    grid: bool


def draw_shape(rng: np.random.Generator) -> Shape:
    """From 2 samples to a million, evenly on a logarithmic scale."""
    axes, channels = int(rng.integers(1, 5)), int(rng.integers(1, 9))
    if rng.random() < 0.25:
        return Shape((round(math.exp(rng.uniform(math.log(2), math.log(1e5)))), *[1] * (axes - 1)), channels, False)
    total = rng.uniform(axes * math.log(2), math.log(1 << 20))
    shares = rng.dirichlet(np.full(axes, 3.0)) * (total - axes * math.log(2))
    return Shape(tuple(max(2, round(2 * math.exp(share))) for share in shares), channels, True)


def draw_field(seed: int) -> tuple[str, Any]:
    """What a fit is of, in words, and the field."""
    from uniphase import Grid, Points

    program, rng = np.random.default_rng([seed // SHARED, 4]), np.random.default_rng([seed, 5])
    shape, kind = draw_shape(program), str(program.choice(KINDS))
    missing, sampling = program.random() < 0.2, "averages" if program.random() < 0.5 else "points"
    content = str(rng.choice(CONTENTS))
    places = _positions(rng, shape)
    values = _as_kind(rng, _values(rng, content, places, shape), kind)
    far = 10.0 ** rng.uniform(-12, 12, len(shape.samples))
    if not shape.grid:
        return f"{content}, {kind}", Points(places * far, values)
    lows = -far * rng.uniform(0, 2, len(far))
    if missing and kind.startswith("float") and len(values) > 3:
        values[1 + np.flatnonzero(rng.random(len(values) - 1) < 0.2)] = np.nan
    extents = [(float(low), float(low + length)) for low, length in zip(lows, far, strict=True)]
    return f"{content}, {kind}", Grid(values.reshape(*shape.samples, -1), extents=extents, sampling=sampling)


def _positions(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Where samples lie, between 0 and 1."""
    if not shape.grid:
        return rng.random((shape.samples[0], len(shape.samples)))
    axes = [np.linspace(0, 1, n) for n in shape.samples]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _values(rng: np.random.Generator, content: str, places: np.ndarray, shape: Shape) -> np.ndarray:
    count, channels = len(places), shape.channels
    waves = np.sin(places @ rng.normal(0, 20, (places.shape[1], channels)) + rng.uniform(0, 6, channels))
    unit = 10.0 ** rng.uniform(-12, 12)
    if content == "noise":
        return unit * rng.normal(size=(count, channels))
    if content == "constant":
        return np.broadcast_to(unit * rng.normal(size=channels), (count, channels)).copy()
    if content == "impulses":
        values = np.zeros((count, channels))
        values[rng.integers(0, count, max(1, count // 1000))] = unit
        return values
    if content == "edges":
        return unit * np.sign(waves)
    if content == "offset by 1e9":
        return 10.0 ** rng.uniform(-2, 9) * waves + 1e9
    if content == "mixed units":
        return waves * 10.0 ** rng.uniform(-12, 12, channels)
    return unit * waves


def _as_kind(rng: np.random.Generator, values: np.ndarray, kind: str) -> np.ndarray:
    """The values in a type of number, scaled into its range where they are not."""
    if kind in ("float32", "float64"):
        return values.astype(kind)
    largest = np.abs(values).max() or 1.0
    if kind == "float16":
        return (values / largest * 10.0 ** rng.uniform(-2, 4)).astype(kind)
    if kind == "bool":
        return values > values.mean()
    limits = np.iinfo(kind)
    half = 0.5 if limits.min == 0 else 0.0
    return np.rint((values / largest / 2 + half) * float(limits.max)).astype(kind)


def attempt(seed: int) -> Trial:
    """One fit."""
    import jax

    from uniphase import Points, fit
    from uniphase.fitting.plan import Diverged

    kind, field = draw_field(seed)
    steps: dict[str, Any] = {} if seed % 3 == 0 and _is_quick(field) else {"steps": STEPS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = fit(field, progress=False, seed=seed, **steps)
        except Diverged as error:
            return Trial(seed, kind.partition(",")[0], "diverged", f"{_words(field)} {kind}: {error}")
        except Exception as error:
            if isinstance(field, Points) and len(np.unique(field.positions, axis=0)) <= field.in_size:
                return Trial(seed, kind.partition(",")[0], "refused")  # so few points have no slopes
            return Trial(seed, kind.partition(",")[0], "raised", f"{_words(field)} {kind}: {error!r}")
    retreated = any("the loss exploded" in str(warning.message) for warning in caught)
    finite = all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(result.network) if hasattr(leaf, "dtype"))
    failure = _complaint(field, result, finite)
    ending = "failed" if failure else "went back" if retreated else "fitted"
    return Trial(
        seed, kind.partition(",")[0], ending, None if failure is None else f"{_words(field)} {kind}: {failure}"
    )


def _is_quick(field: Any) -> bool:
    """Whether all steps of a fit take one core two minutes at most."""
    return field.values.size < (SEVERAL_BATCHES if field.samples > BATCH else SMALL)


def _complaint(field: Any, result: Any, finite: bool) -> str | None:
    metrics = result.metrics
    if not finite:
        return "the network is not finite"
    if result.prediction is not None and not np.isfinite(result.prediction).all():
        return "the prediction is not finite"
    if not math.isfinite(metrics.mse):
        return f"the error is {metrics.mse}"
    known = field.flat_values().astype(np.float64)
    known = known[~np.isnan(known).any(axis=1)]
    variance = float(np.square(known - known.mean()).mean())
    few, largest = result.steps == STEPS, float(np.abs(known).max()) or 1.0
    # A constant is drawn with a spread of a thousandth of its value, or of 1 for zero, of which a few steps leave some.
    constant = variance <= (1e-12 * largest) ** 2
    rounding = (1e-4 if few and constant else 4 * float(np.finfo(np.float32).eps)) * largest
    # After a few steps, each on some of the samples, a network knows the mean no better than these do.
    slack = 1.01 if few else 1.001
    if metrics.mse > slack * variance + rounding**2:
        size = f"{result.steps} steps, {result.blueprint.parameters} parameters, {result.sampling}"
        return f"SNR {metrics.snr_db:.2f} dB, error {metrics.mse:.3g}, variance {variance:.3g} ({size})"
    return None


def _words(field: Any) -> str:
    return f"{type(field).__name__} {field.values.shape}"


@contextlib.contextmanager
def trials() -> Iterator[Callable[[Sequence[int]], Iterator[Trial]]]:
    """Fits in a process of their own, which is started again if one ends it."""
    with scratch() as cache, contextlib.ExitStack() as stack:
        worker: list[subprocess.Popen[str]] = []
        asked = [0]

        def ask(seed: int) -> Trial:
            if worker and asked[0] == FITS:
                worker[0].kill()
                worker[0].wait()
            if not worker or worker[0].poll() is not None:
                worker[:], asked[0] = [stack.enter_context(_start(str(cache)))], 0
            asked[0] += 1
            process, begun = worker[0], time.monotonic()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else ""
            if line:
                return Trial(*json.loads(line))
            process.kill()
            why = f"no answer after {time.monotonic() - begun:.0f} s, exit code {process.wait()}"
            return Trial(seed, "any", "ended", why)

        yield lambda seeds: (ask(seed) for seed in seeds)


def _start(cache: str) -> subprocess.Popen[str]:
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-m", "benchmarks.soak.fits"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, env=environment, cwd=ROOT)


PART = Part("fits", "a random fit without options", 1000, 0.3, 4 * SHARED, trials)

if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(attempt(int(line))), flush=True)
