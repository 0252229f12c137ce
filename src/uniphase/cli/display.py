"""What is seen of a fit while it runs: numbers, a small picture where the terminal can, and the stages after it."""

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from . import terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ..fitting.plan import Progress
    from ..signals.fields import Field

# Between two pictures: at least this, and so many times what one takes, which is then 2 % of the time.
_SKETCH_SECONDS, _SKETCH_SHARE = 2.0, 50
# Between two looks at a stage.
_STAGE_SECONDS = 0.5


class Watcher:
    """Somebody who watches a fit. This one looks away; `watching` gives one for a terminal or a file."""

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def rehearse(self, network: Any) -> None:
        """Called before the clock starts."""

    def expect(self, words: str, after: float) -> None:
        """Called when it is known how long the fit takes, and how much of that comes after the last step."""

    def progress(self, progress: "Progress") -> None:
        """Called about twice a second while the fit runs, and at its end."""

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        """Called before the fit and after it, with what is being done and how far that is."""


class Lines(Watcher):
    """A line now and then, where there is no terminal."""

    def __init__(self):
        self._due, self._stage_due = (terminal.every(terminal.LINE_SECONDS) for _ in range(2))
        self._stage, self._after = "", 0.0

    def expect(self, words: str, after: float) -> None:
        self._after = after
        _say(words)

    def progress(self, progress: "Progress") -> None:
        if self._due(progress.stop is not None):
            _say("  ".join(f"{key} {value}" for key, value in terminal.progress_cells(progress, self._after).items()))

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        if self._stage_due(name != self._stage):
            _say(_stage_words(name, done, total))
        self._stage = name


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


class Screen(Watcher):
    """A table that is refreshed on a terminal, below a small picture if it can show one.

    **Arguments:**

    - `console`: the terminal.
    - `field`: what is fitted.
    - `clock`: by which the pictures keep to their share of the time.
    """

    def __init__(self, console: "Console", field: "Field", clock: Callable[[], float] = time.perf_counter):
        from rich.live import Live

        from .sketches import Sketch, can_sketch

        self._live, self._clock, self._after = Live(console=console, auto_refresh=False), clock, 0.0
        self._sketch = Sketch(field, console.width) if can_sketch(console, field) else None
        self._picture: Text | None = None
        self._table, self._next_picture, self._looked = None, 0.0, (0.0, "")

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._show()
        self._live.stop()

    def rehearse(self, network: Any) -> None:
        if self._sketch is not None:
            self._sketch.draw(network)

    def expect(self, words: str, after: float) -> None:
        self._after = after
        self._live.console.print(words, markup=False, highlight=False)

    def progress(self, progress: "Progress") -> None:
        begun = self._clock()
        due = self._sketch is not None and (begun >= self._next_picture or progress.stop is not None)
        if self._sketch is not None and due:
            self._picture = self._sketch.draw(progress.network)
        cells = terminal.progress_cells(progress, self._after)
        self._table = terminal.table(tuple(cells), [tuple(cells.values())])
        self._show()
        if due:
            ended = self._clock()
            self._next_picture = ended + max(_SKETCH_SECONDS, _SKETCH_SHARE * (ended - begun))

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        latest, stage = self._looked
        if name != stage or self._clock() - latest > _STAGE_SECONDS:
            self._looked = self._clock(), name
            self._show(_stage_words(name, done, total))

    def _show(self, words: str = "") -> None:
        from rich.console import Group
        from rich.text import Text

        parts = [self._picture, self._table, Text(words) if words else None]
        self._live.update(Group(*(part for part in parts if part is not None)), refresh=True)


def _stage_words(name: str, done: int, total: int) -> str:
    return f"{name}: {done:,} of {total:,} samples" if total else f"{name} …"


def watching(field: "Field", *, quiet: bool) -> Watcher:
    """The watcher for what the errors of a program are written to: a terminal, anything else, or nobody."""
    if quiet:
        return Watcher()
    from rich.console import Console

    console = Console(stderr=True)
    return Screen(console, field) if console.is_terminal and not console.is_dumb_terminal else Lines()


def duration(seconds: float) -> str:
    """A time, e.g. 0:02:10, and in tenths below ten seconds."""
    return f"{seconds:.1f} s" if seconds < 10 else str(timedelta(seconds=round(seconds)))
