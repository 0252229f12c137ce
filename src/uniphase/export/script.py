"""The script: a network's file read and rendered in ten lines of Python, which need NumPy and nothing else."""

import itertools
import math
import os
from pathlib import Path
from typing import Any

from ..initialization.blueprint import Blueprint
from ..signals.fields import Align, Extent
from ..storage.network_file import NetworkFile

# Samples along the longest axis of a field of scattered points, which have no size of their own.
_SIZE = 256
_FUNCTIONS = {
    "sine": "np.sin",
    "sincos": "lambda z: np.concatenate([np.sin(z), np.cos(z)], axis=-1)",
    "tanh": "np.tanh",
    "silu": "lambda z: z / (1 + np.exp(-z))",
    "gelu": "lambda z: z / (1 + np.exp(-2 * (2 / np.pi) ** 0.5 * (z + 0.044715 * z**3)))",
    "relu": "lambda z: np.maximum(z, 0)",
    "linear": "lambda z: z",
}

# The types of safetensors in NumPy.
_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I8": "<i1", "I16": "<i2"}

# Ten lines, some of them long.
_SCRIPT = '''\
"""Renders {name} with NumPy alone, at {size} samples, and writes the values to {array} beside this file."""

import json
from pathlib import Path

import numpy as np

data = (Path(__file__).parent / {network!r}).read_bytes()  # safetensors: size of the header, header, numbers
start, types = 8 + int.from_bytes(data[:8], "little"), {types}
entries = {{name: entry for name, entry in json.loads(data[8:start]).items() if name != "__metadata__"}}
tensors = {{k[7:]: np.ndarray(e["shape"], types[e["dtype"]], data, start + e["data_offsets"][0]) for k, e in entries.items()}}


def field(x):  # the channels at positions of shape (n, {axes})
    for i, (omega, f) in enumerate({layers}):
        x = f(omega * (x @ tensors[f"{{i}}.weight"].T * tensors.get(f"{{i}}.weight.scales", 1.0) + tensors.get(f"{{i}}.bias", 0.0)))
    return x


x = np.stack(np.meshgrid({grid}, indexing="ij"), axis=-1).reshape(-1, {axes})
np.save(Path(__file__).with_suffix(".npy"), np.concatenate([field(part) for part in np.array_split(x, {parts})]).reshape{shape})
'''  # noqa: E501


def make_script(path: str, target: Path, file: NetworkFile[Any]) -> str:
    """The script that renders the network of a file.

    **Arguments:**

    - `path`: the network's file, which the script reads.
    - `target`: where the script will be.
    - `file`: what the network's file says.
    """
    domain = file.domain
    shape = domain.shape or _shape_of_box(domain.extents)
    return _SCRIPT.format(
        name=_quoted(Path(path).name),
        size=" × ".join(map(str, shape)),
        array=_quoted(f"{target.stem}.npy"),
        network=os.path.relpath(path, target.parent),
        types=_TYPES,
        layers=_layers(file.blueprint),
        axes=len(shape),
        grid=", ".join(_axis(n, extent, domain.align) for n, extent in zip(shape, domain.extents, strict=True)),
        parts=1 + math.prod(shape) // 4096,
        shape=(*shape, file.blueprint.out_size),
    )


def _quoted(name: str) -> str:
    """A name that is part of a string in the script, which it must not end."""
    return repr(name)[1:-1].replace('"', '\\"')


def _layers(blueprint: Blueprint) -> str:
    """The ω and the function of each layer, those of equal neighbours written once."""
    pairs = [f"({plan.omega!r}, {_FUNCTIONS[plan.activation]})" for plan in blueprint.layers]
    groups = [(pair, len(list(group))) for pair, group in itertools.groupby(pairs)]
    return " + ".join(f"[{pair}]" + (f" * {count}" if count > 1 else "") for pair, count in groups)


def _axis(n: int, extent: Extent, align: Align) -> str:
    low, high = extent
    margin = 0.0 if align == "corners" else (high - low) / n / 2
    return f"np.linspace({low + margin!r}, {high - margin!r}, {n})"


def _shape_of_box(extents: tuple[Extent, ...]) -> tuple[int, ...]:
    lengths = [high - low for low, high in extents]
    return tuple(max(2, round(_SIZE * length / max(lengths))) for length in lengths)
