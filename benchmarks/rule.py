"""The default rule: what each of its constants does, and how it does without tuning.

    python benchmarks/rule.py curves     every constant, on the development set
    python benchmarks/rule.py rates      the rule and a grid of rates, on the development set, with all steps
    python benchmarks/rule.py report     the same on the report set, and the rule of 0.2.0
    python benchmarks/rule.py held       other falls where the network can hold the points, on the development set
    python benchmarks/rule.py owed       what is owed to what, on the report set
    python benchmarks/rule_page.py       docs/rule.md and its picture, from the records

Records are appended to benchmarks/rule.jsonl one by one; what is there is not run again, so the program can be stopped
at any time. Variations of one signal do the same work: a smaller batch takes more steps, a wider network fewer.
"""

import argparse
import functools
import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import uniphase as up
from signals import DEVELOPMENT, REPORT, Signal
from uniphase.fitting.loop import Checkpoint, State, Training
from uniphase.fitting.plan import FallingPlan
from uniphase.initialization.schemes import OUTPUT_SCALE, get_scheme
from uniphase.jax.network import dtype_of
from uniphase.recipe import CALM, DRAWS, FINAL, HELD_RATE, Scales, Units, held_final
from uniphase.training.averages import SampledAverages
from uniphase.training.checkpoints import TreeFiles
from uniphase.training.fit import observe
from uniphase.training.optimizers import as_arrays, muon_in_units
from uniphase.training.regions import Cells
from uniphase.training.sampling import Samples
from uniphase.training.step import CompiledSteps, Problem, initial_state, split_network
from uniphase.training.terms import SampledValues, prepare

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "rule.jsonl"


def cosine(t: Any) -> Any:
    return (1 + np.cos(np.pi * t)) / 2


SHAPES = {
    "cosine": cosine,
    "linear": lambda t: 1 - t,
    "squared": lambda t: (1 - t) ** 2,
    "cubed": lambda t: (1 - t) ** 3,
    "fifth": lambda t: (1 - t) ** 5,
    "constant": lambda t: 1.0 + 0 * t,
    "warm-up": lambda t: np.minimum(cosine(t), t / 0.05),
}
RULE_SCALES = Scales()
UNBOUNDED = Scales(growth=math.inf)
# Evaluations of the network for each sample.
EVALUATIONS = {"points": 1, "averages": DRAWS, "one pair, squared": 2, "independent": 2, "four pairs": 8}
RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
REPORT_RATES = (0.5, 1.0, 2.0)
# Curves, and what is owed to what, are measured with this share of the default's steps: with a quarter of them, smaller
# batches and rates that fall later are better than they are with all.
SHARE = 0.5
# Shares of the default number of steps.
STEPS = (0.25, 0.5, 1.0, 2.0)
# Signals of both sets that take longest, resemble others, or are fitted exactly by most variations.
LEFT_OUT = (
    "sheet", "china", "chelsea", "noisy rocket", "sentence", "moon", "grass", "horse", "house", "box", "red noise",
    "large sheet", "two pieces", "dots", "anatomy", "bodies", "terrain, dense", "flower", "astronaut", "noisy coffee",
    "clock", "phantom", "coffee",
)  # fmt: skip


@dataclass(frozen=True)
class Variation:
    """The default rule, with some of it changed. Factors multiply what the rule says.

    A `shape` other than the rule's falls from `default_rate` to `final`, whether the network can hold the signal or
    not; "as held" as if it could. Where the rule falls exponentially, the variation does so by `fall` times as many
    orders of magnitude.
    """

    rate: float = 1.0
    batch: float = 1.0
    width: float = 1.0
    widest: float = math.inf
    depth: int = 3
    shape: str = "rule"
    final: float = FINAL
    fall: float = 1.0
    output_scale: float = OUTPUT_SCALE
    frequencies: float = 1.0
    samples: str | None = None
    calm: float = CALM
    order: str = "in turn"
    optimizer: str = "muon"
    scheme: str = "uniform-phase"
    scales: Scales = RULE_SCALES

    def name(self) -> str:
        """What differs from the rule."""
        default = asdict(Variation())
        changed = {key: value for key, value in asdict(self).items() if value != default[key] and key != "scales"}
        changed |= {key: value for key, value in self.scales._asdict().items() if value != RULE_SCALES._asdict()[key]}
        return ", ".join(f"{key} {value}" for key, value in changed.items()) or "the rule"


