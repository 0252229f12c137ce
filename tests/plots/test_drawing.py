import subprocess
import sys

import pytest

from uniphase.plots.drawing import new_figure, save_figure


def test_nothing_is_left_of_a_figure_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_text("mine")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        save_figure(new_figure(2.0, 2.0), tmp_path / "a.png")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.png", "mine")]


def test_matplotlib_is_loaded_when_a_figure_is_drawn_and_without_a_window():
    modules = "uniphase.plots.preview, uniphase.plots.comparison, uniphase.plots.diagnosis"
    check = f"import sys, {modules}; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False\n"
    assert "matplotlib.pyplot" not in sys.modules
