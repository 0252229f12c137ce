"""Activations: one table that all other parts of the package use.

An entry has an activation and its derivative in NumPy, where to find it in JAX and PyTorch, how it is recognized in a
model, and how it prints. A new activation is a new entry; see CONTRIBUTING.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Elementwise = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    """An entry of `ACTIVATIONS`.

    **Arguments:**

    - `name`: what blueprints and files call it.
    - `text`: how it prints, with `{}` for its argument.
    - `value`, `slope`: the function and its derivative, in NumPy.
    - `jax`, `torch`: where to find it in each framework, as `"module:name"`.
    - `operator`: what `torch.export` calls it; `None` if it is not a single operator.
    - `initial_slope`: its derivative at 0, from which ω is read in a model. `None` if it has none there.
    - `outputs`: how many numbers it returns for each number.

    !!! example
        ```python
        ACTIVATIONS["sine"].value(np.zeros(3))  # [0, 0, 0]
        ```
    """

    name: str
    text: str
    value: Elementwise
    slope: Elementwise
    jax: str
    torch: str
    operator: str | None
    initial_slope: float | None = 1.0
    outputs: int = 1


def _gate(z: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(z / 2)) / 2


def _silu_slope(z: np.ndarray) -> np.ndarray:
    return _gate(z) * (1 + z * (1 - _gate(z)))


_GELU_SCALE, _GELU_CUBE = np.sqrt(2 / np.pi), 0.044715


def _gelu(z: np.ndarray) -> np.ndarray:
    """The form with tanh, the default in JAX."""
    return z * (1 + np.tanh(_GELU_SCALE * (z + _GELU_CUBE * z**3))) / 2


def _gelu_slope(z: np.ndarray) -> np.ndarray:
    gate = np.tanh(_GELU_SCALE * (z + _GELU_CUBE * z**3))
    return (1 + gate + z * _GELU_SCALE * (1 + 3 * _GELU_CUBE * z**2) * (1 - gate**2)) / 2


ACTIVATIONS: dict[str, Activation] = {
    entry.name: entry
    for entry in (
        Activation("sine", "sin({})", np.sin, np.cos, "uniphase.jax.sine:sine", "torch:sin", "sin"),
        Activation(
            "sincos",  # all sines, then all cosines
            "[sin({0}), cos({0})]",
            lambda z: np.concatenate([np.sin(z), np.cos(z)], axis=-1),
            lambda z: np.concatenate([np.cos(z), -np.sin(z)], axis=-1),
            "uniphase.jax.sine:sincos",
            "uniphase.torch.functions:sincos",
            None,
            initial_slope=None,
            outputs=2,
        ),
        Activation("tanh", "tanh({})", np.tanh, lambda z: 1 - np.tanh(z) ** 2, "jax.numpy:tanh", "torch:tanh", "tanh"),
        Activation(
            "sigmoid",
            "sigmoid({})",
            _gate,
            lambda z: _gate(z) * (1 - _gate(z)),
            "jax.nn:sigmoid",
            "torch:sigmoid",
            "sigmoid",
            0.25,
        ),
        Activation(
            "silu",
            "silu({})",
            lambda z: z * _gate(z),
            _silu_slope,
            "jax.nn:silu",
            "torch.nn.functional:silu",
            "silu",
            0.5,
        ),
        Activation("gelu", "gelu({})", _gelu, _gelu_slope, "jax.nn:gelu", "uniphase.torch.functions:gelu", "gelu", 0.5),
        Activation(
            "relu",
            "relu({})",
            lambda z: np.maximum(z, 0),
            lambda z: (z > 0).astype(np.float64),
            "jax.nn:relu",
            "torch:relu",
            "relu",
            initial_slope=None,
        ),
        Activation(
            "linear", "{}", lambda z: z, np.ones_like, "jax.nn:identity", "uniphase.torch.functions:identity", None
        ),
    )
}


def get_activation(name: str) -> Activation:
    """The entry of the table with this name.

    !!! example
        ```python
        get_activation("relu").text  # "relu({})"
        ```
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation is {name!r}; it must be one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def load_function(place: str) -> Callable[..., Any]:
    """Import the function at `"module:name"`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
