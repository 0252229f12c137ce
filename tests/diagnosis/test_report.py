import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from helpers.markup import SCRIPT, Seen
from uniphase.diagnosis.chain import draw_chain
from uniphase.diagnosis.examination import examine
from uniphase.diagnosis.report import Report
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import sm20
from uniphase.signals.datasets import load

PHOTO = load("camera", size=32)
MOMENTS = estimate_moments(PHOTO)


@pytest.fixture(scope="module")
def report() -> Report:
    network = draw_chain(sm20((2, 1), width=16, depth=2), np.random.default_rng(0))
    return examine(network, PHOTO, MOMENTS, fix="repair(layers=[0])")


def test_it_passes_through_json(report):
    entries = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(entries) == ["healthy", "looks_like", "fix", "samples", "findings", "layers", "moments"]
    assert (entries["healthy"], entries["fix"], entries["samples"]) == (False, "repair(layers=[0])", 1024)
    assert entries["moments"]["data"]["structure_tensor"] == MOMENTS.structure_tensor.tolist()


def test_it_prints_as_a_table_and_verdicts(report):
    lines = str(report).splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["layer", "input", "hidden", "hidden", "output"]
    assert lines[5] == ""
    severities = [line.split()[0] for line in lines[6:-3] if not line.startswith(" ")]
    assert severities == [finding.severity for finding in report.findings]
    assert max(map(len, lines)) <= 120
    assert lines[-1] == "to fix it: repair(layers=[0])"


def test_columns_are_aligned(report):
    header, *rows = str(report).splitlines()[:5]
    for title in ("out", "std of z", "s² from first"):
        column = header.index(title)
        assert all(row[column] != " " and row[column - 1] == " " for row in rows)


@pytest.mark.parametrize("color", [None, "standard"])
def test_rich_prints_the_same_text_and_colours_the_severities(report, color):
    console = Console(file=io.StringIO(), width=200, color_system=color, force_terminal=color is not None)
    console.print(report, highlight=False)
    text = console.file.getvalue()
    if color is None:
        assert text == str(report) + "\n"
    else:
        assert "\x1b[32mok\x1b[0m" in text
        assert "repair(layers=[0])" in text


def test_a_notebook_shows_the_verdicts_and_the_layers(report):
    seen = Seen(report._repr_html_())
    assert seen.words[0] == "not healthy, on 1,024 samples"
    for finding in report.findings:
        assert {finding.severity, finding.item, finding.words} <= set(seen.words)
    assert "repair(layers=[0])" in seen.words
    assert seen.tags.count("tr") == len(report.findings) + 1 + len(report.layers)


def test_names_that_look_like_markup_are_text(report):
    layers = tuple(layer._replace(name=SCRIPT) for layer in report.layers)
    seen = Seen(replace(report, layers=layers, looks_like=SCRIPT, fix=SCRIPT)._repr_html_())
    assert "script" not in seen.tags
    assert seen.words.count(SCRIPT) == len(layers) + 1
    assert f"looks like: {SCRIPT}" in seen.words
