import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from uniphase.initialization.schemes import sm20
from uniphase.signals.fields import Grid
from uniphase.storage.network_file import NetworkFile, read_header, read_network, tensor_shapes, write_network
from uniphase.storage.quantization import dequantize, quantize

FIELD = Grid(np.random.default_rng(0).uniform(size=(6, 8, 3)))
BLUEPRINT = sm20((2, 3), width=64, depth=2)


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in tensor_shapes(BLUEPRINT).items()}


def write(path, bits, arrays=None):
    file = NetworkFile.of(None, FIELD, blueprint=BLUEPRINT, bits=bits)
    write_network(path, file, arrays or tensors(), "numpy")
    return read_network(path, lambda _, arrays: arrays)


@pytest.mark.parametrize("bits", [8, 16])
def test_every_entry_is_within_half_a_scale(bits):
    weight = np.random.default_rng(0).normal(size=(20, 30)) * np.logspace(-6, 6, 20)[:, None]
    integers, scales = quantize(weight, bits)
    assert integers.dtype == f"int{bits}"
    np.testing.assert_array_equal(np.abs(integers).max(axis=1), 2 ** (bits - 1) - 1)
    error = np.abs(dequantize(integers, scales) - weight) / scales[:, None]
    assert error.max() < 0.5 + 2**-8  # products in float32, of up to 15 bits
    assert error.max() > 0.4
    again = quantize(dequantize(integers, scales), bits)[0]
    np.testing.assert_array_equal(again, integers)


def test_a_row_of_zeros_stays():
    np.testing.assert_array_equal(dequantize(*quantize(np.zeros((2, 3)), 8)), np.zeros((2, 3)))


@pytest.mark.parametrize("bits", [8, 16])
def test_only_hidden_matrices_are_quantized(bits, tmp_path):
    path, exact = tmp_path / "a.uniphase", tensors()
    back = write(path, bits)
    assert (back.bits, read_header(path)["format"]) == (bits, 2)
    stored = load_file(path)
    integers = {name for name, tensor in stored.items() if tensor.dtype == f"int{bits}"}
    assert integers == {"layers.1.weight", "layers.2.weight"}
    for name, tensor in back.network.items():
        assert tensor.dtype == np.float32
        if name in integers:
            np.testing.assert_array_equal(tensor, dequantize(*quantize(exact[name], bits)))
        else:
            np.testing.assert_array_equal(tensor, exact[name])


def test_smaller_files(tmp_path):
    for bits in (None, 16, 8):
        write(tmp_path / f"{bits}.uniphase", bits)
    whole, half, quarter = (load_file(tmp_path / f"{bits}.uniphase") for bits in (None, 16, 8))
    sizes = [sum(tensor.nbytes for tensor in part.values()) for part in (whole, half, quarter)]
    hidden = 2 * 64 * 64  # numbers, of which every row of 64 gets a scale of 4 bytes
    assert sizes == [sizes[0], sizes[0] - 2 * hidden + 4 * 2 * 64, sizes[0] - 3 * hidden + 4 * 2 * 64]


@pytest.mark.parametrize("kind", ["float16", "float64"])
def test_all_tensors_come_back_in_one_type(kind, tmp_path):
    back = write(tmp_path / "a.uniphase", 16, {name: tensor.astype(kind) for name, tensor in tensors().items()})
    assert {tensor.dtype.name for tensor in back.network.values()} == {kind}


def test_a_quantized_file_that_is_saved_again_stays_the_same(tmp_path):
    once = write(tmp_path / "a.uniphase", 8)
    twice = write(tmp_path / "b.uniphase", once.bits, once.network)
    for name, tensor in once.network.items():
        np.testing.assert_allclose(twice.network[name], tensor, rtol=2**-22)  # the scale is rounded once more


def test_other_numbers_of_bits_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^bits is 4; it must be 8 or 16, or left out for weights as they are$"):
        write(tmp_path / "a.uniphase", 4)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("layers.1.weight.scales", np.ones(3, np.float32), "its tensor layers.1.weight.scales does not belong to a"),
        ("layers.9.weight.scales", np.ones(3, np.float32), "its tensor layers.9.weight.scales does not belong to a"),
        ("layers.0.weight.scales", np.ones(64, np.float32), "its tensor layers.0.weight.scales does not belong to a"),
        ("layers.1.weight.scales", np.full(64, np.nan, np.float32), "its tensor layers.1.weight does not hold finite"),
    ],
)
def test_damaged_scales_are_told_in_one_line(name, value, message, tmp_path):
    path = tmp_path / "a.uniphase"
    write(path, 8)
    header = json.dumps(read_header(path))
    save_file(load_file(path) | {name: value}, path, {"uniphase": header})
    with pytest.raises(ValueError, match=rf"a.uniphase: cannot be read as a uniphase network \({re.escape(message)}"):
        read_network(path, lambda _, arrays: arrays)
