"""Write docs/rule.md and its picture from the records of rule.py: python benchmarks/rule_page.py"""

import math
import re
import statistics
from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from rule import (
    COSINE,
    CURVES,
    EITHER_SHARES,
    EITHER_WAY,
    FALLS,
    HELD,
    HERE,
    OWED,
    PREVIOUS,
    REPORT_RATES,
    SHARE,
    STEPS,
    Variation,
    load_records,
)

from signals import DEVELOPMENT, REPORT, Signal
from uniphase.lab.tables import MISSING, Table, spread

CEILING = 50.0
SHAPES = (COSINE, Variation())
PAGE = HERE.parent / "docs" / "rule.md"


def score(record: dict[str, Any]) -> float:
    """The SNR on what was not fitted, if there is something, else on what was."""
    return record["train_snr_db"] if record["test_snr_db"] is None else record["test_snr_db"]


def fitted_snr(record: dict[str, Any]) -> float:
    return record["train_snr_db"]


def bounded(of: Any) -> Any:
    """A score that counts up to 50 dB: beyond that, a fit is as good as exact, and its gains say little."""
    return lambda record: min(CEILING, of(record))


def of_set(records: list[dict[str, Any]], signals: tuple[Signal, ...]) -> list[dict[str, Any]]:
    """The records of one set of signals: some variations are run on both."""
    names = {signal.name for signal in signals}
    return [record for record in records if record["signal"] in names]


def scores(records: list[dict[str, Any]], variation: Variation, work: float, of: Any = score) -> dict[Any, float]:
    """The score of every signal and seed."""
    name = variation.name()
    return {(r["signal"], r["seed"]): of(r) for r in records if (r["variation"], r["work"]) == (name, work)}


def gains(records: list[dict[str, Any]], variation: Variation, work: float, of: Any = score) -> dict[str, float]:
    """How much better than the rule, for every signal: the mean over seeds, in dB."""
    return means_of_gains(scores(records, Variation(), work, of), scores(records, variation, work, of))


def means_of_gains(rule: dict[Any, float], found: dict[Any, float]) -> dict[str, float]:
    """How much better some scores are than those of the rule with the same seeds: the mean for every signal."""
    by_signal: dict[str, list[float]] = {}
    for (signal, _), gain in gains_of_fits(rule, found).items():
        by_signal.setdefault(signal, []).append(gain)
    return {signal: statistics.fmean(values) for signal, values in sorted(by_signal.items())}


def gains_of_fits(rule: dict[Any, float], found: dict[Any, float]) -> dict[Any, float]:
    """How much better some scores are than those of the rule with the same signals and seeds."""
    return {key: found[key] - rule[key] for key in rule.keys() & found.keys()}


def label(constant: str, variation: Variation) -> str:
    if variation == PREVIOUS:
        return "rule of 0.2.0"
    if hasattr(variation.scales, constant):
        return str(getattr(variation.scales, constant))
    return str(getattr(variation, constant.replace(" ", "_"), variation.name()))


class Value(NamedTuple):
    """A value of a constant, whether it is the rule's, and what it gains over the rule by signal."""

    name: str
    is_rule: bool
    gains: dict[str, float]


def curve(records: list[dict[str, Any]], constant: str) -> list[Value]:
    """The values of a constant that were run, at equal work."""
    variations = ((label(constant, each), each == Variation(), each) for each in CURVES[constant])
    values = [Value(name, own, gains(records, each, SHARE, bounded(score))) for name, own, each in variations]
    values = [value for value in values if value.gains]
    return values if len(values) > 1 else []  # the rule alone says nothing about the constant


def steps_curve(records: list[dict[str, Any]]) -> list[Value]:
    """Shares of the default number of steps, beside all of them."""
    signals = {signal for signal, _ in scores(records, Variation(), STEPS[0])}
    full = scores([r for r in records if r["signal"] in signals], Variation(), 1.0, bounded(score))
    found = [(share, means_of_gains(full, scores(records, Variation(), share, bounded(score)))) for share in STEPS]
    return [Value(f"× {share:g}", share == 1.0, gained) for share, gained in found if gained]


def curves(records: list[dict[str, Any]]) -> dict[str, list[Value]]:
    """All constants."""
    return {constant: curve(records, constant) for constant in CURVES} | {"steps": steps_curve(records)}


def curve_table(constant: str, values: list[Value]) -> Table:
    rows = []
    for name, is_rule, found in values:
        means = (statistics.fmean(found.values()), statistics.median(found.values()))
        ends = [end(found, key=lambda signal: found[signal]) for end in (min, max)]
        cells = [*(f"{mean:+.2f}" for mean in means), *(f"{found[end]:+.2f} ({end})" for end in ends)]
        shown = f"{name} (the rule)" if is_rule and name != Variation().name() else name
        rows.append((shown, *(("",) * 4 if is_rule else cells), str(len(found))))
    header = (constant, "mean", "median", "worst", "best", "signals")
    return Table(constant, f"{constant}: gain over the rule, in dB", header, tuple(rows))


