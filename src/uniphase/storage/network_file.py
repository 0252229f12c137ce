"""Network files: what a `.uniphase` file holds, whichever framework writes or reads it.

A `.uniphase` file is a safetensors file whose tensors are named `layers.0.weight`, `layers.0.bias` and so on, and whose
metadata hold one JSON text under the key `uniphase`. It needs nothing but safetensors and JSON to be read elsewhere.
"""

import dataclasses
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save

from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments
from ..signals.fields import Align, Extent, Field, Grid, Medium
from ..signals.metrics import Metrics
from ..signals.paths import FilePath, atomic_path, reading

# Goes up when an older version would misread the file.
FORMAT = 1

# The metadata's key, and what is said of a file that is not one: what it should be, and the fix.
_KEY, _NETWORK = "uniphase", ("a uniphase network", "get a whole copy, or save the network again")

Network = TypeVar("Network")


@dataclass(frozen=True)
class Domain:
    """Where a field was sampled.

    **Arguments:**

    - `shape`: the number of samples along each axis; `None` for scattered points.
    - `extents`, `align`: as for `Grid`. Scattered points have their bounding box, ends included.
    """

    shape: tuple[int, ...] | None
    extents: tuple[Extent, ...]
    align: Align

    @staticmethod
    def of(field: Field) -> "Domain":
        """The domain of a field."""
        if isinstance(field, Grid):
            return Domain(field.shape, field.extents, field.align)
        low, high = field.positions.min(axis=0).tolist(), field.positions.max(axis=0).tolist()
        return Domain(None, tuple(zip(low, high, strict=True)), "corners")


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("uniphase", "numpy")} | {"python": platform.python_version()}


@dataclass(frozen=True, eq=False)
class Saved(Generic[Network]):
    """A network with all that is needed to use it: what a `.uniphase` file holds.

    **Arguments:**

    - `network`, `blueprint`: the network, of any framework, and what it was drawn from.
    - `domain`: where the field was sampled that it stands for.
    - `medium`, `rate`, `value_range`: of the field, as for `Grid`.
    - `moments`: of the field, if they were estimated.
    - `metrics`: the numbers of `Metrics.to_dict()`.
    - `training`: how it was fitted (optimizer, steps, seconds, seed): anything that JSON can hold.
    - `versions`: of the packages that wrote the file.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        saved = Saved.of(CoordinateMLP(blueprint, key=jax.random.key(0)), blueprint, field)
        saved.domain.shape  # field.shape
        ```
    """

    network: Network
    blueprint: Blueprint
    domain: Domain
    medium: Medium | None
    rate: float | None
    value_range: Extent
    moments: Moments | None = None
    metrics: Mapping[str, Any] | None = None
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=_versions)

    @staticmethod
    def of(
        network: Network,
        blueprint: Blueprint,
        field: Field,
        *,
        moments: Moments | None = None,
        metrics: Metrics | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> "Saved[Network]":
        """A network that stands for `field`."""
        medium, rate = (field.medium, field.rate) if isinstance(field, Grid) else (None, None)
        numbers = None if metrics is None else metrics.to_dict()
        return Saved(
            network, blueprint, Domain.of(field), medium, rate, field.value_range, moments, numbers, training or {}
        )


_HEADER_KEYS = [field.name for field in dataclasses.fields(Saved) if field.name != "network"]


def write_network(path: FilePath, saved: Saved[Any], tensors: Mapping[str, np.ndarray], framework: str) -> None:
    """Write a network whose arrays are `tensors`, whole or not at all.

    **Arguments:**

    - `path`: where to.
    - `saved`: all that is known of the network.
    - `tensors`: its arrays, named by their place.
    - `framework`: the package that made them, whose version goes into the file.
    """
    if {name: tensor.shape for name, tensor in tensors.items()} != tensor_shapes(saved.blueprint):
        raise ValueError(f"{path}: the network does not follow the blueprint; pass the one that it was drawn from")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{path}: the network has NaN or infinite numbers in {name}; save it before it diverges")
    header = {"format": FORMAT} | {key: getattr(saved, key) for key in _HEADER_KEYS}
    header["blueprint"] = saved.blueprint.to_dict()
    header["domain"] = dataclasses.asdict(saved.domain)
    header["moments"] = None if saved.moments is None else dataclasses.asdict(saved.moments)
    header["versions"] = {**saved.versions, framework: version(framework)}
    write_tensors(path, tensors, _KEY, header)


def read_network(path: FilePath, build: Callable[[Blueprint, dict[str, np.ndarray]], Network]) -> Saved[Network]:
    """Read a network, which `build` makes of the blueprint and of arrays that were checked against it."""
    header = read_header(path)
    with reading(path, *_NETWORK):
        if missing := [key for key in _HEADER_KEYS if key not in header]:
            raise ValueError(f"its header has no {', '.join(missing)}")
        entries = {key: header[key] for key in _HEADER_KEYS}
        entries["blueprint"] = Blueprint.from_dict(header["blueprint"])
        entries["domain"] = _domain(**header["domain"])
        entries["value_range"] = tuple(header["value_range"])
        entries["moments"] = None if header["moments"] is None else _moments(**header["moments"])
        tensors = load_file(path)
        _require_tensors(tensors, entries["blueprint"])
        return Saved(build(entries["blueprint"], tensors), **entries)


def read_header(path: FilePath) -> dict[str, Any]:
    """The header of a `.uniphase` file, without its tensors.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        network = CoordinateMLP(blueprint, key=jax.random.key(0))
        save_network("camera.uniphase", Saved.of(network, blueprint, field))
        read_header("camera.uniphase")["domain"]  # {"shape": [16, 16], "extents": [[-1.0, 1.0], [-1.0, 1.0]], ...}
        ```
    """
    with reading(path, *_NETWORK):
        header = read_metadata(path, _KEY)
        if not isinstance(header.get("format"), int):
            raise ValueError("its header has no format")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path}: its format is {header['format']}, but this version reads up to {FORMAT}; upgrade uniphase"
        )
    return header


