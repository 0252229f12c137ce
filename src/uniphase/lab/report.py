"""The report: what the paper prints beside what the records say. It reads the store and computes nothing."""

import base64
import html
import io
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ..signals.paths import atomic_path
from .engine import select
from .experiment import QUICK, Experiment
from .experiments import NAMES, get_experiment
from .runs import Preset, Record, Run
from .store import PACKED, Store, pack, require_directory, write_tables
from .tables import MISSING, RULE, Table, prose

TITLE = "Reproduction of “Stable initialization without the CLT”"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; display: block; overflow-x: auto }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
td, th { border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: right; vertical-align: top }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left }
img { max-width: 100% }
.note { font-size: 13px; color: #555; max-width: 60rem }
"""


@dataclass(frozen=True)
class Section:
    """An experiment in a preset: how much of it was run, its tables, and the names of its figures."""

    experiment: Experiment
    preset: Preset
    coverage: str
    tables: Sequence[Table]
    figures: Sequence[str]

    @property
    def heading(self) -> str:
        return self.experiment.name if self.preset == "paper" else f"{self.experiment.name} ({QUICK})"


def write_report(store: Store, output: str | os.PathLike[str]) -> list[Path]:
    """Write Markdown, HTML, figures, LaTeX tables and the table of all records; return the paths of the main files."""
    from .plots import save

    directory = require_directory("output", output)
    records = list(store.records())
    if not records:
        raise ValueError(f"{store.directory}: no records; run `uniphase reproduce` first, or pass --store")
    for part in ("figures", "tables"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    sections, most = [], 1 + max(record.config.get("seed", 0) for record in records)
    for name in NAMES:
        for preset in get_args(Preset)[::-1]:
            section, figures = _section(get_experiment(name), preset, most, store)
            if section is None:
                continue
            sections.append(section)
            for stem, figure in figures.items():
                save(figure, directory / "figures" / stem)
            for table in section.tables:
                _write(directory / "tables" / f"{_stem(table.name, preset)}.tex", table.latex())
    paths = [directory / "report.md", directory / "report.html", directory / "records.csv"]
    introduction, overview = _introduction(records), _overview(sections)
    _write(paths[0], _markdown(sections, introduction, overview))
    _write(paths[1], _html(sections, introduction, overview, directory))
    if write_tables(records, paths[2], directory / "records.parquet"):
        paths.append(directory / "records.parquet")
    pack(records, directory / PACKED)
    return [*paths, directory / PACKED]


def _section(experiment: Experiment, preset: Preset, most: int, store: Store):
    """A section and its figures; none if nothing of it was run, or if it is the paper's protocol under another name."""
    # The bicubic row alone, which experiments share, makes no section.
    runs = [run for run in select(experiment.runs(preset, most, store), "") if run.kind != "reference"]
    stored = [run for run in runs if run in store]
    if preset == "quick" and (not stored or stored == _stored_of_paper(experiment, most, store)):
        return None, {}
    if not stored:
        return Section(experiment, preset, "Not run.", (), ()), {}
    seeds = 1 + max(_seed(run) for run in stored)
    drawn = experiment.figures(preset, seeds, store)
    figures = {_stem(name, preset): figure for name, figure in drawn.items()}
    tables = experiment.tables(preset, seeds, store)
    return Section(experiment, preset, _coverage(runs, stored), tables, tuple(figures)), figures


def _coverage(runs: Sequence[Run], stored: Sequence[Run]) -> str:
    """How many of the runs with the first seed were made and of which family the others are; and all further seeds."""
    first = [run for run in runs if _seed(run) == 0]
    made = [run for run in stored if _seed(run) == 0]
    missing, all_of = Counter(run.family for run in first if run not in made), Counter(run.family for run in first)
    further = f", and {len(stored) - len(made)} with further seeds" if len(stored) > len(made) else ""
    words = [f"{len(made)} of {len(first)} runs{further}."]
    if missing:
        parts = [f"{family} ({number} of {all_of[family]})" for family, number in missing.items()]
        words.append(f"Not run: {', '.join(parts)}.")
    return " ".join(words)


def _seed(run: Run) -> int:
    return getattr(run, "seed", 0)


def _stored_of_paper(experiment: Experiment, most: int, store: Store) -> list[Run]:
    return [run for run in select(experiment.runs("paper", most, store), "") if run in store]


def _stem(name: str, preset: Preset) -> str:
    return name if preset == "paper" else f"{name}-quick"


def _introduction(records: Sequence[Record]) -> list[str]:
    def told(key: str) -> str:
        return ", ".join(sorted({str(record.provenance[key]) for record in records}))

    hours = sum(record.seconds for record in records) / 3600
    versions = ", ".join(sorted({f"{k} {v}" for record in records for k, v in record.provenance["versions"].items()}))
    return [
        "The paper is Kuang, Chickering and Lin, 2026. Every number beside “paper” is as it prints it, and every "
        "number beside “ours” was computed from the records by `uniphase report`.",
        f"{len(records):,} records, {hours:.1f} hours of computing, on {told('device')}; {versions}; "
        f"commit {told('commit')}.",
    ]


def _overview(sections: Sequence[Section]) -> Table:
    """A line for each section, with the number of lines of its tables that have each verdict."""
    rows = []
    for section in sections:
        judged = Counter(row[-1] for table in section.tables if "verdict" in table.header[-1] for row in table.rows)
        words = ", ".join(f"{number} {verdict}" for verdict, number in judged.items()) or MISSING
        rows.append((section.experiment.name, section.preset, section.coverage, words))
    header = ("experiment", "preset", "runs", "lines by verdict")
    return Table("overview", "All at a glance", header, tuple(rows), (RULE,))


def _markdown(sections: Sequence[Section], introduction: Sequence[str], overview: Table) -> str:
    lines = [f"# {TITLE}", "", *(f"{text}\n" for text in introduction), overview.markdown()]
    for section in sections:
        lines += [f"## {section.heading}", "", f"In the paper: {section.experiment.artefact}. {section.coverage}", ""]
        for name in section.figures:
            lines += [f"![{name}](figures/{name}.png)", ""]
        lines += [table.markdown() for table in section.tables]
    return "\n".join(lines)


def _html(sections: Sequence[Section], introduction: Sequence[str], overview: Table, directory: Path) -> str:
    parts = [f"<h1>{html.escape(TITLE)}</h1>", *(f"<p>{prose(text)}</p>" for text in introduction)]
    parts.append(overview.html())
    for section in sections:
        parts.append(f"<h2>{html.escape(section.heading)}</h2>")
        parts.append(
            f"<p>In the paper: {html.escape(section.experiment.artefact)}. {html.escape(section.coverage)}</p>"
        )
        for name in section.figures:
            picture = base64.b64encode(_webp(directory / "figures" / f"{name}.png")).decode()
            parts.append(f'<img alt="{html.escape(name)}" src="data:image/webp;base64,{picture}">')
        parts += [table.html() for table in section.tables]
    head = f'<meta charset="utf-8"><title>{html.escape(TITLE)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(parts) + "\n</body></html>\n"


def _webp(path: Path) -> bytes:
    """A picture in a fraction of its size, with no difference that one would see."""
    from PIL import Image

    stream = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").save(stream, "WEBP", quality=90, method=6)
    return stream.getvalue()


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text(text)
