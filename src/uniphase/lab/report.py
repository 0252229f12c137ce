"""The report: the numbers printed in the paper beside ours. It reads the records in the store and trains nothing."""

import base64
import html
import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..signals.paths import atomic_path
from .experiment import QUICK, Experiment
from .experiments import EXPERIMENT_NAMES, get_experiment
from .runs import Preset, Record, Run, identify
from .store import PACKED, Store, pack, require_directory, write_tables
from .tables import MISSING, RULE, Table, prose

TITLE = "Reproduction of “Stable initialization without the CLT”"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { line-height: 1.2 }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem }
p { max-width: 60rem; overflow-wrap: anywhere }
nav ul { columns: 14rem; padding-left: 1.2rem }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: 13px }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
td, th { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: left; vertical-align: top }
td:first-child { white-space: nowrap }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
img { max-width: 100%; height: auto }
.conclusion { border-left: 4px solid #4a7; padding-left: .8rem }
.note { font-size: 13px; color: #555 }
"""
# What is seen in a figure, by the beginning or the end of its name.
_SEEN = {
    "-losses": "Curves of the training error over the steps, one for each initialization",
    "cameraman": "The Cameraman image as networks of each initialization render it, beside the original",
    "narrow": "The Cameraman image as narrow networks of each initialization render it, beside the original",
    "audio": "Waveforms of the fits of each initialization to a recording, and their errors",
    "spectrum": "Singular values of the Jacobians of networks of each initialization, by depth",
    "omega-sweep": "Curves of the error over the frequency ω₀, one panel for each image",
    "best-omega": "Images as the best networks of a sweep over ω₀ render them, beside the originals",
    "mup-sweep": "Curves of the error over the learning rate, one for each width",
    "beyond": "Errors of the default fit on the paper's images, relative to those of the cubic spline",
}
# Figures whose names do not begin with that of their experiment.
_FIGURES = {"omega-sweep": ("omega-sweep", "best-omega")}
# Verdicts by which a line agrees with the paper, by which it differs, and that say nothing of it.
_AGREE = ("inside the rounding", "inside the spread", "holds")
_SILENT = ("not run", "partly run", "too few seeds", "no verdict", "not printed", "needs no training")


@dataclass(frozen=True)
class Section:
    """An experiment in a preset: how many of its runs are stored, its tables, and the names of its figures."""

    experiment: Experiment
    preset: Preset
    coverage: str
    tables: Sequence[Table] = ()
    figures: Sequence[str] = ()

    @property
    def heading(self) -> str:
        return self.experiment.name if self.preset == "paper" else f"{self.experiment.name} ({QUICK})"

    @property
    def anchor(self) -> str:
        return _stem(self.experiment.name, self.preset)

    @property
    def verdicts(self) -> Counter[str]:
        """The number of lines in its tables for each verdict."""
        return Counter(row[-1] for table in self.tables if "verdict" in table.header[-1] for row in table.rows)

    @property
    def conclusion(self) -> str:
        """What the tables say of the paper, in a sentence."""
        if not self.tables:
            return "Not run, so nothing is known."
        if self.preset != "paper":
            return "These runs are smaller than the paper's, so they have no verdict and show tendencies only."
        judged = Counter({word: n for word, n in self.verdicts.items() if word not in _SILENT})
        if not judged:
            why = "there are too few runs" if self.verdicts else "the paper has no such table"
            return f"No line has a verdict: {why}."
        agree = sum(n for word, n in judged.items() if word in _AGREE)
        others = ", ".join(f"{n} {word}" for word, n in judged.items() if word not in _AGREE)
        words = f"{agree} of {judged.total()} lines that have a verdict agree with the paper"
        return f"{words}; the others: {others}." if others else f"{words}."


def write_report(store: Store, output: str | os.PathLike[str]) -> list[Path]:
    """Write the report as Markdown and HTML, its figures and LaTeX tables, and all records in several formats.

    **Returns:**

    The paths of the report and of the files with all records.
    """
    directory = require_directory("output", output)
    records = list(store.records())
    if not records:
        raise ValueError(f"{store.directory}: no records; run `uniphase reproduce` first, or pass --store")
    for part in ("figures", "tables"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    sections = _write_sections(records, store, directory)
    paths = [directory / "report.md", directory / "report.html", directory / "records.csv"]
    introduction, overview = _introduction(records), _overview(sections)
    _write(paths[0], _markdown(sections, introduction, overview))
    _write(paths[1], _html(sections, introduction, overview, directory))
    if write_tables(records, paths[2], directory / "records.parquet"):
        paths.append(directory / "records.parquet")
    pack(records, directory / PACKED)
    return [*paths, directory / PACKED]


def _write_sections(records: Sequence[Record], store: Store, directory: Path) -> list[Section]:
    """Make the sections of all experiments, and write their figures and LaTeX tables."""
    stored, sections = {record.identity for record in records}, []
    last_seeds: dict[str, int] = {}
    for record in sorted(records, key=lambda record: _seed(record.config)):
        last_seeds[_outline(record.kind, record.config)] = _seed(record.config)
    for name in EXPERIMENT_NAMES:
        experiment = get_experiment(name)
        paper = _runs(experiment, "paper", last_seeds, store)
        sections.append(_write_section(experiment, "paper", paper, stored, store, directory))
        quick = _runs(experiment, "quick", last_seeds, store)
        # A preset that was not run, or whose runs are those of the paper's protocol, gets no section.
        if not stored.isdisjoint(quick) and stored & quick.keys() != stored & paper.keys():
            sections.append(_write_section(experiment, "quick", quick, stored, store, directory))
    return sections


def _runs(experiment: Experiment, preset: Preset, last_seeds: Mapping[str, int], store: Store) -> dict[str, Run]:
    """The runs of an experiment by their identities, without the references, which experiments share.

    A sweep has thousands of runs, and another experiment many seeds: only as many seeds are listed as may be stored.
    """
    outlines = {_outline(run.kind, run.effective()) for run in experiment.runs(preset, 1, store)}
    seeds = 1 + max((last_seeds[outline] for outline in outlines & last_seeds.keys()), default=0)
    return {identify(run): run for run in experiment.runs(preset, seeds, store) if run.kind != "reference"}


def _outline(kind: str, config: Mapping[str, Any]) -> str:
    """What the runs of all seeds have in common; options, such as the best ω₀, may be found for each seed."""
    common = {name: value for name, value in config.items() if name not in ("seed", "options")}
    return json.dumps([kind, common], sort_keys=True)


def _write_section(
    experiment: Experiment, preset: Preset, runs: Mapping[str, Run], stored: Set[str], store: Store, directory: Path
) -> Section:
    made = {identity: run for identity, run in runs.items() if identity in stored}
    if not made:
        return Section(experiment, preset, "Not run.")
    seeds = 1 + max(_seed(vars(run)) for run in made.values())
    figures = write_figures(experiment, preset, seeds, store, directory)
    tables = experiment.tables(preset, seeds, store)
    for table in tables:
        _write(directory / "tables" / f"{_stem(table.name, preset)}.tex", table.latex())
    return Section(experiment, preset, _coverage(runs, made), tables, figures)


def write_figures(experiment: Experiment, preset: Preset, seeds: int, store: Store, directory: Path) -> Sequence[str]:
    """Write the figures of an experiment for which there are records, and return their names.

    Packed records have no arrays. What cannot be drawn from them is kept from an earlier report in the same directory.
    """
    from .plots import save

    figures = {_stem(name, preset): figure for name, figure in experiment.figures(preset, seeds, store).items()}
    for stem, figure in figures.items():
        save(figure, directory / "figures" / stem)
    beginnings = _FIGURES.get(experiment.name, (experiment.name,))
    found = sorted(path.stem for path in (directory / "figures").glob("*.png") if path.stem.startswith(beginnings))
    kept = [stem for stem in found if stem.endswith("-quick") == (preset == "quick")]
    return (*figures, *(stem for stem in kept if stem not in figures))


def _coverage(runs: Mapping[str, Run], made: Mapping[str, Run]) -> str:
    """How many runs with the first seed are stored, how many are missing by family, and the number of further seeds."""
    first = {identity: run for identity, run in runs.items() if _seed(vars(run)) == 0}
    done = first.keys() & made.keys()
    total = Counter(run.family for run in first.values())
    missing = Counter(run.family for identity, run in first.items() if identity not in done)
    further = f", and {len(made) - len(done)} with further seeds" if len(made) > len(done) else ""
    words = [f"{len(done)} of {len(first)} runs{further}."]
    if missing:
        parts = [f"{family} ({number} of {total[family]})" for family, number in missing.items()]
        words.append(f"Not run: {', '.join(parts)}.")
    return " ".join(words)


def _seed(config: Mapping[str, Any]) -> int:
    return config.get("seed", 0)


def _stem(name: str, preset: Preset) -> str:
    return name if preset == "paper" else f"{name}-quick"


def _introduction(records: Sequence[Record]) -> list[str]:
    def distinct(key: str) -> str:
        return ", ".join(sorted({str(record.provenance[key]) for record in records}))

    hours = sum(record.seconds for record in records) / 3600
    versions = ", ".join(sorted({f"{k} {v}" for record in records for k, v in record.provenance["versions"].items()}))
    return [
        "The paper is Kuang, Chickering and Lin, 2026. Every number beside “paper” is as it prints it, and every "
        "number beside “ours” was computed from the records by `uniphase report`.",
        f"{len(records):,} records, {hours:.1f} hours of computing, on {distinct('device')}; {versions}; "
        f"commit {distinct('commit')}.",
    ]


def _overview(sections: Sequence[Section]) -> Table:
    """A row per section, with the number of rows of its tables for each verdict."""
    rows = []
    for section in sections:
        words = ", ".join(f"{number} {verdict}" for verdict, number in section.verdicts.items()) or MISSING
        rows.append((section.experiment.name, section.preset, section.coverage, words))
    header = ("experiment", "preset", "runs", "lines by verdict")
    return Table("overview", "All at a glance", header, tuple(rows), (RULE,))


def _markdown(sections: Sequence[Section], introduction: Sequence[str], overview: Table) -> str:
    lines = [f"# {TITLE}", "", *(f"{text}\n" for text in introduction), overview.markdown()]
    for section in sections:
        lines += [f"## {section.heading}", "", f"In the paper: {section.experiment.artefact}. {section.coverage}", ""]
        lines += [f"{section.conclusion}", ""] if section.tables else []
        for name in section.figures:
            lines += [f"![{_seen(name)}](figures/{name}.png)", ""]
        lines += [table.markdown() for table in section.tables]
    return "\n".join(lines)


def _html(sections: Sequence[Section], introduction: Sequence[str], overview: Table, directory: Path) -> str:
    parts = [f"<h1>{html.escape(TITLE)}</h1>", *(f"<p>{prose(text)}</p>" for text in introduction)]
    parts.append(_contents(sections))
    parts.append(overview.html())
    for section in sections:
        parts.append(f'<h2 id="{section.anchor}">{html.escape(section.heading)}</h2>')
        parts.append(
            f"<p>In the paper: {html.escape(section.experiment.artefact)}. {html.escape(section.coverage)}</p>"
        )
        parts += [f'<p class="conclusion">{html.escape(section.conclusion)}</p>'] if section.tables else []
        for name in section.figures:
            picture = base64.b64encode(_webp(directory / "figures" / f"{name}.png")).decode()
            parts.append(f'<img alt="{html.escape(_seen(name))}" src="data:image/webp;base64,{picture}">')
        parts += [table.html() for table in section.tables]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(TITLE)}</title><style>{_STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body><main>\n{body}\n</main></body></html>\n'


def _contents(sections: Sequence[Section]) -> str:
    names = {
        each.anchor: each.experiment.name + ("" if each.preset == "paper" else f" ({each.preset})") for each in sections
    }
    links = (f'<li><a href="#{anchor}">{html.escape(name)}</a></li>' for anchor, name in names.items())
    return f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>'


def _seen(name: str) -> str:
    """What is seen in a figure, for who does not see it."""
    plain = name.removesuffix("-quick")
    known = (words for key, words in _SEEN.items() if plain.startswith(key) or (key[0] == "-" and plain.endswith(key)))
    return next(known, plain)


def _webp(path: Path) -> bytes:
    """An image as WebP, which is much smaller and looks the same."""
    from PIL import Image

    stream = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").save(stream, "WEBP", quality=90, method=6)
    return stream.getvalue()


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text)