def scaled(**changes: float) -> Variation:
    return Variation(scales=RULE_SCALES._replace(**changes))


# One fall for all signals, which differs from the rule where the network can hold the samples.
COSINE = Variation(shape="cosine")
# The rule of version 0.2.0, but for the rate of small signals, which was down to half of this.
PREVIOUS = Variation(
    widest=256,
    shape="cosine",
    final=0.01,
    output_scale=1.0,
    samples="points",
    order="random",
    scales=Scales(growth=math.inf, momentum=0.95),
)
# Every constant of the rule, and what it is compared with.
CURVES: dict[str, list[Variation]] = {
    "rate": [Variation(rate=factor) for factor in RATES],
    "growth": [scaled(growth=value) for value in (1.0, 1.5, 2.0, 3.0, math.inf)],
    "growth at rate × 4": [Variation(), replace(scaled(growth=math.inf), rate=4.0), Variation(rate=4.0)],
    "momentum": [scaled(momentum=value) for value in (0.8, 0.9, 0.95, 0.98)],
    "batch": [Variation(batch=factor) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)],
    "shape": [Variation(), *(Variation(shape=name) for name in ("linear", "squared", "constant", "warm-up"))],
    # From a higher peak, so that the sum of all rates is that of the cosine.
    "steeper": [Variation(), Variation(shape="cubed", rate=2.0), Variation(shape="fifth", rate=3.0)],
    "exponential for all": [Variation(shape="exponential", rate=2.0), Variation()],
    "final": [Variation(final=share) for share in (0.1, 0.01, 0.001, 0.0001)],
    "input": [scaled(input=value) for value in (0.0, 0.05, 0.15, 0.5, 1.5)],
    "phase": [scaled(phase=value) for value in (0.0, 0.15, 0.5, 1.5)],
    "output": [scaled(output=value) for value in (1.0, 3.0, 10.0, 30.0)],
    "offset": [scaled(offset=value) for value in (0.03, 0.3, 3.0)],
    "frequencies": [Variation(frequencies=factor) for factor in (0.25, 0.5, 1.0, 2.0)],
    "output scale": [Variation(output_scale=scale) for scale in (0.01, 0.05, 0.25, 1.0)],
    "width": [Variation(width=factor) for factor in (0.5, 0.75, 1.0, 1.5)],
    "depth": [Variation(depth=2, width=1.22), Variation(), Variation(depth=5, width=0.77)],
    "0.2.0": [PREVIOUS, Variation()],
    "samples": [Variation(samples=kind) for kind in EVALUATIONS],
    "calm": [Variation(calm=share) for share in (0.0, 0.25, 0.5, 1.0)],
    "order": [Variation(order="random"), Variation()],
}
# Signals that the network can hold in several batches of points, and orders of magnitude for the fall of their rate.
HELD = ("numbers", "two pieces", "sentence", "house", "bodies", "anatomy", "box", "dots", "red noise")
FALLS = [Variation(fall=factor) for factor in (0.7, 1.0, 1.4)]
# With these shares of its steps the rate of one of them falls either way.
EITHER_WAY, EITHER_SHARES = (COSINE, Variation(shape="as held")), (0.72, 0.9, 1.0)
# From what is common to the rule, one change at a time. The paper's initialization has the output scale 1.
_COMMON = Variation(scheme="sm20", optimizer="adam", shape="cosine", samples="points", order="random", scales=UNBOUNDED)
_PAPER = replace(_COMMON, scheme="uniform-phase", output_scale=1.0)
OWED = {
    "SIREN (ω = 30), Adam, constant rate, points": replace(_COMMON, shape="constant"),
    "SIREN (ω = 30), Adam, cosine, points": _COMMON,
    "uniform-phase, Adam, cosine, points": _PAPER,
    "SIREN (ω = 30), Muon, cosine, points": replace(_COMMON, optimizer="muon"),
    "uniform-phase, Muon, cosine, points": replace(_PAPER, optimizer="muon"),
    "… with bounded hidden weights": replace(_PAPER, optimizer="muon", scales=RULE_SCALES),
    "… and a small output at the start": Variation(shape="cosine", samples="points", order="random"),
    "… and samples visited in turn": Variation(shape="cosine", samples="points"),
    "… and a rate that falls exponentially where the network can hold the signal": Variation(samples="points"),
    "… and averages where the network can hold the signal: the rule": Variation(),
    "the rule, but for the initialization: SIREN (ω = 30)": Variation(scheme="sm20"),
}


