"""For mkdocstrings: functions that are made by a call, with the docstrings that they have at run time.

`siren_ = _layer_initializer("siren")` has its docstring from a template, which reading the source does not show.
"""

import importlib
import inspect
from typing import Any

import griffe

MAKERS = ("_layer_initializer", "_tensor_initializer", "_specialize")


class RunTimeDocstrings(griffe.Extension):
    """Take the docstring of what a maker of functions returned."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if str(attr.value).partition("(")[0] in MAKERS:
            function = getattr(importlib.import_module(attr.module.path), attr.name)
            signature = inspect.signature(function)
            plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            call = f"{attr.name}{signature.replace(parameters=plain, return_annotation=signature.empty)}"
            words = f"```python\n{call}\n```\n\n{inspect.getdoc(function)}"
            attr.docstring, attr.value = griffe.Docstring(words, parent=attr), None
