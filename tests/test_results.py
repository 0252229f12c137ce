"""The tables under `results/` follow from the records that are published beside them."""

import re
from pathlib import Path

from uniphase.lab.report import write_report
from uniphase.lab.store import Store

RESULTS = Path(__file__).parents[1] / "results"


def without_figures(text: str) -> str:
    return re.sub(r'!\[.*\]\(.*\)\n\n|<img alt="[^>]*>\n', "", text)


def test_tables_are_those_of_the_records(tmp_path, monkeypatch):
    monkeypatch.setattr("uniphase.lab.report.write_figures", lambda *_: ())  # they need arrays that are not published
    write_report(Store(RESULTS), tmp_path)
    for name in ("report.md", "report.html"):
        published, anew = ((path / name).read_text() for path in (RESULTS, tmp_path))
        assert without_figures(anew) == without_figures(published), name
    for name in ("records.csv", "records.jsonl", *(f"tables/{path.name}" for path in (RESULTS / "tables").iterdir())):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text(), name


def test_the_report_has_all_its_figures():
    names = re.findall(r"!\[.*\]\((.*)\)", (RESULTS / "report.md").read_text())
    assert names
    assert [name for name in names if not (RESULTS / name).exists()] == []
    assert sorted(names) == sorted(f"figures/{path.name}" for path in (RESULTS / "figures").glob("*.png"))