def tensor_shapes(blueprint: Blueprint) -> dict[str, tuple[int, ...]]:
    """The shape of every array of a network, by its name."""
    shapes: dict[str, tuple[int, ...]] = {}
    for i, plan in enumerate(blueprint.layers):
        shapes[f"layers.{i}.weight"] = (plan.rows, plan.columns)
        if plan.bias is not None:
            shapes[f"layers.{i}.bias"] = (plan.rows,)
    return shapes


def write_tensors(path: FilePath, tensors: Mapping[str, np.ndarray], key: str, header: Mapping[str, Any]) -> None:
    """Write a safetensors file with a JSON header under `key` of its metadata, whole or not at all."""
    try:
        text = json.dumps(header, allow_nan=False, default=lambda value: value.tolist())  # NumPy's numbers and arrays
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: the header does not fit JSON ({error}); use texts, finite numbers and lists"
        ) from error
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(dict(tensors), {key: text}))


def read_metadata(path: FilePath, key: str) -> dict[str, Any]:
    """The JSON header that `write_tensors` wrote."""
    with safe_open(path, "numpy") as file:
        metadata = file.metadata() or {}
    if key not in metadata:
        raise ValueError(f"its metadata have no {key}")
    return json.loads(metadata[key])


def _require_tensors(tensors: Mapping[str, np.ndarray], blueprint: Blueprint) -> None:
    expected = tensor_shapes(blueprint)
    for name in expected | dict(tensors):
        shape = tensors[name].shape if name in tensors else None
        if shape != expected.get(name):
            raise ValueError(f"its tensor {name} has the shape {shape}, but the blueprint says {expected.get(name)}")
        if tensors[name].dtype.kind in "biuc" or not np.isfinite(tensors[name]).all():
            raise ValueError(f"its tensor {name} does not hold finite numbers")


def _domain(shape: list[int] | None, extents: list[list[float]], align: Align) -> Domain:
    return Domain(None if shape is None else tuple(shape), tuple((low, high) for low, high in extents), align)


def _moments(mean: list, covariance: list, structure_tensor: list, epsilon: float) -> Moments:
    return Moments(np.array(mean), np.array(covariance), np.array(structure_tensor), epsilon)
