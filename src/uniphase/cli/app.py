"""The command line as a whole: the list of commands, and what happens to errors."""

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, CycloptsPanel, UnusedCliTokensError

from .compare import compare
from .diagnose import diagnose
from .export import export
from .failures import explain, printable
from .fit import fit
from .info import info
from .moments import moments
from .render import render
from .report import report
from .reproduce import reproduce
from .schemes import schemes
from .view import view


def _version() -> str:
    from importlib.metadata import version  # which takes a tenth of the time of --help

    return version("uniphase")


def _panel(error: CycloptsError) -> Any:
    if not isinstance(error, UnusedCliTokensError):
        return CycloptsPanel(error)
    return CycloptsPanel(f"{' '.join(error.unused_tokens or ())}: one too many; run the command once for each")


app = App(
    name="uniphase",
    error_formatter=_panel,
    help="""Neural fields without tuning: sine networks whose initialization follows from the signal.

    For example:

        uniphase fit photo.jpg
        uniphase render photo.uniphase --scale 4
        uniphase view photo.uniphase
    """,
    version=_version,
    suppress_keyboard_interrupt=False,  # which would end in silence
)
for command in (fit, render, view, export, info, compare, diagnose, moments, schemes, reproduce, report):
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Errors that the user can fix are printed in one line, without a traceback."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: print(f"uniphase: note: {printable(str(message))}", file=sys.stderr)
        try:
            app(sys.argv[1:] if arguments is None else arguments)
        except BrokenPipeError:  # the reader of the pipe has gone; what is still buffered must not fail at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except Exception as error:
            if (reason := explain(error)) is None:
                raise
            print(f"uniphase: {reason}", file=sys.stderr)
            sys.exit(1)
