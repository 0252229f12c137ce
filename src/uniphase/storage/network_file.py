"""Network files: the format `.uniphase`, for all frameworks.

A `.uniphase` file is a safetensors file whose tensors are named `layers.0.weight`, `layers.0.bias` and so on, and whose
metadata hold one JSON string under the key `uniphase`. Other programs can read it with safetensors and JSON alone.
If its `bits` are 8 or 16, hidden matrices are integers, whose rows `layers.1.weight.scales` and so on multiply.
"""

import dataclasses
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save

from ..initialization.blueprint import Blueprint
from ..initialization.moments import Moments
from ..signals.fields import Align, Extent, Field, Grid, Medium, Sampling
from ..signals.metrics import Metrics
from ..signals.paths import FilePath, atomic_path, reading
from .entries import as_extent, require_kinds
from .quantization import dequantize_tensors, quantize_tensors
from .structure import read_structure, zeros

# Increased when older versions would misread the file. What they can ignore, such as a new key, needs no increase.
# Format 2 is quantized; a file that is not is still written in format 1, which all versions read.
FORMAT = 2

NOT_THE_BLUEPRINT = "the network does not match the blueprint; pass the right one, or leave it out"

# The metadata's key; for errors, what the file should have been, and the fix.
_KEY, _NETWORK = "uniphase", ("a uniphase network", "get a whole copy, or save the network again")

Network = TypeVar("Network")


@dataclass(frozen=True)
class Domain:
    """Where a field was sampled.

    **Arguments:**

    - `shape`: the number of samples along each axis; `None` for scattered points.
    - `extents`, `align`: as for `Grid`. Scattered points have their bounding box, ends included.
    - `sampling`: as what the samples were fitted: values at points, or averages over cells.
    """

    shape: tuple[int, ...] | None
    extents: tuple[Extent, ...]
    align: Align
    sampling: Sampling = "points"

    @staticmethod
    def of(field: Field, sampling: Sampling = "points") -> "Domain":
        """The domain of a field that was fitted as `sampling` says."""
        if isinstance(field, Grid):
            return Domain(field.shape, field.extents, field.align, sampling)
        low, high = field.positions.min(axis=0).tolist(), field.positions.max(axis=0).tolist()
        return Domain(None, tuple(zip(low, high, strict=True)), "corners")

    def samples_within(self, region: Sequence[Extent]) -> tuple[float, ...]:
        """How many samples of a grid lie within an interval along each axis."""
        assert self.shape is not None
        whole, part = (np.ptp(np.asarray(intervals, np.float64), axis=1) for intervals in (self.extents, region))
        return tuple((np.asarray(self.shape) * part / whole).tolist())


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("uniphase", "numpy")} | {"python": platform.python_version()}


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkFile(Generic[Network]):
    """What a `.uniphase` file holds: a network with all that is needed to use it.

    **Arguments:**

    - `network`: of any framework.
    - `blueprint`: its layers, and the distributions that they were drawn from as far as these are known.
    - `domain`: where the field was sampled that the network represents.
    - `medium`, `rate`, `stored`, `value_range`: of the field, as for `Grid`.
    - `moments`: of the field, if they were estimated.
    - `metrics`: the numbers of `Metrics.to_dict()`.
    - `training`: how it was fitted (optimizer, steps, seconds, seed): anything that JSON can hold.
    - `versions`: of the packages that wrote the file.
    - `bits`: of each number in the hidden matrices, 8 or 16, as integers with one scale for each row, which become
        floats again when the file is read. Default: all numbers as they are.

    !!! example
        ```python
        file = NetworkFile.of(network, field)
        file.domain.shape  # field.shape
        ```
    """

    network: Network
    blueprint: Blueprint
    domain: Domain
    medium: Medium | None = None
    rate: float | None = None
    stored: str | None = None
    value_range: Extent
    moments: Moments | None = None
    metrics: Mapping[str, Any] | None = None
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=_versions)
    bits: int | None = None

    @staticmethod
    def of(
        network: Network,
        field: Field,
        *,
        blueprint: Blueprint | None = None,
        moments: Moments | None = None,
        metrics: Metrics | None = None,
        training: Mapping[str, Any] | None = None,
        sampling: Sampling = "points",
        bits: int | None = None,
    ) -> "NetworkFile[Network]":
        """The file of a network that represents `field`.

        **Arguments:**

        - `network`: a `CoordinateMLP` of either framework.
        - `field`: what it was fitted to.
        - `blueprint`: what it was drawn from. Default: its layers as they are, with all distributions `Given`.
        - `moments`, `metrics`, `training`: as for `NetworkFile`.
        - `sampling`: as what the samples of the field were fitted.
        - `bits`: as for `NetworkFile`.

        !!! example
            ```python
            file = NetworkFile.of(network, field, training={"seed": 0})
            small = NetworkFile.of(network, field, bits=8)
            ```
        """
        grid = {key: getattr(field, key) for key in ("medium", "rate", "stored")} if isinstance(field, Grid) else {}
        return NetworkFile(
            network=network,
            blueprint=read_structure(network) if blueprint is None else blueprint,
            domain=Domain.of(field, sampling),
            value_range=field.value_range,
            moments=moments,
            metrics=None if metrics is None else metrics.to_dict(),
            training=training or {},
            bits=bits,
            **grid,
        )


