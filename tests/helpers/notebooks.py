"""A notebook that is none: what IPython would be asked to show."""

import sys
from types import SimpleNamespace


class ZMQInteractiveShell:
    """The shell of every kernel of Jupyter, by its name."""


class ColabShell(ZMQInteractiveShell):
    """That of a front end with a class of its own."""


def fake_notebook(monkeypatch, shell: type = ZMQInteractiveShell) -> list[tuple[str, str]]:
    """Pretend to be in a notebook. Gives the list of what is shown, as text and as HTML, which grows."""
    shown: list[tuple[str, str]] = []

    def show(self, thing):
        shown.append((repr(thing), thing._repr_html_()))

    handle = type("DisplayHandle", (), {"display": show, "update": show})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(DisplayHandle=handle))
    return shown
