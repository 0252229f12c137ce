"""Images in the browser: through both engines, at every scale, by mouse, fingers and keys."""

from pathlib import Path

import numpy as np
import pytest

from helpers.pages import ENGINES, SMALL, assert_close, expected, make, photo
from helpers.small import save_drawn
from helpers.viewer import choose, engine, pixels, press, region, settle, shown, wait_until_ready
from uniphase.diagnosis.chain import evaluate_chain
from uniphase.export.networks import chain_of, read_tensors
from uniphase.export.targets import export_network
from uniphase.jax.render import render
from uniphase.signals.fields import Grid
from uniphase.signals.images import as_pixels


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("space", ["gray", "rgb", "lab"])
def test_pixels_are_those_of_render(name, space, visit):
    field = photo(space)
    path, network = make(field)
    page = visit(path, hash=ENGINES[name], **SMALL)
    assert engine(page) == name
    press(page, "1")
    found = shown(page, "", field.shape, field.extents)
    assert_close(found, expected(network, field))
    assert np.ptp(found) > 100
    assert page.run('document.querySelector("#engine").textContent') == name


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("scheme", ["tanh-pe", "gelu", "silu", "relu"])
def test_other_activations(name, scheme, visit):
    """Random features, whose sines and cosines are one layer, and the functions of other networks."""
    field = photo()
    network = save_drawn("a.uniphase", field, scheme=scheme, width=20)
    export_network("a.uniphase", "a.html")
    page = visit(Path("a.html"), hash=ENGINES[name], **SMALL)
    press(page, "1")
    assert_close(shown(page, "", field.shape, field.extents), expected(network, field))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("quantity", "scheme"),
    [
        ("gradient", "uniform-phase"),
        *[("laplacian", scheme) for scheme in ("uniform-phase", "tanh-pe", "gelu", "silu")],
    ],
)
def test_derivatives_are_those_of_render(name, quantity, scheme, visit):
    field = photo()
    network = save_drawn("a.uniphase", field, scheme=scheme, width=20)
    export_network("a.uniphase", "a.html")
    page = visit(Path("a.html"), hash=ENGINES[name], **SMALL)
    press(page, quantity[0], "1")

    def picture(shape):
        values = render(network, shape, extents=field.extents, derivative=quantity)
        return np.linalg.norm(values, axis=(-2, -1))[..., None] if quantity == "gradient" else values

    sizes = np.sort(np.abs(picture((32, 32))).ravel())
    white = sizes[int(0.995 * (len(sizes) - 1))]
    black = 0.0 if quantity == "gradient" else -float(white)
    wanted = as_pixels(picture(field.shape), "rgb", (black, float(white)))
    wanted = wanted.repeat(3 // wanted.shape[-1], axis=-1)
    assert_close(shown(page, "", field.shape, field.extents), wanted)


@pytest.mark.parametrize("name", ENGINES)
def test_zooming_in_never_runs_out_of_digits(name, visit):
    """A million times larger than the pixels, where float32 could not tell positions apart."""
    field = photo()
    path, _ = make(field)
    page = visit(path, hash=ENGINES[name], **SMALL)
    wait_until_ready(page)
    for _ in range(16):
        page.mouse("mouseWheel", 150, 200, deltaX=0, deltaY=-500)
        page.run("new Promise(requestAnimationFrame)")
    settle(page)
    (top, bottom), (left, right) = region(page)
    found = pixels(page)[..., :3]
    height, width, _ = found.shape
    assert (right - left) / width < 1e-6 * field.spacing[1]
    file = read_tensors("a.uniphase")
    y = top + (np.arange(height) + 0.5) * ((bottom - top) / height)
    x = left + (np.arange(width) + 0.5) * ((right - left) / width)
    positions = np.stack(np.meshgrid(y[::16], x[::16], indexing="ij"), axis=-1).reshape(-1, 2)
    values = evaluate_chain(chain_of(file.blueprint, file.network), positions)
    assert_close(found[::16, ::16].reshape(-1, 3), as_pixels(values, "rgb", (0.0, 1.0)))


@pytest.mark.parametrize("name", ENGINES)
def test_pixels_that_are_smaller_than_those_of_the_screen_are_averaged(name, visit):
    """By as many samples a pixel as the engine is given time for."""
    field = photo(shape=(400, 520))
    path, _ = make(field, width=8)
    page = visit(path, hash=ENGINES[name], **SMALL)
    wait_until_ready(page)
    times = {"WebGL2": 3, "typed arrays": 2}[name]
    (top, bottom), (left, right) = region(page)
    found = pixels(page)[..., :3]
    height, width, _ = found.shape
    assert (right - left) / width > 2 * field.spacing[1]
    offsets = (np.arange(times) + 0.5) / times
    file = read_tensors("a.uniphase")
    for row, column in ((height // 2, width // 2), (height // 3, width // 3), (height // 2, 2 * width // 3)):
        y = top + (row + offsets) * ((bottom - top) / height)
        x = left + (column + offsets) * ((right - left) / width)
        positions = np.stack(np.meshgrid(y, x, indexing="ij"), axis=-1).reshape(-1, 2)
        values = evaluate_chain(chain_of(file.blueprint, file.network), positions).mean(axis=0)
        assert_close(found[row, column], as_pixels(values[None], "rgb", (0.0, 1.0))[0])


def test_coarse_comes_before_fine(visit):
    path, _ = make(photo())
    page = visit(path, **SMALL)
    wait_until_ready(page)
    page.run("""window.steps = []; new MutationObserver((changes) => changes.forEach(({ target }) => steps.push(Number(
        target.dataset.step)))).observe(document.querySelector("#stage canvas"), { attributeFilter: ["data-step"] })""")
    choose(page, "Show", "gradient")
    assert page.run("steps") == [16, 4, 1]
    press(page, "ArrowLeft", "ArrowRight")  # what was drawn is taken along, and only the rest is new
    press(page, "1")
    assert page.run("steps.at(-1)") == 1


def test_samples_at_corners_reach_half_a_cell_beyond(visit):
    values = photo().values
    field = Grid(values, align="corners", medium="rgb", value_range=(0.0, 1.0))
    path, network = make(field)
    page = visit(path, **SMALL)
    press(page, "1")
    outer = [(low - h / 2, high + h / 2) for (low, high), h in zip(field.extents, field.spacing, strict=True)]
    assert_close(shown(page, "", field.shape, outer), expected(network, field))


@pytest.mark.parametrize("bits", [16, 8])
def test_a_page_in_fewer_bits(bits, visit):
    field = photo()
    path, network = make(field, bits=bits)
    page = visit(path, **SMALL)
    press(page, "1")
    assert_close(shown(page, "", field.shape, field.extents), expected(network, field))
    assert f"hidden ones in {bits} bits" in page.run('document.querySelector("#details").textContent')


def test_keys_move_and_zoom(visit):
    path, _ = make(photo())
    page = visit(path, **SMALL)
    press(page)
    whole = region(page)
    press(page, "+")
    closer = region(page)
    assert np.allclose(np.ptp(closer, axis=1), np.ptp(whole, axis=1) / 1.5, rtol=0.02)  # moved to whole pixels
    press(page, "ArrowRight", "ArrowDown")
    moved = region(page)
    assert (moved > closer).all()
    press(page, "ArrowLeft", "ArrowUp", "-")
    press(page, "0")
    np.testing.assert_allclose(region(page), whole)


def test_mouse_and_fingers_move_and_zoom(visit):
    path, _ = make(photo())
    page = visit(path, **SMALL)
    press(page, "+", "+", "+")
    before = region(page)
    page.mouse("mousePressed", 180, 200, button="left", buttons=1)
    page.mouse("mouseMoved", 150, 230, button="left", buttons=1)
    page.mouse("mouseReleased", 150, 230, button="left")
    settle(page)
    step = np.ptp(before, axis=1)[1] / 360
    np.testing.assert_allclose(region(page) - before, [[-30 * step] * 2, [30 * step] * 2], atol=1e-6)
    before = region(page)
    page.touch("touchStart", [(160, 200), (200, 200)])
    page.touch("touchMove", [(140, 200), (220, 200)])
    page.touch("touchEnd", [])
    settle(page)
    assert np.allclose(np.ptp(region(page), axis=1), np.ptp(before, axis=1) / 2, rtol=0.02)
