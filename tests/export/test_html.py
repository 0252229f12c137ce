import base64
import hashlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from helpers.small import save_drawn
from uniphase.export.html import make_page, original_png
from uniphase.export.networks import read_tensors
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid


def page_of(field, title: str = "a", **options) -> str:
    save_drawn("a.uniphase", field)
    return make_page(title, read_tensors("a.uniphase"), Path("a.uniphase").read_bytes(), **options)


def test_the_page_carries_the_file():
    page = page_of(load("camera", size=16))
    (text,) = re.findall(r'<script type="text/plain" id="network">(.*?)</script>', page)
    assert base64.b64decode(text) == Path("a.uniphase").read_bytes()


def test_the_policy_allows_its_own_script_and_style_and_nothing_else():
    page = page_of(load("camera", size=16))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_names_are_escaped():
    page = page_of(load("camera", size=16), title="<script>alert(1)</script>")
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>" in page
    assert "<script>alert" not in page


def test_the_original_as_it_was_fitted():
    pixels = np.random.default_rng(0).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save("photo.png")
    save_drawn("a.uniphase", load("photo.png"))
    found = Image.open(io.BytesIO(original_png("photo.png", read_tensors("a.uniphase"))))
    np.testing.assert_array_equal(np.asarray(found), pixels)
    save_drawn("a.uniphase", load("photo.png", size=16, space="gray"))
    found = Image.open(io.BytesIO(original_png("photo.png", read_tensors("a.uniphase"))))
    assert (found.size, found.mode) == ((16, 12), "L")


def test_another_image_is_no_original():
    Image.new("RGB", (10, 40)).save("other.png")
    save_drawn("a.uniphase", load("camera", size=16))
    with pytest.raises(ValueError, match=r"^other.png: not the image that was fitted, which has 16 × 16 pixels; pass"):
        original_png("other.png", read_tensors("a.uniphase"))
    save_drawn("a.uniphase", Grid(np.random.default_rng(0).normal(size=(8, 8, 2))))
    with pytest.raises(ValueError, match=r"^other.png: only an image has an original to show"):
        original_png("other.png", read_tensors("a.uniphase"))
