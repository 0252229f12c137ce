"""The format alone, with dicts of NumPy arrays for networks; test_checkpoints has what JAX makes of it."""

import numpy as np
import pytest

from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import sm20, uniform_phase
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import FORMAT, Saved, read_header, read_network, tensor_shapes, write_network

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)), extents=((0.0, 0.6), (-1.0, 1.0)), align="corners")
BLUEPRINT = sm20((2, 3), width=8, depth=1)


def tensors(**changes: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape) for name, shape in tensor_shapes(BLUEPRINT).items()} | changes


def test_the_header_alone(tmp_path):
    write_network(tmp_path / "a.uniphase", Saved.of(None, BLUEPRINT, FIELD), tensors(), "torch")
    header = read_header(tmp_path / "a.uniphase")
    keys = "format blueprint domain medium rate value_range moments metrics training versions"
    assert list(header) == keys.split()
    assert header["format"] == FORMAT == 1
    assert header["domain"] == {"shape": [6, 8], "extents": [[0.0, 0.6], [-1.0, 1.0]], "align": "corners"}
    assert set(header["versions"]) == {"uniphase", "numpy", "python", "torch"}


def test_arrays_come_back_in_their_type(tmp_path):
    for dtype in (np.float16, np.float32, np.float64):
        arrays = {name: tensor.astype(dtype) for name, tensor in tensors().items()}
        write_network(tmp_path / "a.uniphase", Saved.of(None, BLUEPRINT, FIELD), arrays, "numpy")
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
        ({"layers.2.bias": np.zeros(3)}, "the network does not follow the blueprint; pass the one that it was drawn"),
        ({"layers.1.bias": np.full(8, np.inf)}, "the network has NaN or infinite numbers in layers.1.bias; save it"),
    ],
)
def test_what_is_not_written(changes, message, tmp_path):
    with pytest.raises(ValueError, match=f"a.uniphase: {message}"):
        write_network(tmp_path / "a.uniphase", Saved.of(None, BLUEPRINT, FIELD), tensors(**changes), "numpy")
    assert list(tmp_path.iterdir()) == []


def test_what_the_reader_of_a_framework_refuses_is_told_with_the_path(tmp_path):
    def refuse(blueprint, tensors):
        raise ValueError("no such precision")

    write_network(tmp_path / "a.uniphase", Saved.of(None, BLUEPRINT, FIELD), tensors(), "numpy")
    with pytest.raises(ValueError, match=r"a.uniphase: cannot be read as a uniphase network \(no such precision\)"):
        read_network(tmp_path / "a.uniphase", refuse)


def test_moments_come_back(tmp_path):
    moments = prescribe_moments(mean=[0.0, 1.0, 2.0], length_scale=[0.1, 0.3])
    blueprint = uniform_phase(moments, width=8, depth=1)
    arrays = {name: np.zeros(shape) for name, shape in tensor_shapes(blueprint).items()}
    write_network(tmp_path / "a.uniphase", Saved.of(None, blueprint, FIELD, moments=moments), arrays, "numpy")
    back = read_network(tmp_path / "a.uniphase", lambda blueprint, arrays: arrays).moments
    np.testing.assert_array_equal(back.structure_tensor, moments.structure_tensor)
    np.testing.assert_array_equal(back.mean, moments.mean)