def rates_table(records: list[dict[str, Any]], name: str, signals: tuple[Signal, ...]) -> Table:
    """The rule beside other rates, with all of its steps."""
    rows = []
    for signal in signals:
        of_signal = [record for record in records if record["signal"] == signal.name]
        by_rate = {factor: list(scores(of_signal, Variation(rate=factor), 1.0).values()) for factor in REPORT_RATES}
        if by_rate[1.0]:
            others = [gains(of_signal, Variation(rate=factor), 1.0) for factor in REPORT_RATES if factor != 1.0]
            ahead = [gain for found in others for gain in found.values()]  # over the same seeds
            below = f"{max(0.0, *ahead):.2f}" if ahead else MISSING
            train = list(scores(of_signal, Variation(), 1.0, of=fitted_snr).values())
            cells = [spread(values, ".2f") for values in (train, *by_rate.values())]
            rows.append((signal.name, signal.kind, *cells, below, str(len(train))))
    rates = (f"rate × {factor:g}" for factor in REPORT_RATES)
    header = ("signal", "kind", "fitted", *rates, "rule below the best", "seeds")
    title = "SNR in dB of the fitted samples, and by rate of what was held back (where nothing was: of the fitted)"
    return Table(name, title, header, tuple(rows))


def falls_table(records: list[dict[str, Any]]) -> Table:
    """The rule beside a cosine where it falls exponentially, with all of its steps."""
    rows = []
    for signal in DEVELOPMENT:
        of_signal = [record for record in records if record["signal"] == signal.name]
        shown = [list(scores(of_signal, each, 1.0, of).values()) for of in (fitted_snr, score) for each in SHAPES]
        if all(shown):
            held_back = [record for record in of_signal if record["test_snr_db"] is not None]
            cells = [spread(values, ".2f") for values in (shown if held_back else shown[:2])] + [MISSING] * 2
            rows.append((signal.name, signal.kind, *cells[:4], str(min(map(len, shown)))))
    header = ("signal", "kind", "fitted, cosine", "fitted, rule", "held back, cosine", "held back, rule", "seeds")
    return Table("falls", "SNR in dB where the network can hold the points", header, tuple(rows))


def held_table(records: list[dict[str, Any]]) -> Table:
    """Faster and slower falls where the network can hold the points: what was fitted, and what was held back."""
    rows = []
    for name in HELD:
        of_signal = [record for record in records if record["signal"] == name]
        tested = [record for record in of_signal if record["test_snr_db"] is not None]
        cells, seeds = [], 0
        for variation in FALLS:
            fitted = list(scores(of_signal, variation, 1.0, fitted_snr).values())
            held_back = list(scores(tested, variation, 1.0).values())
            cells.append(spread(fitted, ".1f") + (f" ({spread(held_back, '.1f')})" if held_back else ""))
            seeds = max(seeds, len(fitted))
        if seeds:
            rows.append((name, *cells, str(seeds)))
    header = ("signal", *(f"orders × {variation.fall:g}" for variation in FALLS), "seeds")
    title = "SNR in dB of the fitted samples, by the orders of magnitude of the fall; what was held back in brackets"
    return Table("held", title, header, tuple(rows))


def least_table(records: list[dict[str, Any]]) -> Table:
    """A cosine beside an exponential fall, by the number of steps."""
    rows = []
    own = [record for record in records if record["signal"] == HELD[0]]
    for share in EITHER_SHARES:
        rule = scores(own, Variation(), share)
        found = [scores(own, each, share) or rule for each in EITHER_WAY]  # what the rule does has no other record
        if all(found):
            steps = next(r["steps"] for r in own if r["work"] == share)
            cells = (spread(list(each.values()), ".2f") for each in found)
            rows.append((str(steps), *cells, str(min(map(len, found)))))
    header = ("steps", "cosine", "exponential", "seeds")
    return Table("least", f"SNR in dB of {HELD[0]}, by the number of steps", header, tuple(rows))


