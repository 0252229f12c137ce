import numpy as np
import pytest

from helpers.fakes import column, record
from uniphase.lab.experiments.theory import EXPERIMENT, STATEMENTS, TheoryRun, summarize
from uniphase.lab.runs import execute
from uniphase.lab.store import Store


@pytest.mark.parametrize("statement", ["output-gramian", "structure-tensor", "gradient-gramian"])
def test_a_statement_holds(statement):
    m = execute(TheoryRun(statement, 8, 2, 1000)).metrics
    assert m["largest_deviation"] < m["bound"]
    assert abs(m["measured"] - m["predicted"]) < 5 * m["standard_error"]  # 6e-7 for a Normal


def test_the_summary_is_a_projection_with_its_error():
    expected = np.array([3.0, 4.0])
    samples = expected + np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    m = summarize(samples, expected)
    assert (m["predicted"], m["measured"], m["entries"]) == (1.0, 1.0, 2)
    projected = samples @ expected / 25
    assert m["standard_error"] == pytest.approx(projected.std(ddof=1) / 2)
    assert m["largest_deviation"] == 0


def test_a_wrong_statement_is_refuted():
    rng = np.random.default_rng(0)
    m = summarize(1.1 + 0.1 * rng.normal(size=(1000, 4)), np.ones(4))
    assert m["largest_deviation"] > m["bound"]


def test_the_table_shows_the_verdicts(tmp_path):
    store = Store(tmp_path)
    runs = EXPERIMENT.runs("quick", 1, store)
    numbers = {"predicted": 1.0, "measured": 1.1, "standard_error": 0.01, "entries": 4, "bound": 5.0}
    store.put(record(runs[0], numbers | {"largest_deviation": 6.0}))
    store.put(record(runs[1], numbers | {"largest_deviation": 4.0}))
    store.put(record(runs[-2], numbers | {"largest_deviation": 4.0}))
    store.put(record(runs[-1], numbers | {"largest_deviation": 9.0}))
    (table,) = EXPERIMENT.tables("quick", 1, store)
    verdicts = column(table, "verdict")
    assert verdicts[:3] == ["refuted", "holds", "not run"]
    assert verdicts[-2:] == ["holds", "off by 10 %"]  # a heuristic
    assert set(column(table, "statement")) == set(STATEMENTS.values())
