"""The identity of a run: a hash of all that its result follows from, so that no run continues the state of another."""

import dataclasses
import functools
import hashlib
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def identify(*things: Any, to_numpy: Callable[[Any], Any] = lambda thing: thing) -> str:
    """A hash of some objects that is the same in every process, and differs for objects that compute other things.

    Arrays are known by their numbers and functions by their code and by what they enclose. Global variables that a
    function reads are not looked at. An object may say by a method `identity` what tells it from others.

    **Arguments:**

    - `things`: the objects.
    - `to_numpy`: turns the arrays of a framework into NumPy's, and returns anything else as it is.

    !!! example
        ```python
        from uniphase.fitting.identity import identify

        identify(np.arange(3), lambda x: 2 * x) == identify(np.arange(3), lambda x: 3 * x)  # False
        ```
    """
    digest = hashlib.sha256()
    for thing in things:
        _add(digest, thing, (), to_numpy)
    return digest.hexdigest()


def _add(digest: Any, thing: Any, around: tuple[Any, ...], to_numpy: Callable[[Any], Any]) -> None:
    """Add an object, which is part of those `around` it."""
    if thing is None or isinstance(thing, str | bytes | bool | int | float | complex | np.dtype | type):
        return _add_text(digest, f"{type(thing).__name__} {thing!r}")
    if any(thing is outer for outer in around):
        return _add_text(digest, "a part of itself")
    thing = to_numpy(thing)
    if isinstance(thing, np.ndarray):
        return _add_array(digest, thing)
    _add_text(digest, type(thing).__qualname__)
    for part in _parts(thing):
        _add(digest, part, (*around, thing), to_numpy)


def _parts(thing: Any) -> list[Any]:
    """What an object consists of."""
    if hasattr(thing, "identity"):
        return [thing.identity()]
    if isinstance(thing, Mapping):
        return [part for item in thing.items() for part in item]
    if isinstance(thing, list | tuple | set | frozenset):
        return sorted(thing, key=repr) if isinstance(thing, set | frozenset) else list(thing)
    if isinstance(thing, functools.partial):
        return [thing.func, thing.args, thing.keywords]
    if isinstance(thing, types.MethodType):
        return [thing.__func__, thing.__self__]
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [thing.__qualname__, thing.__code__, thing.__defaults__, thing.__kwdefaults__, cells]
    if isinstance(thing, types.CodeType):
        return [thing.co_code, thing.co_names, thing.co_consts]
    if hasattr(thing, "__wrapped__"):  # by jax.jit and others
        return [thing.__wrapped__]
    if dataclasses.is_dataclass(thing):
        return [getattr(thing, field.name, None) for field in dataclasses.fields(thing)]
    if getattr(thing, "__dict__", None):
        return [vars(thing)]
    return [re.sub(r" at 0x[0-9a-f]+", "", repr(thing))]


def _add_text(digest: Any, text: str) -> None:
    digest.update(f"{len(text)}:{text}".encode())


def _add_array(digest: Any, array: np.ndarray) -> None:
    digest.update(f"{array.dtype}{array.shape}".encode())
    rows = max(1, (1 << 24) // max(1, array[:1].nbytes)) if array.ndim else 1
    for start in range(0, len(array), rows) if array.ndim else [None]:
        part = array if start is None else array[start : start + rows]
        digest.update(np.ascontiguousarray(part).tobytes())
