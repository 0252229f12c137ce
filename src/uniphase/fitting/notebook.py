"""A fit that is shown in a notebook while it runs: a bar, the quality so far, the time left and the losses."""

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from ..signals.markup import Html, stacked
from .plan import Progress
from .result import Result
from .summary import losses_curve

AnyResult = TypeVar("AnyResult", bound=Result)

# A fit of hours is drawn by as many points as one of a minute, or up to twice as many.
_POINTS = 200


def run_visibly(run: Callable[..., AnyResult], options: Mapping[str, Any]) -> AnyResult:
    """Run a fit; in a notebook, show it while it runs.

    **Arguments:**

    - `run`: the fit, which takes the options.
    - `options`: with a `callback`, even `None`, or with `progress=False`, nothing is shown.
    """
    if "callback" in options or not options.get("progress", True) or not in_notebook():
        return run(**options)
    live = LiveFit()
    try:
        result = run(**options, callback=live)
    except BaseException as error:
        live.break_off(error)
        raise
    live.finish(result)
    return result


def in_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, whatever its front end. IPython is not loaded to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return any(each.__name__ == "ZMQInteractiveShell" for each in type(shell).__mro__)


class LiveFit:
    """The display of a fit: a `callback` that updates it, and what it shows, as HTML and as one line of text."""

    def __init__(self):
        from IPython.display import DisplayHandle

        self.words, self._quality = "starting", ""
        self._step, self._steps = 0, 0
        self._seen: list[tuple[int, float]] = []
        self._handle = DisplayHandle()
        self._handle.display(self)

    def __call__(self, progress: Progress) -> None:
        self._step, self._steps = progress.step, progress.steps
        self._seen.append((progress.step, progress.mse))
        if len(self._seen) > 2 * _POINTS:
            self._seen = self._seen[::2]
        self._quality = f" · SNR {progress.snr_db:.2f} dB"
        left = timedelta(seconds=round(progress.seconds_left))
        state = f"{left} left" if progress.stop is None else "measuring"
        self._show(f"step {self._step:,} of {self._steps:,}{self._quality} · {state}")

    def finish(self, result: Result) -> None:
        """Show the end: the losses of all steps, and the quality over all samples."""
        self._step = self._steps = result.steps
        self._seen = list(enumerate(result.losses.tolist(), 1))
        quality = self._quality if result.metrics is None else f" · SNR {result.metrics.snr_db:.2f} dB"
        self._show(f"{result.steps:,} steps in {result.seconds:.1f} s{quality}")

    def break_off(self, error: BaseException) -> None:
        """Show where it was interrupted or failed; nothing, if it had not begun."""
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__
        self._show(f"{why} at step {self._step:,} of {self._steps:,}{self._quality}" if self._seen else "")

    def _show(self, words: str) -> None:
        self.words = words
        self._handle.update(self)

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        if not self.words:
            return ""
        bar = f'value="{self._step}" max="{self._steps}"' if self._steps else ""  # none: it is not known yet
        parts = [Html(f'<progress {bar} style="width:18em;max-width:100%"></progress>'), self.words]
        if self._seen:
            steps, losses = np.array(self._seen, np.float64).T
            parts.append(losses_curve(steps, losses, self._steps))
        return stacked(*parts)
