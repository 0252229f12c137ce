"""Checkpoints: networks and training states as safetensors files with a JSON header.

A `.uniphase` file is a safetensors file whose tensors are named `layers.0.weight`, `layers.0.bias` and so on, and whose
metadata hold one JSON text under the key `uniphase`. It needs nothing but safetensors and JSON to be read elsewhere. A
training state holds the leaves of any pytree in the same way, for a run to be resumed bit by bit.
"""

import dataclasses
import itertools
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from safetensors import safe_open
from safetensors.numpy import load_file, save

from .blueprints import Blueprint
from .fields import Align, Extent, Field, Grid, Medium
from .files import FilePath, atomic_path, reading
from .metrics import Metrics
from .moments import Moments
from .networks import CoordinateMLP

# Goes up when an older version would misread the file.
FORMAT = 1

# The metadata's key, and what is said of a file that is not one: what it should be, and the fix.
_NETWORK_KEY, _NETWORK = "uniphase", ("a uniphase network", "get a whole copy, or save the network again")
_STATE_KEY, _STATE = "uniphase-state", ("a training state", "get a whole copy, or start the run anew")


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
    return {name: version(name) for name in ("uniphase", "jax", "numpy")} | {"python": platform.python_version()}


@dataclass(frozen=True, eq=False)
class Saved:
    """A network with all that is needed to use it: what a `.uniphase` file holds.

    **Arguments:**

    - `network`, `blueprint`: the network, and what it was drawn from.
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

    network: CoordinateMLP
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
        network: CoordinateMLP,
        blueprint: Blueprint,
        field: Field,
        *,
        moments: Moments | None = None,
        metrics: Metrics | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> "Saved":
        """A network that stands for `field`."""
        medium, rate = (field.medium, field.rate) if isinstance(field, Grid) else (None, None)
        numbers = None if metrics is None else metrics.to_dict()
        return Saved(
            network, blueprint, Domain.of(field), medium, rate, field.value_range, moments, numbers, training or {}
        )


_HEADER_KEYS = [field.name for field in dataclasses.fields(Saved) if field.name != "network"]


def save_network(path: FilePath, saved: Saved) -> None:
    """Write a network to a `.uniphase` file, whole or not at all.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        network = CoordinateMLP(blueprint, key=jax.random.key(0))
        save_network("camera.uniphase", Saved.of(network, blueprint, field, training={"seed": 0}))
        ```
    """
    network, skeleton = saved.network, _skeleton(saved.blueprint)
    if jax.tree.structure(network) != jax.tree.structure(skeleton) or _shapes(network) != _shapes(skeleton):
        raise ValueError(f"{path}: the network does not follow the blueprint; pass the one that it was drawn from")
    tensors = {name: np.asarray(leaf, order="C") for name, leaf in _named_leaves(network).items()}
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{path}: the network has NaN or infinite numbers in {name}; save it before it diverges")
    header = {"format": FORMAT} | {key: getattr(saved, key) for key in _HEADER_KEYS}
    header["blueprint"] = saved.blueprint.to_dict()
    header["domain"] = dataclasses.asdict(saved.domain)
    header["moments"] = None if saved.moments is None else dataclasses.asdict(saved.moments)
    _write(path, tensors, _NETWORK_KEY, header)


def load_network(path: FilePath) -> Saved:
    """Read a network from a `.uniphase` file.

    !!! example
        ```python
        blueprint = uniform_phase(estimate_moments(field), width=64, depth=2)
        network = CoordinateMLP(blueprint, key=jax.random.key(0))
        save_network("camera.uniphase", Saved.of(network, blueprint, field))
        saved = load_network("camera.uniphase")
        render(saved.network, (64, 64), extents=saved.domain.extents, align=saved.domain.align)
        ```
    """
    header = read_header(path)
    with reading(path, *_NETWORK):
        if missing := [key for key in _HEADER_KEYS if key not in header]:
            raise ValueError(f"its header has no {', '.join(missing)}")
        entries = {key: header[key] for key in _HEADER_KEYS}
        entries["blueprint"] = Blueprint.from_dict(header["blueprint"])
        entries["domain"] = _domain(**header["domain"])
        entries["value_range"] = tuple(header["value_range"])
        entries["moments"] = None if header["moments"] is None else _moments(**header["moments"])
        return Saved(_network(entries["blueprint"], load_file(path)), **entries)


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
        header = _metadata(path, _NETWORK_KEY)
        if not isinstance(header.get("format"), int):
            raise ValueError("its header has no format")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path}: its format is {header['format']}, but this version reads up to {FORMAT}; upgrade uniphase"
        )
    return header


def save_state(path: FilePath, tree: PyTree, header: Mapping[str, Any]) -> None:
    """Write a training state, whole or not at all: every bit of it comes back from `load_state`.

    **Arguments:**

    - `path`: where to.
    - `tree`: a pytree of arrays and random keys, e.g. a network with the state of its optimizer.
    - `header`: anything else, as JSON can hold it.

    !!! example
        ```python
        save_state("run.state", (network, jax.random.key(0)), {"step": 100})
        ```
    """
    leaves = _describe(tree)
    tensors = {str(i): np.asarray(_bits(leaf), order="C") for i, leaf in enumerate(jax.tree.leaves(tree))}
    _write(path, tensors, _STATE_KEY, {"leaves": leaves, "header": header})


def load_state(path: FilePath, like: PyTree) -> tuple[PyTree, dict[str, Any]]:
    """Read a training state that `save_state` wrote.

    **Arguments:**

    - `path`: where from.
    - `like`: a pytree with the structure, shapes and types of the one that was saved, e.g. the state of a fresh start.

    **Returns:**

    The tree and the header.

    !!! example
        ```python
        save_state("run.state", (network, jax.random.key(0)), {"step": 100})
        (network, key), header = load_state("run.state", (network, jax.random.key(1)))
        ```
    """
    expected = _describe(like)
    with reading(path, *_STATE):
        metadata, tensors = _metadata(path, _STATE_KEY), load_file(path)
        stored, header = metadata["leaves"], metadata["header"]
    for ours, theirs in itertools.zip_longest(expected, stored, fillvalue="nothing"):
        if ours != theirs:
            raise ValueError(f"{path}: has {theirs} where like has {ours}; resume with the settings of the saved run")
    leaves = [_from_bits(tensors[str(i)], leaf) for i, leaf in enumerate(jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header


def _write(path: FilePath, tensors: dict[str, np.ndarray], key: str, header: dict[str, Any]) -> None:
    try:
        text = json.dumps(header, allow_nan=False, default=lambda value: value.tolist())  # NumPy's numbers and arrays
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: the header does not fit JSON ({error}); use texts, finite numbers and lists"
        ) from error
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(tensors, {key: text}))


def _metadata(path: FilePath, key: str) -> dict[str, Any]:
    with safe_open(path, "numpy") as file:
        metadata = file.metadata() or {}
    if key not in metadata:
        raise ValueError(f"its metadata have no {key}")
    return json.loads(metadata[key])


def _named_leaves(tree: PyTree) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in jax.tree.leaves_with_path(tree)
    }


def _shapes(network: CoordinateMLP) -> dict[str, tuple[int, ...]]:
    return {name: leaf.shape for name, leaf in _named_leaves(network).items()}


def _skeleton(blueprint: Blueprint) -> CoordinateMLP:
    """A network with shapes in place of arrays."""
    return eqx.filter_eval_shape(CoordinateMLP, blueprint, key=jax.random.key(0))


def _network(blueprint: Blueprint, tensors: dict[str, np.ndarray]) -> CoordinateMLP:
    skeleton = _skeleton(blueprint)
    expected = _shapes(skeleton)
    for name in expected | tensors:
        shape = tensors[name].shape if name in tensors else None
        if shape != expected.get(name):
            raise ValueError(f"its tensor {name} has the shape {shape}, but the blueprint says {expected.get(name)}")
        if not (jnp.issubdtype(tensors[name].dtype, jnp.floating) and np.isfinite(tensors[name]).all()):
            raise ValueError(f"its tensor {name} does not hold finite numbers")
        if jax.dtypes.canonicalize_dtype(tensors[name].dtype) != tensors[name].dtype:
            raise ValueError(f"its tensor {name} is float64, for which jax_enable_x64 must be set")
    return jax.tree.unflatten(jax.tree.structure(skeleton), [jnp.array(tensors[name]) for name in expected])


def _domain(shape: list[int] | None, extents: list[list[float]], align: Align) -> Domain:
    return Domain(None if shape is None else tuple(shape), tuple((low, high) for low, high in extents), align)


def _moments(mean: list, covariance: list, structure_tensor: list, epsilon: float) -> Moments:
    return Moments(np.array(mean), np.array(covariance), np.array(structure_tensor), epsilon)


def _describe(tree: PyTree) -> list[str]:
    """Where every leaf stands and what it is, to tell trees apart."""
    descriptions = []
    for path, leaf in jax.tree.leaves_with_path(tree):
        place = jax.tree_util.keystr(path)
        if not isinstance(leaf, jax.Array | np.ndarray):
            raise ValueError(f"tree has {leaf!r} at {place}; keep only arrays, with equinox.filter(tree, is_array)")
        descriptions.append(f"{leaf.dtype}{list(leaf.shape)} at {place}")
    return descriptions


def _is_key(leaf: jax.Array | np.ndarray) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _bits(leaf: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _from_bits(tensor: np.ndarray, like: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    if isinstance(like, np.ndarray):
        return tensor
    array = jnp.array(tensor)
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(like)) if _is_key(like) else array
