import subprocess
import sys

import numpy as np
import pytest

from uniphase.plots.drawing import draw_losses, new_figure, save_figure, show_image
from uniphase.signals.fields import Grid


def test_nothing_is_left_of_a_figure_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_text("mine")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        save_figure(new_figure(2.0, 2.0), tmp_path / "a.png")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.png", "mine")]


def test_matplotlib_is_loaded_when_a_figure_is_drawn_and_without_a_window():
    modules = "uniphase.plots.preview, uniphase.plots.comparison, uniphase.plots.diagnosis"
    drawn = "uniphase.plots.drawing.new_figure(2.0, 2.0)"
    check = (
        f"import sys, {modules}; print('matplotlib' in sys.modules); {drawn}; print('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False\nFalse\n"


def test_losses_that_scatter_around_zero_are_averaged():
    panel = new_figure(2.0, 2.0).subplots()
    draw_losses(panel, np.geomspace(1.0, 0.1, 100))
    losses = np.full(100, 0.5) + np.where(np.arange(100) % 2, 1.0, -1.0)
    draw_losses(panel, losses)
    every, means = (np.asarray(line.get_xydata()) for line in panel.get_lines())
    assert len(every) == 100
    assert len(means) == 96
    assert np.abs(means[:, 1] - 0.5).max() <= 0.2 + 1e-12  # of five, at most three of a kind


@pytest.mark.parametrize(("channels", "medium"), [(1, "gray"), (3, "rgb"), (3, "lab")])
def test_what_is_missing_is_white(channels, medium):
    values = np.zeros((4, 4, channels))
    values[1, 2] = np.nan
    panel = new_figure(2.0, 2.0).subplots()
    show_image(panel, values, Grid(values, medium=medium, value_range=(0.0, 1.0)))
    shown = np.asarray(panel.get_images()[0].get_array())
    np.testing.assert_allclose(shown[1, 2], 1.0, atol=1e-3)
    np.testing.assert_allclose(shown[0, 0], 0.0, atol=1e-3)