def blueprint_of(variation: Variation, field: Any, moments: up.Moments) -> up.Blueprint:
    width, _ = up.default_size(field)
    width = int(min(variation.widest, max(8, round(variation.width * width))))
    scheme = get_scheme(variation.scheme)
    options = scheme.frequencies(None, sound=getattr(field, "medium", None) == "sound")
    options |= {"output_scale": variation.output_scale} if scheme.fit else {}
    moments = replace(moments, structure_tensor=variation.frequencies**2 * moments.structure_tensor)
    return scheme.blueprint(moments, width=width, depth=variation.depth, **options)


def samples_of(variation: Variation, field: Any, moments: up.Moments) -> tuple[str, str]:
    """As what the rule fits the samples, and as what the variation does."""
    rule = up.default_sampling(field, blueprint_of(Variation(), field, moments).parameters)
    if not isinstance(field, up.Grid) or variation.samples is None:
        return rule, rule
    kept = rule == "points" and variation.samples not in ("points", "averages")
    return rule, rule if kept else variation.samples


def applies(variation: Variation, signal: Signal, work: float) -> bool:
    """Whether a variation is another fit of a signal than the rule, and than the rule with a cosine."""
    if (variation.shape, variation.samples, variation.calm) == ("rule", None, CALM):
        return True
    field, _ = fields_of(signal)
    moments = up.estimate_moments(field)
    rule, samples = samples_of(variation, field, moments)
    network, draws = blueprint_of(Variation(), field, moments), EVALUATIONS[samples]
    steps = round(work * up.default_recipe(field, network, draws=draws).steps)
    own = up.default_recipe(field, network, draws=draws, steps=steps)
    same = {"samples": None} if rule == samples else {}
    same |= {"calm": CALM} if samples == "points" else {}
    same |= {"shape": "rule"} if variation.shape == own.fall == "cosine" else {}
    same |= {"shape": "rule"} if (variation.shape, own.fall) == ("as held", "exponential") else {}
    same |= {"fall": 1.0} if own.fall == "cosine" else {}
    less = replace(variation, **same)
    return less == variation or less not in (Variation(), COSINE)


@dataclass(frozen=True)
class VariedRule:
    """The default optimizer with its constants as arrays, so that all variations share one program; or Adam."""

    optimizer: str

    def build(self, network: Any, settings: Any) -> optax.GradientTransformation:
        direction = muon_in_units(network, *settings) if self.optimizer == "muon" else optax.scale_by_adam()
        return optax.chain(direction, optax.scale(-1.0))


@dataclass(frozen=True)
class ShapedPlan(FallingPlan):
    """A rate that falls in one of several shapes, or as the recipe says."""

    shape: str = "rule"

    def factors(self, state: State) -> np.ndarray:
        if self.shape not in SHAPES:
            return super().factors(state)
        shares = SHAPES[self.shape](np.minimum(1, (state.step + np.arange(self.most)) / self.recipe.steps))
        final = self.recipe.final_fraction
        return (state.rate_scale * self.recipe.learning_rate * (final + (1 - final) * shares)).astype(np.float32)


