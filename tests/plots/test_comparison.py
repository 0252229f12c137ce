import numpy as np
import pytest

from helpers.pictures import FIELDS, LOSSES, assert_picture, noisy
from uniphase.plots.comparison import Column, _most_detailed, write_comparison, write_learning_curves
from uniphase.signals.fields import Grid
from uniphase.signals.metrics import evaluate


def column(field: Grid, test: Grid | None) -> Column:
    train, fine = noisy(field), None if test is None else noisy(test)
    return Column(train, fine, evaluate(train, field), None if fine is None else evaluate(fine, test))


@pytest.mark.parametrize("name", ["gray", "volume", "sound"])
@pytest.mark.parametrize("tested", [False, True])
def test_a_comparison_of_every_kind(name, tested, tmp_path):
    field = FIELDS[name]
    test = field if tested else None
    write_comparison(tmp_path / "a.png", field, test, {"sm20": column(field, test), "relu": column(field, test)})
    assert_picture(tmp_path / "a.png")


def test_learning_curves(tmp_path):
    write_learning_curves(tmp_path / "a.png", {"sm20": [LOSSES, 2 * LOSSES], "relu": [LOSSES]})
    assert_picture(tmp_path / "a.png")


def test_the_detail_is_where_the_slopes_are():
    values = np.zeros((40, 80, 1))
    values[13, 45] = 1.0
    assert _most_detailed(values) == (slice(10, 20), slice(40, 60))
