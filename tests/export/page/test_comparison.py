"""The pixels of the original beside the network."""

import numpy as np
import pytest
from PIL import Image

from helpers.pages import ENGINES, SMALL, assert_close, expected, make, photo
from helpers.viewer import choose, pixels, press, region, shown, slide, wait_until_ready


@pytest.mark.parametrize("name", ENGINES)
def test_the_pixels_of_the_original_beside_the_network(name, visit):
    field = photo()
    path, _ = make(field, original="photo.png")
    page = visit(path, hash=ENGINES[name], **SMALL)
    press(page, "1")
    for mode in ("nearest", "bicubic"):
        choose(page, "Compare with", mode)
        wait_until_ready(page, ".overlay")
        found = shown(page, ".overlay", field.shape, field.extents)
        np.testing.assert_array_equal(found, np.asarray(Image.open("photo.png")))
    slide(page, ".split", 25)
    assert page.run('document.querySelector(".overlay").style.clipPath') == "inset(0px 75% 0px 0px)"
    assert page.run('document.querySelector("#stage > .line").style.left') == "25%"
    press(page, "c")  # the next choice is none
    assert page.run('document.querySelector(".overlay").hidden')


def test_without_the_original_its_pixels_are_those_of_the_network(visit):
    field = photo()
    path, network = make(field)
    page = visit(path, **SMALL)
    press(page, "1", "+", "+", "+", "+", "c")
    wait_until_ready(page, ".overlay")
    over = pixels(page, ".overlay")
    blocks = over[over[..., 3] == 255][:, :3]
    wanted = {tuple(color) for color in expected(network, field).reshape(-1, 3)}
    near = np.array(list(wanted))
    for color in np.unique(blocks, axis=0)[::50]:
        assert np.abs(near - color).max(axis=1).min() <= 1


def test_bicubic_is_smooth_between_pixels(visit):
    """Against the same kernel written as in its definition."""
    field = photo()
    path, _ = make(field, original="photo.png")
    page = visit(path, **SMALL)
    press(page, "1", "+", "+", "+", "c", "c")
    wait_until_ready(page, ".overlay")
    found = pixels(page, ".overlay")
    (top, bottom), (left, right) = region(page)
    image = np.asarray(Image.open("photo.png")).astype(float)

    def kernel(t):
        t = abs(t)
        return 1.5 * t**3 - 2.5 * t**2 + 1 if t <= 1 else -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2 if t < 2 else 0.0

    height, width, _ = found.shape
    for py, px in ((height // 2, width // 2), (height // 2 - 21, width // 2 - 47), (height // 2 + 30, width // 2 + 61)):
        y = (top + (py + 0.5) * (bottom - top) / height - field.extents[0][0]) / field.spacing[0] - 0.5
        x = (left + (px + 0.5) * (right - left) / width - field.extents[1][0]) / field.spacing[1] - 0.5
        value = sum(
            kernel(y - i) * kernel(x - j) * image[i, j]
            for i in range(int(y) - 2, int(y) + 4)
            for j in range(int(x) - 2, int(x) + 4)
        )
        assert_close(found[py, px, :3], np.clip(np.rint(value), 0, 255))