def measure(signal: Signal, variation: Variation, seed: int, work: float) -> dict[str, Any]:
    """Fit a signal by a variation of the rule, with a share of the work of the rule."""
    field, test = fields_of(signal)
    moments = up.estimate_moments(field)
    network = up.CoordinateMLP(blueprint_of(variation, field, moments), key=jax.random.key(seed))
    by_rule, samples = samples_of(variation, field, moments)
    recipe = recipe_of(variation, field, network, work, *(EVALUATIONS[kind] for kind in (by_rule, samples)))
    term = observe(field, "points" if samples == "points" else "averages", moments)
    trained, frozen, static = split_network(network)
    units = as_arrays(Units.at(term.position_moments(), moments, network.width), network)
    constants: Any = [jnp.asarray(value, np.float32) for value in variation.scales]
    settings = units, Scales(*constants)
    prepared = varied(prepare(term, dtype_of(network)), samples, variation)
    problem = Problem((prepared,), frozen, static, settings, VariedRule(variation.optimizer), recipe.batch)
    plan = ShapedPlan(recipe, None, None, 1.0, -math.inf, None, True, None, shape=variation.shape)
    losses = np.full(recipe.steps, np.nan, np.float32)
    training = Training(CompiledSteps(problem, seed), plan, losses, Checkpoint(None, math.inf, "", TreeFiles()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state, _ = training.run(State(trained, initial_state(problem, trained)))
    fitted, averages = eqx.combine(state.parameters, frozen, static), samples != "points"
    ours = up.evaluate_network(fitted, field, average=averages)
    theirs = None if test is None else up.evaluate_network(fitted, test, average=averages and isinstance(test, up.Grid))
    return {
        "steps": state.step,
        "seconds": round(state.seconds, 2),
        "retreats": sum("exploded" in str(warning.message) for warning in caught),
        "train_snr_db": round(ours.snr_db, 3),
        "train_psnr_db": round(ours.psnr_db, 3),
        "test_snr_db": None if theirs is None else round(theirs.snr_db, 3),
    }


@functools.lru_cache(maxsize=4)
def fields_of(signal: Signal) -> Any:
    return signal.make()


class Anywhere(eqx.Module):
    """Cells whose positions are drawn independently, not in opposite pairs."""

    cells: Cells

    def draw(self, key: Any, indices: Any) -> Any:
        return self.cells.draw(key, indices)


class OnePair(SampledAverages):
    """The error of the mean over one opposite pair, squared."""

    def draw_in_turn(self, key: Any, n: int, step: Any = 0) -> Any:
        return super().draw_in_turn(key, n, step)[:3]

    def loss(self, network: Any, batch: Any, transposed: Any = None) -> Any:
        indices, weights, positions = batch
        error = self._means(network, positions, transposed) - self.samples.values_at(indices)
        return weights * (error**2).mean(axis=1) / self.variance


class RandomSamples(Samples):
    """Samples of which every batch is drawn anew, one from each run."""

    def draw(self, key: Any, n: int, step: Any = 0) -> Any:
        return super().draw(jax.random.fold_in(key, step), n)


def varied(prepared: Any, samples: str, variation: Variation) -> Any:
    """The observations of the rule, or others of the same samples."""
    held, variance = prepared.samples, prepared.variance
    if variation.order == "random":
        held = RandomSamples(*(getattr(held, field.name) for field in fields(held)))
    if samples == "points":
        return SampledValues(held, variance)
    if samples == "independent":
        return SampledAverages(held, Anywhere(prepared.regions), variance, 2, 0.0)
    kind = OnePair if samples == "one pair, squared" else SampledAverages
    draws = max(DRAWS, EVALUATIONS[samples])
    return kind(held, prepared.regions, variance, draws, variation.calm)


def recipe_of(
    variation: Variation, field: Any, network: up.CoordinateMLP, work: float, by_rule: int, draws: int
) -> up.Recipe:
    """The recipe of the rule, with as many steps as a share of its work is enough for.

    `by_rule` and `draws` are the evaluations of the network for each sample.
    """
    rule, own = (up.default_recipe(field, network, draws=each) for each in (by_rule, draws))
    width, depth = up.default_size(field)
    batch = int(min(field.samples, max(1, variation.batch * own.batch)))
    cheaper = rule.batch * by_rule / (batch * draws) * (width / network.width) ** 2 * depth / variation.depth
    steps = max(10, round(work * cheaper * rule.steps))
    own = up.default_recipe(field, network, draws=draws, steps=max(1, round(steps * batch / own.batch)))  # equal visits
    rate, final, fall = up.default_rate(network), variation.final, "exponential"
    if variation.shape == "rule":
        rate, fall = own.learning_rate, own.fall
        final = own.final_fraction**variation.fall if fall == "exponential" else final
    elif variation.shape == "as held":
        rate, final = HELD_RATE * rate, held_final(steps * batch / field.samples)
    rate = rate if variation.optimizer == "muon" else 5e-4  # Adam's is common for SIREN
    return up.Recipe(rule.optimizer, variation.rate * rate, final, steps, batch, fall)


def tasks(what: str, seeds: int) -> Iterator[tuple[Signal, Variation, int, float]]:
    """All runs of a part, those that say most first."""
    for seed in range(seeds):
        if what == "curves":
            chosen = dict.fromkeys([Variation(), PREVIOUS, *(each for curve in CURVES.values() for each in curve)])
            quick = [signal for signal in DEVELOPMENT if signal.name not in LEFT_OUT]
            yield from ((signal, each, seed, SHARE) for each in chosen for signal in quick)
            yield from ((signal, Variation(), seed, share) for share in STEPS for signal in quick)
        elif what in ("rates", "report"):
            signals, other = (REPORT, PREVIOUS) if what == "report" else (DEVELOPMENT, COSINE)
            chosen = dict.fromkeys([Variation(), other, *(Variation(rate=factor) for factor in REPORT_RATES)])
            yield from ((signal, each, seed, 1.0) for each in chosen for signal in signals)
        elif what == "held":
            held = [signal for signal in DEVELOPMENT if signal.name in HELD]
            yield from ((signal, each, seed, 1.0) for each in FALLS for signal in held)
            longest = next(signal for signal in held if signal.name == HELD[0])
            both = (Variation(), *EITHER_WAY)
            yield from ((longest, each, seed, share) for share in EITHER_SHARES for each in both)
        else:
            quick = [signal for signal in REPORT if signal.name not in LEFT_OUT]
            chosen = dict.fromkeys([Variation(), *OWED.values()])
            yield from ((signal, each, seed, SHARE) for each in chosen for signal in quick)


def load_records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def run(what: str, seeds: int, only: list[str]) -> None:
    for signal, variation, seed, work in tasks(what, seeds):
        key = (signal.name, variation.name(), seed, work)
        if (only and signal.name not in only) or not applies(variation, signal, work):
            continue
        if key in {(r["signal"], r["variation"], r["seed"], r["work"]) for r in load_records()}:
            continue  # perhaps by another process
        found = measure(signal, variation, seed, work)
        with RECORDS.open("a") as file:
            names = ("signal", "variation", "seed", "work")
            file.write(json.dumps(dict(zip(names, key, strict=True)) | found) + "\n")
        print(*key, found["train_snr_db"], found["test_snr_db"], f"{found['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("curves", "rates", "held", "report", "owed"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="the names of some signals")
    options = parser.parse_args()
    jax.config.update("jax_compilation_cache_dir", str(Path.home() / ".cache" / "uniphase-rule"))
    run(options.what, options.seeds, options.only)
