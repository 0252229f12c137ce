"""The page: one HTML file that carries a network and shows it, offline and without a server."""

import base64
import hashlib
import html
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..signals.datasets import load
from ..signals.fields import Grid
from ..signals.images import as_pixels
from ..storage.network_file import NetworkFile
from .bundle import bundle, read_asset

_MOST_COORDINATES = 3


def require_page(path: Path, file: NetworkFile[Any]) -> None:
    """Raise an error if a field has too many coordinates for a page."""
    axes = len(file.domain.extents)
    if axes > _MOST_COORDINATES:
        raise ValueError(
            f"{path}: a page shows up to {_MOST_COORDINATES} coordinates, but the network has {axes}; "
            "write .onnx, .py or .npy"
        )


def make_page(title: str, file: NetworkFile[Any], network: bytes, original: bytes | None = None) -> str:
    """The page of a network.

    **Arguments:**

    - `title`: its heading, any text.
    - `file`: what the network's file says.
    - `network`: the content of that file, which the page carries.
    - `original`: the pixels of the fitted image as a PNG, shown beside the network on request. Default: the page takes
        what the network gives for each pixel.
    """
    script, style = bundle("main"), read_asset("page.css")
    entries = {
        "title": html.escape(title),
        "summary": html.escape(_summary(file)),
        "laws": html.escape(str(file.blueprint)),
        "policy": _policy(script, style),
        "style": style,
        "network": base64.b64encode(network).decode(),
        "original": "" if original is None else _data_block("original", base64.b64encode(original).decode()),
        "worker": bundle("worker"),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: entries[found[1]], read_asset("page.html"))


def original_png(path: str, file: NetworkFile[Any]) -> bytes:
    """The pixels of the image that a network was fitted to, as a PNG of the size that was fitted.

    **Arguments:**

    - `path`: of the image.
    - `file`: what the network's file says.
    """
    shape, medium = file.domain.shape, file.medium
    if shape is None or len(shape) != 2 or medium not in ("gray", "rgb", "lab"):
        raise ValueError(f"{path}: only an image has an original to show, which the network is not; leave it out")
    field = load(path, space=medium)
    if field.samples != shape[0] * shape[1]:
        field = load(path, space=medium, size=max(shape))
    if not isinstance(field, Grid) or field.shape != shape:
        size = " × ".join(map(str, reversed(shape)))
        raise ValueError(f"{path}: not the image that was fitted, which has {size} pixels; pass that one")
    pixels = as_pixels(np.nan_to_num(field.values), medium, file.value_range)
    stream = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(stream, "PNG")
    return stream.getvalue()


def _summary(file: NetworkFile[Any]) -> str:
    return f"A neural network of {file.blueprint.parameters:,} numbers, which this page evaluates in the browser."


def _policy(script: str, style: str) -> str:
    """Nothing may be loaded from anywhere; what may run are this script, and the workers that it makes."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    allowed = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest(script)}'",
        "style-src": f"'sha256-{digest(style)}'",
        "worker-src": "blob:",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {source}" for name, source in allowed.items())


def _data_block(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>'
