import io

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from uniphase.cli.display import Lines, Screen, Watcher, duration, watching
from uniphase.fitting.plan import Progress
from uniphase.signals.fields import Grid

FIELD = Grid(np.zeros((8, 8, 1), np.float32), medium="gray")


def at(step: int, stop=None) -> Progress:
    return Progress(step, 90, 0.01, 20.0, 25.0, 2.0, 65.0, stop)


class Painter:
    """A sketch that takes time, and counts."""

    def __init__(self, clock, seconds: float):
        self.clock, self.seconds, self.drawn = clock, seconds, 0

    def draw(self, network):
        self.clock[0] += self.seconds
        self.drawn += 1
        return Text(f"picture {self.drawn}")


def screen(seconds: float, monkeypatch, **options) -> tuple[Screen, Painter, list[float], io.StringIO]:
    monkeypatch.delenv("CI", raising=False)
    clock, out = [100.0], io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=80, **options)
    made, painter = Screen(console, FIELD, lambda: clock[0]), Painter(clock, seconds)
    if made._sketch is not None:
        made._sketch = painter
    return made, painter, clock, out


@pytest.mark.parametrize("seconds", [0.001, 0.05, 1.0])
def test_pictures_take_little_of_the_time(seconds, monkeypatch):
    """Less than 3 %, however long one takes; none is drawn more often than every two seconds."""
    shown, painter, clock, _ = screen(seconds, monkeypatch)
    with shown:
        for step in range(400):
            clock[0] += 0.5
            shown.progress(at(step))
    taken = clock[0] - 100.0
    assert 2 <= painter.drawn <= taken / 2 + 1
    assert painter.drawn * seconds < 0.03 * taken


def test_a_screen_shows_picture_numbers_and_stages_and_ends_with_the_last_picture(monkeypatch):
    shown, painter, _, out = screen(0.0, monkeypatch)
    with shown:
        shown.stage("compiling")
        shown.expect("time     about 0:01:00", 5.0)
        shown.progress(at(10))
        shown.progress(at(90, "steps"))
        shown.stage("measuring", 10, 1000)
        shown.stage("measuring", 20, 1000)  # too soon
        shown.stage("drawing")
    text = out.getvalue()
    for words in (
        "compiling …",
        "time     about 0:01:00",
        "picture 2",
        "10/90",
        "0:01:10",
        "measuring: 10 of 1,000 samples",
    ):
        assert words in text
    assert "measuring: 20 of" not in text
    assert text.rindex("drawing …") < text.rindex("picture 2")
    assert painter.drawn == 2


def test_without_colors_there_is_no_picture(monkeypatch):
    shown, painter, _, out = screen(0.0, monkeypatch, no_color=True)
    with shown:
        shown.rehearse(None)
        shown.progress(at(10))
    assert painter.drawn == 0
    assert "10/90" in out.getvalue()


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with Lines() as lines:
        lines.stage("compiling")
        lines.expect("time     about 0:01:00", 5.0)
        for seconds in (106.0, 107.0, 112.0):
            now[0] = seconds
            lines.progress(at(int(seconds)))
        for seconds, done in ((113.0, 0), (114.0, 500), (119.0, 900)):
            now[0] = seconds
            lines.stage("measuring", done, 1000)
        lines.stage("drawing")
    told = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in told] == [
        *("compiling …", "time", "step 106/90", "step 112/90"),
        *("measuring: 0 of 1,000 samples", "measuring: 900 of 1,000 samples", "drawing …"),
    ]
    assert told[2].endswith("left 0:01:10")  # with what comes after the last step


def test_who_watches(monkeypatch):
    assert type(watching(FIELD, quiet=True)) is Watcher
    assert isinstance(watching(FIELD, quiet=False), Lines)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert isinstance(watching(FIELD, quiet=False), Screen)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(watching(FIELD, quiet=False), Lines)


def test_durations():
    assert [duration(seconds) for seconds in (0.04, 9.94, 10.0, 3725.4)] == ["0.0 s", "9.9 s", "0:00:10", "1:02:05"]