def previous_table(records: list[dict[str, Any]]) -> Table:
    """The rule beside that of 0.2.0, which does as much work."""
    fitted = gains(records, PREVIOUS, 1.0, lambda record: record["train_psnr_db"])
    tested = [record for record in records if record["test_snr_db"] is not None]
    held_back = gains(tested, PREVIOUS, 1.0)
    seeds = Counter(signal for signal, _ in scores(records, PREVIOUS, 1.0).keys() & scores(records, Variation(), 1.0))
    rows = []
    for signal in REPORT:
        if signal.name in fitted:
            test = f"{-held_back[signal.name]:+.2f}" if signal.name in held_back else MISSING
            rows.append((signal.name, signal.kind, f"{-fitted[signal.name]:+.2f}", test, str(seeds[signal.name])))
    header = ("signal", "kind", "PSNR of the fitted samples", "SNR of what was held back", "seeds")
    return Table("previous", "Gain over the rule of 0.2.0 at the same work, in dB", header, tuple(rows))


def owed_table(records: list[dict[str, Any]]) -> Table:
    """Apart: signals of which something was held back, and those of which all was fitted."""
    parts = [[r for r in records if (r["test_snr_db"] is None) == all_fitted] for all_fitted in (False, True)]
    rows = []
    for name, variation in OWED.items():
        found = [owed(part, variation) for part in parts]
        if all(found):
            rows.append((name, *(cell for means in found for cell in (signed_spread(means), str(len(means))))))
    header = ("fit", "what was held back", "seeds", "all, where nothing was held back", "seeds")
    return Table("owed", "SNR beyond that of the rule at the same work, in dB", header, tuple(rows))


def owed(records: list[dict[str, Any]], variation: Variation) -> list[float]:
    """The mean gain over all signals for every seed that all of them were run with."""
    less = replace(variation, samples=None)
    # Where the rule fits points, these are one fit, of which there is one record.
    alike = [Variation(), less] if less in (Variation(), COSINE) else []
    rule, found = scores(records, Variation(), SHARE, bounded(score)), {}
    for each in (*alike, variation):
        found |= gains_of_fits(rule, scores(records, each, SHARE, bounded(score)))
    signals, seeds = {signal for signal, _ in rule}, sorted({seed for _, seed in found})
    complete = [seed for seed in seeds if all((signal, seed) in found for signal in signals)]
    return [statistics.fmean(found[signal, seed] for signal in signals) for seed in complete]


def signed_spread(values: list[float]) -> str:
    """The mean, with its sign, and the standard deviation."""
    return f"{statistics.fmean(values):+.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def draw(records: list[dict[str, Any]]) -> bool:
    """docs/rule.png: the gain of every signal along every constant that was varied. Whether there was any."""
    run = {constant: values for constant, values in curves(records).items() if values}
    if not run:
        return False
    columns = min(5, len(run))
    figure, axes = plt.subplots(
        -(-len(run) // columns), columns, figsize=(3.2 * columns, 3 * -(-len(run) // columns)),
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for axis in axes.flat[len(run) :]:
        axis.remove()
    for axis, (constant, values) in zip(axes.flat, run.items(), strict=False):
        names = [value.name.replace(", ", "\n") for value in values]
        for signal in sorted(set().union(*(value.gains for value in values))):
            axis.plot(names, [value.gains.get(signal, math.nan) for value in values], color="0.7", linewidth=0.8)
        axis.plot(names, [statistics.median(value.gains.values()) for value in values], "o-", color="C0")
        axis.set(title=constant, ylim=(-4, 2))
        if max(map(len, names)) > 7:
            axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axis.axhline(0, color="0.3", linewidth=0.5)
    figure.supylabel("gain over the rule, dB")
    figure.savefig(PAGE.with_suffix(".png"), dpi=90)
    return True


def write_page() -> None:
    """Write the tables between the page's marks `<!-- NAME -->` and `<!-- end -->`."""
    records, text = load_records(), PAGE.read_text()
    development, report = of_set(records, DEVELOPMENT), of_set(records, REPORT)
    shown = "![The gain over the rule along every constant](rule.png)\n" if draw(development) else ""
    text = re.sub(r"(<!-- picture -->\n).*?(<!-- end -->)", rf"\1{shown}\2", text, flags=re.DOTALL)
    tables = [
        falls_table(development),
        held_table(development),
        least_table(development),
        *(curve_table(constant, values) for constant, values in curves(development).items()),
        rates_table(development, "rates", DEVELOPMENT),
        rates_table(report, "report", REPORT),
        previous_table(report),
        owed_table(report),
    ]
    for table in tables:
        pattern = rf"(<!-- {re.escape(table.name)} -->\n).*?(<!-- end -->)"
        content = table.markdown() if table.rows else f"**{table.title}**: not run yet.\n"
        text, count = re.subn(pattern, lambda m, t=content: m[1] + t + m[2], text, flags=re.DOTALL)
        assert count == 1, f"docs/rule.md has no marks for the table {table.name}"
    PAGE.write_text(text)


if __name__ == "__main__":
    write_page()
