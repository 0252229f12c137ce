from helpers.fakes import column, record
from uniphase.lab.engine import reproduce
from uniphase.lab.experiments.moments import EXPERIMENT
from uniphase.lab.store import Store


def test_the_moments_of_a_task_are_the_printed_ones(tmp_path):
    store = Store(tmp_path)
    assert reproduce(EXPERIMENT, "paper", 1, store, only="camera/gray") == 1
    (table,) = EXPERIMENT.tables("paper", 1, store)
    assert table.rows[1][:3] == ("camera/gray", "6", "6")
    assert column(table, "verdict")[:2] == ["not run", "inside the rounding"]
    assert table.notes[0].startswith("6 of 6 printed values are met")


def test_a_value_that_rounds_differently_is_reported(tmp_path):
    store = Store(tmp_path)
    brick = EXPERIMENT.runs("paper", 1, store)[0]
    omega = [[561.0, -4.2], [-4.2, 1870.0]]
    store.put(record(brick, {"mean": [0.4376], "covariance": [[0.00672]], "structure_tensor": omega}))
    (table,) = EXPERIMENT.tables("paper", 1, store)
    assert table.rows[0][2] == "5"
    assert table.rows[0][-1] == "differs"