_HEADER_KEYS = [field.name for field in dataclasses.fields(NetworkFile) if field.name != "network"]
_REQUIRED_KEYS = ("blueprint", "domain", "value_range")


def write_network(path: FilePath, file: NetworkFile[Any], tensors: Mapping[str, np.ndarray], framework: str) -> None:
    """Write a network whose arrays are `tensors`, whole or not at all.

    **Arguments:**

    - `path`: where to.
    - `file`: all that is known of the network.
    - `tensors`: its arrays, by their names in the file.
    - `framework`: the package that made them, whose version goes into the file.
    """
    content = network_bytes(path, file, tensors, framework)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def network_bytes(path: FilePath, file: NetworkFile[Any], tensors: Mapping[str, np.ndarray], framework: str) -> bytes:
    """The content of the file that `write_network` would write to `path`, which errors name."""
    if {name: tensor.shape for name, tensor in tensors.items()} != tensor_shapes(file.blueprint):
        raise ValueError(f"{path}: {NOT_THE_BLUEPRINT}")
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{path}: the network has NaN or infinite numbers in {name}; save it before it diverges")
    header = {"format": 1 if file.bits is None else FORMAT} | {key: getattr(file, key) for key in _HEADER_KEYS}
    header["blueprint"] = file.blueprint.to_dict()
    header["domain"] = dataclasses.asdict(file.domain)
    header["moments"] = None if file.moments is None else dataclasses.asdict(file.moments)
    header["versions"] = {**file.versions, framework: version(framework)}
    return _tensor_bytes(path, quantize_tensors(tensors, file.blueprint, file.bits), _KEY, header)


def read_network(path: FilePath, build: Callable[[Blueprint, dict[str, np.ndarray]], Network]) -> NetworkFile[Network]:
    """Read a network.

    Keys of the header that this version does not know are ignored, and missing ones that are optional take their
    defaults.

    **Arguments:**

    - `path`: where from.
    - `build`: makes a network from the blueprint of one whose arrays are all zero, and from the arrays of the file,
        which were checked against the blueprint.
    """
    header = read_header(path)
    with reading(path, *_NETWORK):
        if missing := [key for key in _REQUIRED_KEYS if key not in header]:
            raise ValueError(f"its header has no {', '.join(missing)}")
        require_kinds(header)
        entries: dict[str, Any] = {"versions": {}} | {key: header[key] for key in _HEADER_KEYS if key in header}
        entries["blueprint"] = blueprint = Blueprint.from_dict(header["blueprint"])
        entries["domain"] = _domain(blueprint.in_size, **header["domain"])
        entries["value_range"] = as_extent("value_range", header["value_range"])
        entries["moments"] = None if header.get("moments") is None else _moments(**header["moments"])
        tensors = dequantize_tensors(load_file(path))
        _require_tensors(tensors, entries["blueprint"])
        return NetworkFile(network=build(zeros(entries["blueprint"]), tensors), **entries)


def read_header(path: FilePath) -> dict[str, Any]:
    """The header of a `.uniphase` file, without its tensors.

    !!! example
        ```python
        save_network("camera.uniphase", NetworkFile.of(network, field))
        read_header("camera.uniphase")["domain"]  # {"shape": [16, 16], "extents": [[-1.0, 1.0], [-1.0, 1.0]], ...}
        ```
    """
    with reading(path, *_NETWORK):
        header = read_metadata(path, _KEY)
        if not isinstance(header, dict) or not isinstance(header.get("format"), int):
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
    content = _tensor_bytes(path, tensors, key, header)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def _tensor_bytes(path: FilePath, tensors: Mapping[str, np.ndarray], key: str, header: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(header, allow_nan=False, default=lambda value: value.tolist())  # NumPy's numbers and arrays
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: the header does not fit JSON ({error}); use strings, finite numbers and lists"
        ) from error
    return save(dict(tensors), {key: text})


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


def _domain(
    axes: int,
    *,
    shape: list[int] | None,
    extents: list[list[float]],
    align: Align,
    sampling: Sampling = "points",
    **_: Any,
) -> Domain:
    box = tuple(as_extent("extents", extent) for extent in extents)
    if len(box) != axes or (shape is not None and len(shape) != axes):
        raise ValueError(f"its domain has {len(box)} axes, but the network takes {axes} coordinates")
    if shape is not None and not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(f"the shape of its domain is {shape}")
    if align not in get_args(Align) or sampling not in get_args(Sampling):
        raise ValueError(f"the samples of its domain are {align!r} and {sampling!r}")
    return Domain(None if shape is None else tuple(shape), box, align, sampling)


def _moments(
    mean: list, covariance: list, structure_tensor: list, epsilon: float | list[float] = 0.0, **_: Any
) -> Moments:
    ridge = tuple(map(float, epsilon)) if isinstance(epsilon, list) else float(epsilon)
    first, second, slopes = (np.array(numbers, np.float64) for numbers in (mean, covariance, structure_tensor))
    if (first.ndim, second.ndim, slopes.ndim) != (1, 2, 2):
        raise ValueError(f"its moments have the shapes {first.shape}, {second.shape} and {slopes.shape}")
    return Moments(first, second, slopes, ridge)
