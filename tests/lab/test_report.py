import re

import pytest

from helpers.fakes import fill, save_blank
from uniphase.lab.experiments import get_experiment
from uniphase.lab.experiments.cameraman import SCHEMES
from uniphase.lab.experiments.omega_sweep import OMEGAS
from uniphase.lab.report import write_report
from uniphase.lab.store import Store


@pytest.fixture(autouse=True)
def blank_figures(monkeypatch):
    """Rendering would take most of the time; test_plots.py tests it."""
    monkeypatch.setattr("uniphase.lab.plots.save", save_blank)


def test_the_report_says_what_was_run_and_what_was_not(tmp_path, monkeypatch):
    store, narrow = Store(tmp_path / "store"), get_experiment("narrow")
    fill(store, narrow.runs("paper", 3, store))
    fill(store, narrow.runs("quick", 1, store)[:2])
    monkeypatch.setattr("uniphase.training.protocol.fit_together", None)  # a report must not train
    output = tmp_path / "out"
    paths = write_report(store, output)
    assert [path.name for path in paths] == [
        *("report.md", "report.html", "records.csv", "records.parquet", "records.jsonl")
    ]
    text = paths[0].read_text()
    artefact = "In the paper: section 4.3, table and figure of narrow networks."
    assert f"## narrow\n\n{artefact} 8 of 8 runs, and 16 with further seeds.\n" in text
    assert "## narrow (quick preset, a reduced protocol that is not the paper's)" in text
    missing = ", ".join(f"{scheme} (1 of 1)" for scheme in SCHEMES[1:])
    assert f"{artefact} 1 of 8 runs. Not run: {missing}.\n" in text
    assert "## audio\n\nIn the paper: section 4.2, figure of the audio fits. Not run." in text
    assert (
        "| narrow | paper | 8 of 8 runs, and 16 with further seeds. | 7 better, 1 not printed, 1 needs no training |"
        in text
    )
    assert "| audio | paper | Not run. | — |" in text
    assert "## cameraman (quick" not in text  # the bicubic row, which it shares, is no run of it
    assert "\n0 of 7 lines that have a verdict agree with the paper; the others: 7 better.\n" in text
    assert "beside the original](figures/narrow.png)" in text
    files = sorted(path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())
    assert [name for name in files if name.startswith("figures")] == [
        f"figures/{name}{suffix}"
        for name in ("narrow-losses-quick", "narrow-losses", "narrow-quick", "narrow")
        for suffix in (".pdf", ".png")
    ]
    assert [name for name in files if name.startswith("tables")] == ["tables/narrow-quick.tex", "tables/narrow.tex"]
    page = paths[1].read_text()
    assert len(re.findall(r'<img alt="[\w ,-]{40,}" src="data:image/webp;base64,', page)) == 4
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)  # no other files are needed
    assert '<meta name="viewport" content="width=device-width' in page
    targets, links = (re.findall(pattern, page) for pattern in (r'<h2 id="(.*?)"', r'href="#(.*?)"'))
    assert links == targets
    assert {"narrow", "narrow-quick", "audio"} < set(links)
    assert page.count('class="conclusion"') == 2  # of what was run


def test_the_tables_of_a_report_can_be_made_again_from_it(tmp_path):
    store, first, second = Store(tmp_path / "store"), tmp_path / "first", tmp_path / "second"
    fill(store, get_experiment("narrow").runs("paper", 2, store))
    write_report(store, first)
    write_report(Store(first), second)
    for name in ("records.jsonl", "records.csv", "tables/narrow.tex"):
        assert (second / name).read_bytes() == (first / name).read_bytes()
    without = re.sub(r"!\[.*\]\(figures/.*\)\n\n", "", (first / "report.md").read_text())
    assert (second / "report.md").read_text() == without
    assert not list((second / "figures").iterdir())


def test_a_report_in_the_same_place_keeps_the_figures_that_need_arrays(tmp_path):
    store, place = Store(tmp_path / "store"), tmp_path / "place"
    fill(store, get_experiment("narrow").runs("paper", 2, store))
    write_report(store, place)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    write_report(Store(place), place)
    after = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert before.keys() == after.keys()
    assert (place / "figures" / "narrow.png") in before
    assert after[place / "report.md"] == before[place / "report.md"]


def test_seeds_are_found_with_gaps_and_other_options(tmp_path, monkeypatch):
    """One scheme has the seeds 0 and 3. In the sweep the second seed selects another ω₀ than the first."""
    monkeypatch.setattr("uniphase.lab.report.write_figures", lambda *_: ())
    store, narrow, sweep = Store(tmp_path / "store"), get_experiment("narrow"), get_experiment("mup-sweep")
    fill(store, narrow.runs("paper", 1, store))
    fill(store, [run for run in narrow.runs("paper", 4, store) if "relu" in run.label and run.seed == 3])
    for seed, best in ((0, 3), (1, 5)):
        first = [run for run in sweep.stages[0]("quick", 2, store) if run.seed == seed and run.scheme == "sm20"]
        fill(store, first, lambda run, best=best: 0.01 * (1 + abs(OMEGAS.index(dict(run.options)["omega"]) - best)))
    fill(store, [run for run in sweep.stages[1]("quick", 2, store) if run.scheme == "sm20" and run.width == 8])
    text = write_report(store, tmp_path / "out")[0].read_text()
    assert "| narrow | paper | 8 of 8 runs, and 1 with further seeds. |" in text
    assert "runs, and 54 with further seeds." in text


def test_a_report_needs_a_directory(tmp_path):
    (tmp_path / "file").write_text("mine")
    for output, message in ((tmp_path / "file", "file', but that is a file"), ("", "output is ''; pass a directory")):
        with pytest.raises(ValueError, match=message):
            write_report(Store(tmp_path / "store"), output)
    assert (tmp_path / "file").read_text() == "mine"


def test_an_empty_store_has_no_report(tmp_path):
    with pytest.raises(ValueError, match="no records; run `uniphase reproduce` first, or pass --store"):
        write_report(Store(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()
