"""The format alone, with dicts of NumPy arrays for networks; test_files of each framework has what it makes of it."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from uniphase.initialization.distributions import Constant
from uniphase.initialization.moments import estimate_moments, prescribe_moments
from uniphase.initialization.schemes import sm20, uniform_phase
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import (
    FORMAT,
    Domain,
    NetworkFile,
    read_header,
    read_network,
    tensor_shapes,
    write_network,
)
from uniphase.storage.structure import zeros

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)), extents=((0.0, 0.6), (-1.0, 1.0)), align="corners")
BLUEPRINT = sm20((2, 3), width=8, depth=1)


def tensors(**changes: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape) for name, shape in tensor_shapes(BLUEPRINT).items()} | changes


def test_the_header_alone(tmp_path):
    write_network(tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=BLUEPRINT), tensors(), "torch")
    header = read_header(tmp_path / "a.uniphase")
    keys = "format blueprint domain medium rate stored value_range moments metrics training versions"
    assert list(header) == keys.split()
    assert header["format"] == FORMAT == 1
    place = {"shape": [6, 8], "extents": [[0.0, 0.6], [-1.0, 1.0]], "align": "corners"}
    assert header["domain"] == {**place, "sampling": "points"}
    assert set(header["versions"]) == {"uniphase", "numpy", "python", "torch"}


def test_arrays_come_back_in_their_type(tmp_path):
    for dtype in (np.float16, np.float32, np.float64):
        arrays = {name: tensor.astype(dtype) for name, tensor in tensors().items()}
        write_network(tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=BLUEPRINT), arrays, "numpy")
        back = read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: arrays)
        assert back.blueprint == BLUEPRINT
        assert list(back.network) == sorted(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(back.network[name], array, strict=True)


def test_a_layer_without_bias_has_no_tensor_for_it():
    assert tensor_shapes(BLUEPRINT) == {
        **{"layers.0.weight": (8, 2), "layers.0.bias": (8,)},
        **{"layers.1.weight": (8, 8), "layers.1.bias": (8,)},
        **{"layers.2.weight": (3, 8)},
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers.2.bias": np.zeros(3)}, "the network does not match the blueprint; pass the right one, or leave it"),
        ({"layers.1.bias": np.full(8, np.inf)}, "the network has NaN or infinite numbers in layers.1.bias; save it"),
    ],
)
def test_what_is_not_written(changes, message, tmp_path):
    with pytest.raises(ValueError, match=f"a.uniphase: {message}"):
        write_network(
            tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=BLUEPRINT), tensors(**changes), "numpy"
        )
    assert list(tmp_path.iterdir()) == []


def test_what_the_reader_of_a_framework_refuses_is_told_with_the_path(tmp_path):
    def refuse(blueprint, tensors):
        raise ValueError("no such precision")

    write_network(tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=BLUEPRINT), tensors(), "numpy")
    with pytest.raises(ValueError, match=r"a.uniphase: cannot be read as a uniphase network \(no such precision\)"):
        read_network(tmp_path / "a.uniphase", refuse)


def test_moments_come_back(tmp_path):
    moments = prescribe_moments(mean=[0.0, 1.0, 2.0], length_scale=[0.1, 0.3])
    blueprint = uniform_phase(moments, width=8, depth=1)
    arrays = {name: np.zeros(shape) for name, shape in tensor_shapes(blueprint).items()}
    write_network(
        tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=blueprint, moments=moments), arrays, "numpy"
    )
    back = read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: arrays).moments
    np.testing.assert_array_equal(back.structure_tensor, moments.structure_tensor)
    np.testing.assert_array_equal(back.mean, moments.mean)


def rewrite(path, change) -> None:
    """Change the header of a file, as another version of this package would have written it."""
    header = read_header(path)
    change(header)
    save_file(load_file(path), path, {"uniphase": json.dumps(header)})


def test_keys_of_a_later_version_are_ignored_at_every_level(tmp_path):
    path, moments = tmp_path / "a.uniphase", prescribe_moments(mean=[0.0, 1.0, 2.0], length_scale=[0.1, 0.3])
    file = NetworkFile.of(None, FIELD, blueprint=BLUEPRINT, moments=moments)
    write_network(path, file, tensors(), "numpy")

    def add_keys(header):
        layer = header["blueprint"]["layers"][0]
        for entries in (header, header["blueprint"], layer, layer["weight"], header["domain"], header["moments"]):
            entries["unknown"] = {"nested": [1, 2, 3]}

    rewrite(path, add_keys)
    back = read_network(path, lambda blueprint, arrays: arrays)
    assert back.blueprint == BLUEPRINT
    assert back.domain == file.domain
    np.testing.assert_array_equal(back.moments.mean, moments.mean)
    np.testing.assert_array_equal(back.network["layers.0.weight"], tensors()["layers.0.weight"])


def test_optional_keys_may_be_missing_at_every_level(tmp_path):
    path, moments = tmp_path / "a.uniphase", prescribe_moments(mean=[0.0, 1.0, 2.0], length_scale=[0.1, 0.3])
    blueprint = uniform_phase(moments, width=8, depth=1)
    arrays = {name: np.zeros(shape) for name, shape in tensor_shapes(blueprint).items()}
    write_network(path, NetworkFile.of(None, FIELD, blueprint=blueprint, moments=moments), arrays, "numpy")

    def drop_keys(header):
        for key in ("medium", "rate", "stored", "metrics", "training", "versions"):
            del header[key]
        del header["moments"]["epsilon"]
        for layer in header["blueprint"]["layers"]:
            del layer["omega"], layer["trainable"]

    rewrite(path, drop_keys)
    back = read_network(path, lambda blueprint, arrays: arrays)
    assert (back.medium, back.rate, back.stored, back.metrics, back.training, back.versions) == (*[None] * 4, {}, {})
    assert back.moments.epsilon == 0
    assert back.blueprint == blueprint
    rewrite(path, lambda header: header.pop("moments"))
    assert read_network(path, lambda blueprint, arrays: arrays).moments is None
    rewrite(path, lambda header: [header.pop(key) for key in ("domain", "value_range")])
    with pytest.raises(ValueError, match=r"a.uniphase: .*\(its header has no domain, value_range\)"):
        read_network(path, lambda blueprint, arrays: arrays)


def test_the_ridge_of_each_channel_comes_back(tmp_path):
    moments = estimate_moments(FIELD)
    file = NetworkFile.of(None, FIELD, blueprint=BLUEPRINT, moments=moments)
    write_network(tmp_path / "a.uniphase", file, tensors(), "numpy")
    back = read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: arrays).moments
    assert back.epsilon == moments.epsilon
    np.testing.assert_array_equal(back.regularized_covariance, moments.regularized_covariance)


@pytest.mark.parametrize("stored", ["uint16", None])
def test_the_type_of_the_source_comes_back(stored, tmp_path):
    field = Grid(FIELD.values, medium="rgb", stored=stored)
    write_network(tmp_path / "a.uniphase", NetworkFile.of(None, field, blueprint=BLUEPRINT), tensors(), "numpy")
    assert read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: arrays).stored == stored


def test_a_reader_gets_a_blueprint_that_needs_no_randomness(tmp_path):
    """So a framework can make a network to fill, even if its distributions are unknown."""
    seen = []
    write_network(tmp_path / "a.uniphase", NetworkFile.of(None, FIELD, blueprint=BLUEPRINT), tensors(), "numpy")
    read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: seen.append(blueprint))
    assert seen == [zeros(BLUEPRINT)]
    assert {plan.weight for plan in seen[0].layers} == {Constant(0.0)}


def test_samples_within_a_part_of_a_domain():
    domain = Domain((8, 6), ((-1.0, 1.0), (0.0, 3.0)), "centers")
    assert domain.samples_within(domain.extents) == (8, 6)
    assert domain.samples_within(((0.0, 0.5), (-1.0, 5.0))) == (2, 12)
