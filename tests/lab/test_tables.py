import math

import pytest

from uniphase.lab.tables import Table, prose, spread, verdict

TABLE = Table("t", "A & B", ("network", "ω₀"), (("sm_20", "1 ± 2"), ("a|b", "—")), ("a note",))


@pytest.mark.parametrize(
    ("printed", "ours", "lower", "expected"),
    [
        ("10.28", [9.9, 10.1, 10.5], False, "inside the spread"),
        ("12.00", [9.9, 10.1, 10.0], False, "worse"),
        ("8.00", [9.9, 10.1, 10.0], False, "better"),
        ("0.0100", [0.0201, 0.0199, 0.0200], True, "worse"),
        ("0.0400", [0.0201, 0.0199, 0.0200], True, "better"),
        ("0.000000", [1e-7, 2e-7, 3e-7], True, "inside the spread"),  # all of these print as zero
        ("0.000000", [1e-5, 1.1e-5, 1.05e-5], True, "worse"),
        ("10.28", [10.28], False, "too few seeds"),
        ("10.28", [7.0, 7.1], False, "too few seeds"),
        ("10.28", [99.0, math.nan], False, "too few seeds"),
        ("10.28", [], False, "not run"),
        (None, [10.0], False, "not printed"),
        ("10.28", [9.9, 10.1, math.nan, 10.5], False, "inside the spread"),
        ("10.28", [math.nan], False, "diverged"),
    ],
)
def test_verdicts_follow_the_rule(printed, ours, lower, expected):
    assert verdict(printed, ours, "paper", lower_is_better=lower) == expected


def test_the_interval_is_that_of_one_more_run():
    """Runs at 0, 1 and 2: t = 4.303 with two degrees of freedom, s = 1, √(1 + 1/3); the end is 1 + 4.968."""
    assert verdict("5.97", [0.0, 1.0, 2.0], "paper", lower_is_better=False) == "inside the spread"
    assert verdict("5.98", [0.0, 1.0, 2.0], "paper", lower_is_better=False) == "worse"


def test_spreads():
    assert spread([1.0, 3.0], ".2f") == "2.00 ± 1.41"
    assert spread([1.0], ".2f") == "1.00"
    assert spread([], ".2f") == "—"
    assert spread([1.0, math.nan, 3.0], ".2f") == "2.00 ± 1.41 (1 diverged)"
    assert spread([math.nan, math.inf], ".2f") == "diverged"


def test_a_table_in_markdown_html_and_latex():
    assert TABLE.markdown().splitlines()[:4] == ["**A & B**", "", "| network | ω₀ |", "| --- | --- |"]
    assert "| a\\|b | — |" in TABLE.markdown()
    assert "<caption>A &amp; B</caption>" in TABLE.html()
    assert '<td class="number">1&nbsp;±&nbsp;2</td>' in TABLE.html()
    assert "<td>sm_20</td>" in TABLE.html()
    assert TABLE.html().startswith('<div class="scroll"')
    latex = TABLE.latex()
    assert r"sm\_20 & 1 $\pm$ 2 \\" in latex
    assert r"\caption{A \& B}" in latex
    assert r"network & $\omega$$_0$ \\" in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 3
    assert latex.isascii()


def test_a_reduced_protocol_is_not_judged():
    assert verdict("1.0", [1.0], "quick", lower_is_better=False) == "no verdict"
    assert verdict("1.0", [], "quick", lower_is_better=False) == "not run"


def test_prose_is_markdown_in_html():
    assert prose("*a* & `b --c`, 1 < 2") == "<em>a</em> &amp; <code>b --c</code>, 1 &lt; 2"
