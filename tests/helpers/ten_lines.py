"""A network without this package: what the documentation shows, and a test runs."""

TEN_LINES = """
import json
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

tensors = load_file("field.uniphase")
header = json.loads(safe_open("field.uniphase", "numpy").metadata()["uniphase"])
for i, layer in enumerate(header["blueprint"]["layers"]):
    x = layer["omega"] * (x @ tensors[f"layers.{i}.weight"].T + tensors.get(f"layers.{i}.bias", 0))
    x = np.sin(x) if layer["activation"] == "sine" else x
"""
