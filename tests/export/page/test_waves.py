"""Curves and sounds."""

from pathlib import Path

import numpy as np
import pytest

from helpers.pages import ENGINES, SMALL, make
from helpers.small import write_sound
from helpers.viewer import choose, pixels, press, region, wait_until_ready
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Points

RNG = np.random.default_rng(0)


def test_a_curve_goes_through_the_values_of_the_network(visit):
    x = np.sort(RNG.uniform(0, 10, 200))
    field = Points(x, np.sin(2 * x))
    path, network = make(field)
    page = visit(path, **SMALL)
    press(page, "+", "+")
    ((left, right),) = region(page)
    found = pixels(page)
    height, width, _ = found.shape
    assert 0 < left < right < 10
    middles = left + (np.arange(width) + 0.5) * ((right - left) / width)
    values = render(network, (width,), region=(left, right))[:, 0]
    assert len(values) == len(middles)
    low, high = field.value_range
    lane = height - 22
    rows = 0.06 * lane + (high - values) / (high - low) * 0.88 * lane
    inside = (rows > 2) & (rows < lane - 2)
    colors = found[rows[inside].astype(int), np.flatnonzero(inside)]
    assert inside.sum() > 50
    assert (colors[:, 3] > 100).mean() > 0.98  # where the curve is steep, its line is next to the middle of the column


AUDIO = """
window.make ??= AudioContext.prototype.createBuffer;
window.buffers = [];
AudioContext.prototype.createBuffer = function (...how) {
  const buffer = window.make.apply(this, how);
  window.buffers.push([buffer, this.sampleRate]);
  return buffer;
};
window.seen = [];  // the states of the button, however short
window.observer ??= new MutationObserver(([{ target }]) => seen.push([target.dataset.state, target.textContent]));
observer.observe(document.querySelector("#toolbar"), { subtree: true, attributeFilter: ["data-state"] });
"""


def played(page, speed: float):
    """All samples that were given to the speakers at a speed, (samples, channels), and their rate."""
    page.run(AUDIO)
    choose(page, "At", speed)
    press(page, " ")
    page.wait_for('seen.some(([state]) => state === "playing") && seen.at(-1)[0] === "stopped"')
    assert ["playing", "Stop"] in page.run("seen")
    channels = page.run("buffers.map(([b]) => [0, 1].map((c) => Array.from(b.getChannelData(c))))")
    return np.concatenate([np.array(part).T for part in channels]), page.run("buffers[0][1]")


@pytest.mark.parametrize("name", ENGINES)
def test_a_sound_is_played_as_render_gives_it(name, visit):
    write_sound(Path("a.wav"), 1200)
    field = load("a.wav")
    path, network = make(field)
    page = visit(path, hash=ENGINES[name], **SMALL)
    wait_until_ready(page)
    for speed, samples in ((1, 1200), (0.5, 2400)):  # at half the speed, the samples in between are of the network
        found, rate = played(page, speed)
        assert rate == 8000
        wanted = render(network, (samples,), extents=field.extents)
        np.testing.assert_allclose(found, wanted, atol=1 / 255)


def test_a_sound_can_be_stopped(visit):
    write_sound(Path("a.wav"), 40_000)
    path, _ = make(load("a.wav"))
    page = visit(path, **SMALL)
    press(page, " ")
    button = 'document.querySelector("#toolbar button[data-state]")'
    page.wait_for(f'{button}.dataset.state === "playing"')
    page.wait_for('parseFloat(document.querySelector("#stage > .line").style.left) > 1')
    press(page, " ")
    assert page.run(f"{button}.textContent") == "Play"
    assert page.run('document.querySelector("#stage > .line").hidden')
