import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.signals.fields import Grid
from uniphase.storage.entries import as_extent, require_kinds
from uniphase.storage.network_file import NetworkFile, network_bytes, read_network, tensor_shapes

FIELD = Grid(np.random.default_rng(0).uniform(size=(4, 5, 2)))
MOMENTS = estimate_moments(FIELD)
BLUEPRINT = uniform_phase(MOMENTS, width=4, depth=1)
TENSORS = {name: np.ones(shape, np.float32) for name, shape in tensor_shapes(BLUEPRINT).items()}


def header() -> dict:
    file = NetworkFile.of(None, FIELD, blueprint=BLUEPRINT, moments=MOMENTS, training={"test_metrics": {"mse": 0.5}})
    content = network_bytes("a", file, TENSORS, "numpy")
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["uniphase"])


def changed(place: str, value) -> dict:
    """The header with another entry at a place such as `blueprint.layers.0.rows`."""
    whole = entries = header()
    *path, last = place.split(".")
    for key in path:
        entries = entries[int(key) if isinstance(entries, list) else key]
    entries[int(last) if isinstance(entries, list) else last] = value
    return whole


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("medium", 5),
        ("rate", "fast"),
        ("stored", []),
        ("metrics", [1, 2]),
        ("metrics", {"mse": "small"}),
        ("training", None),
        ("training.test_metrics", 7),
        ("training.test_metrics.mse", [0.1]),
        ("versions", 3),
        ("bits", "8"),
        ("value_range", [0, "1"]),
        ("value_range", [1e400, 2]),
        ("value_range", [0, 1, 2]),
        ("domain", []),
        ("domain.shape", ["__import__('os')", 5]),
        ("domain.shape", [4]),
        ("domain.shape", [4, -5]),
        ("domain.extents.0", [1.0, -1.0]),
        ("domain.extents.0.1", "1"),
        ("domain.extents", [[-1, 1]]),
        ("domain.align", "left"),
        ("domain.sampling", None),
        ("moments.mean", "0"),
        ("moments.covariance", 1.0),
        ("moments.epsilon", {}),
        ("blueprint.layers", []),
        ("blueprint.layers.0.rows", 4.0),
        ("blueprint.layers.0.rows", 10**40),
        ("blueprint.layers.0.omega", "1"),
        ("blueprint.layers.0.trainable", "yes"),
        ("blueprint.layers.0.role", {}),
        ("blueprint.layers.0.activation", "print"),
        ("blueprint.layers.0.weight", {"law": "Uniform", "half_width": [1, 2]}),
        ("blueprint.layers.0.weight", {"law": "Constant", "value": "0"}),
    ],
)
def test_an_entry_of_another_kind_is_refused_in_one_line(tmp_path, place, value):
    path = tmp_path / "a.uniphase"
    save_file(TENSORS, path, {"uniphase": json.dumps(changed(place, value))})
    with pytest.raises(ValueError, match=r"a\.uniphase: cannot be read as a uniphase network") as caught:
        read_network(path, lambda *_: None)
    assert "\n" not in str(caught.value)


def test_the_header_as_it_is_passes(tmp_path):
    require_kinds(header())
    save_file(TENSORS, tmp_path / "a.uniphase", {"uniphase": json.dumps(header())})
    assert read_network(tmp_path / "a.uniphase", lambda *_: None).domain.shape == (4, 5)


@pytest.mark.parametrize("text", ["[]", "null", "[" * 100_000])
def test_a_header_that_is_no_mapping(tmp_path, text):
    save_file(TENSORS, tmp_path / "a.uniphase", {"uniphase": text})
    with pytest.raises(ValueError, match="cannot be read as a uniphase network"):
        read_network(tmp_path / "a.uniphase", lambda *_: None)


def test_an_extent_may_be_a_point():
    """As that of scattered points on a line."""
    assert as_extent("extents", [2, 2]) == (2.0, 2.0)
