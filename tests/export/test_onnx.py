import json

import jax.numpy as jnp
import numpy as np
import pytest

from helpers.small import save_drawn
from uniphase.export.targets import export_network
from uniphase.initialization.schemes import SCHEMES
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid

onnx = pytest.importorskip("onnx", reason="the extra export is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_onnxruntime_agrees(scheme):
    """All activations and ω, for any number of positions."""
    field = load("coffee", size=16)
    network = save_drawn("a.uniphase", field, scheme=scheme, width=16)
    export_network("a.uniphase", "a.onnx")
    session = runtime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"])
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape, given.type) == ("positions", ["batch", 2], "tensor(float)")
    assert (made.name, made.shape, made.type) == ("channels", ["batch", 3], "tensor(float)")
    for count in (1, 100):
        positions = np.random.default_rng(0).uniform(-1, 1, (count, 2)).astype(np.float32)
        (found,) = session.run(None, {"positions": positions})
        exact = np.asarray(network(jnp.asarray(positions)))
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)  # phases are rounded to float32 in both


def test_the_model_says_where_the_field_lies():
    save_drawn("a.uniphase", Grid(np.random.default_rng(0).normal(size=(6, 8, 1)), extents=((0.0, 3.0), (-1.0, 1.0))))
    export_network("a.uniphase", "a.onnx")
    model = onnx.load("a.onnx")
    notes = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert (notes["shape"], notes["extents"], notes["align"]) == ([6, 8], [[0.0, 3.0], [-1.0, 1.0]], "centers")
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 13)]
    assert model.graph.name == "a"
