import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from uniphase import plots as figures
from uniphase.diagnosis.chain import draw_chain
from uniphase.diagnosis.report import examine
from uniphase.initialization.schemes import relu, sm20
from uniphase.signals.fields import Grid
from uniphase.signals.metrics import evaluate

RNG = np.random.default_rng(0)
LOSSES = np.geomspace(1.0, 1e-4, 50)
FIELDS = {
    "gray": Grid(RNG.uniform(size=(12, 16, 1)), medium="gray"),
    "lab": Grid(RNG.normal(50.0, 20.0, (12, 16, 3)), medium="lab"),
    "slender": Grid(RNG.normal(size=(2, 90, 3))),
    "integers": Grid(RNG.integers(0, 9, (12, 16, 2), dtype=np.uint8)),
    "flat": Grid(np.full((8, 8, 3), 2.0)),
    "volume": Grid(RNG.normal(size=(5, 6, 7, 1))),
    "curve": Grid(RNG.normal(size=(50, 1))),
    "long curve": Grid(RNG.normal(size=(5000, 1))),
    "sound": Grid(RNG.normal(size=(3000, 2)), extents=(-100.0, 100.0), medium="sound", rate=8000.0),
    "silence": Grid(np.zeros((9, 1)), medium="sound"),
}


def noisy(field: Grid) -> np.ndarray:
    return field.values + 0.1 * RNG.normal(size=field.values.shape)


def column(field: Grid, test: Grid | None) -> figures.Column:
    train, fine = noisy(field), None if test is None else noisy(test)
    return figures.Column(train, fine, evaluate(train, field), None if fine is None else evaluate(fine, test))


def assert_picture(path, widest=3200):
    with Image.open(path) as picture:
        picture.load()
        assert (picture.format, 300 < picture.width < widest, 200 < picture.height < widest) == ("PNG", True, True)


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_has_a_preview(name, tmp_path):
    field = FIELDS[name]
    prediction = noisy(field)
    figures.preview(tmp_path / "a.png", field, prediction, LOSSES, evaluate(prediction, field), name)
    assert_picture(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("title", ["costs 5$ or $6", "写真.png", r"\frac"])
def test_a_file_may_have_any_name(title, tmp_path):
    field = FIELDS["gray"]
    figures.preview(tmp_path / "a.png", field, field.values, LOSSES, evaluate(field.values, field), title)
    assert_picture(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["gray", "volume", "sound"])
@pytest.mark.parametrize("tested", [False, True])
def test_a_comparison_of_every_kind(name, tested, tmp_path):
    field = FIELDS[name]
    test = field if tested else None
    figures.comparison(tmp_path / "a.png", field, test, {"sm20": column(field, test), "relu": column(field, test)})
    assert_picture(tmp_path / "a.png")


def test_learning_curves(tmp_path):
    figures.learning_curves(tmp_path / "a.png", {"sm20": [LOSSES, 2 * LOSSES], "relu": [LOSSES]})
    assert_picture(tmp_path / "a.png")


@pytest.mark.parametrize("blueprint", [sm20((2, 1), width=8, depth=9), relu((2, 1), width=8, depth=0)])
def test_a_diagnosis_with_and_without_sines(blueprint, tmp_path):
    report = examine(draw_chain(blueprint, RNG), FIELDS["gray"])
    figures.diagnosis(tmp_path / "a.png", report, "a network")
    assert_picture(tmp_path / "a.png")


def test_the_detail_is_where_the_slopes_are():
    values = np.zeros((40, 80, 1))
    values[13, 45] = 1.0
    assert figures._most_detailed(values) == (slice(10, 20), slice(40, 60))


def test_nothing_is_left_of_a_figure_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_text("mine")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        figures.learning_curves(tmp_path / "a.png", {"sm20": [LOSSES]})
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.png", "mine")]


def test_matplotlib_is_loaded_when_a_figure_is_drawn_and_without_a_window():
    check = "import sys, uniphase.figures; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False\n"
    assert "matplotlib.pyplot" not in sys.modules
