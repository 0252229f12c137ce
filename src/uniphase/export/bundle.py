"""Bundles: the JavaScript modules of the page as one script, without any tool but a few regular expressions."""

import functools
import re
from importlib.resources import files

_IMPORT = re.compile(r'^import \{ (.+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@functools.cache
def read_asset(name: str) -> str:
    """The text of a file of the page."""
    return (files("uniphase.export") / "page" / name).read_text("utf-8")


@functools.cache
def bundle(entry: str) -> str:
    """A module with all that it imports, each in a function of its own, as one script.

    **Arguments:**

    - `entry`: the name of the module in the folder `page`, without the suffix.

    !!! example
        ```python
        script = bundle("worker")
        ```
    """
    order: list[str] = []
    _visit(entry, order)
    parts = ['"use strict";', *map(_scoped, order)]
    return "\n".join(parts)


def _visit(name: str, order: list[str]) -> None:
    """Add a module to the list behind those that it imports."""
    for imported in _IMPORT.findall(read_asset(f"{name}.js")):
        if imported[1] not in order:
            _visit(imported[1], order)
    order.append(name)


def _scoped(name: str) -> str:
    text = read_asset(f"{name}.js")
    exported = ", ".join(found for _, found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const { \1 } = module_\2;\n", text))
    return f"const module_{name} = (() => {{\n{body}return {{ {exported} }};\n}})();"
