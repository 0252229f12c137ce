"""Maps, and arrays of any number of channels."""

import json

import numpy as np
import pytest

from helpers.pages import SMALL, make
from helpers.viewer import choose, pixels, region, wait_until_ready
from uniphase.jax.render import render
from uniphase.signals.fields import Grid, Points

RNG = np.random.default_rng(0)


def test_the_value_under_the_pointer(visit):
    positions = RNG.uniform((5, 45), (11, 48), (300, 2))
    field = Points(positions, np.stack([positions[:, 0], positions[:, 1]], axis=1))
    path, network = make(field)
    page = visit(path, **SMALL)
    wait_until_ready(page)
    page.mouse("mouseMoved", 120, 180)
    text = page.wait_for('document.querySelector("#place").textContent').replace("−", "-")
    place, values = text.split(": ")
    x, y = json.loads(f"[{place.strip('()')}]")
    low, high = region(page)[0]
    assert x == pytest.approx(low + (high - low) * 120 / 360, abs=0.02)
    found = render(network, (1, 1), region=((x - 1e-4, x + 1e-4), (y - 1e-4, y + 1e-4)))[0, 0]
    np.testing.assert_allclose(json.loads(f"[{values}]"), found, rtol=2e-3)  # what is printed has four digits


def test_a_map_of_scattered_points_has_north_above_and_a_colour_bar(visit):
    positions = RNG.uniform((5, 45), (11, 48), (300, 2))
    path, _ = make(Points(positions, positions[:, 1]))
    page = visit(path, **SMALL)
    wait_until_ready(page)
    (left, right), (top, bottom) = region(page)
    assert left < right
    assert top > bottom
    ends = page.run('document.querySelector(".bar").innerText').split()
    low, high = positions[:, 1].min(), positions[:, 1].max()
    assert [float(end) for end in ends] == pytest.approx([low, high], rel=1e-3)
    assert len(np.unique(pixels(page).reshape(-1, 4), axis=0)) > 50


def test_channels_of_an_array_are_chosen(visit):
    y, x = np.mgrid[-1:1:20j, -1:1:24j]
    path, _ = make(Grid(np.stack([x, y], axis=-1)))
    page = visit(path, **SMALL)
    wait_until_ready(page)
    first = pixels(page)
    choose(page, "Of", 1)
    assert (pixels(page) != first).any()
    choose(page, "Show", "laplacian")
    second = pixels(page)
    choose(page, "Of", 0)
    assert (pixels(page) != second).any()
