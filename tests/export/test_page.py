"""The page in a browser: every kind of field, through both engines, by mouse, fingers and keys."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from helpers.browser import CHROMIUM, WITHOUT_BROWSER, open_browser
from helpers.small import save_drawn, write_sound
from helpers.viewer import (
    choose,
    engine,
    pixels,
    press,
    region,
    settle,
    shown,
    slide,
    wait_until_ready,
)
from uniphase.diagnosis.chain import evaluate_chain
from uniphase.export.html import make_page
from uniphase.export.networks import chain_of, read_tensors
from uniphase.export.targets import export_network
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points
from uniphase.signals.images import as_pixels

ENGINES = {"WebGL2": "", "typed arrays": "#typed-arrays"}
SMALL = {"width": 360, "height": 420}
RNG = np.random.default_rng(0)


def photo(space: str = "rgb", shape=(40, 52)) -> Grid:
    """A picture of waves, in which no pixel is like another."""
    y, x = np.mgrid[0 : 1 : shape[0] * 1j, 0 : 1 : shape[1] * 1j]
    waves = [0.5 + 0.45 * np.sin(9 * x + k) * np.cos(7 * y - k) for k in range(3)]
    Image.fromarray((255 * np.stack(waves, axis=-1)).astype(np.uint8)).save("photo.png")
    return load("photo.png", space=space)


def make(field, *, title: str = "a", bits: int | None = None, width: int = 18, **options):
    """A page of a small network, and the network in it. Its width is no multiple of four, as textures have it."""
    network = save_drawn("a.uniphase", field, width=width)
    if bits is not None:
        export_network("a.uniphase", "b.uniphase", bits=bits)
        network = load_network("b.uniphase").network
    export_network("a.uniphase", f"{title}.html", bits=bits, **options)
    return Path(f"{title}.html"), network


def expected(network, field: Grid) -> np.ndarray:
    values = render(network, field.shape, extents=field.extents, align=field.align)
    return as_pixels(values, field.medium, field.value_range).repeat(3 // field.out_size, axis=-1)


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    """To one of 255 levels, which is the rounding of both."""
    assert found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1


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


def test_the_drawer_has_quality_layers_and_moments(visit):
    path, _ = make(photo())
    page = visit(path, **SMALL)
    press(page, "i")
    drawer = 'document.querySelector("#details")'
    assert not page.run(f"{drawer}.hidden")
    text = page.run(f"{drawer}.innerText")
    for words in ("Moments of the signal", "Structure tensor", "2 → 18", "uniform-phase", "Computed by\nWebGL2"):
        assert words in text
    page.key("Escape")
    assert page.run(f"{drawer}.hidden")
    assert page.run("document.activeElement.id") == "details-button"


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
"""


def played(page, speed: float):
    """All samples that were given to the speakers at a speed, (samples, channels), and their rate."""
    page.run(AUDIO)
    choose(page, "At", speed)
    press(page, " ")
    page.wait_for('document.querySelector("#toolbar button[data-state]").dataset.state === "playing"')
    assert page.run('document.querySelector("#toolbar button[data-state]").textContent') == "Stop"
    page.wait_for('document.querySelector("#toolbar button[data-state]").dataset.state === "stopped"')
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


def clip() -> Grid:
    t, y, x = np.mgrid[0:1:6j, 0:1:20j, 0:1:28j]
    values = np.stack([0.5 + 0.4 * np.sin(9 * x + 6 * t), 0.5 + 0.4 * np.cos(7 * y - 6 * t), 0.5 + 0 * x], axis=-1)
    extents = ((-1.0, 1.0), (-20 / 28, 20 / 28), (-1.0, 1.0))
    return Grid(values.astype(np.float32), extents=extents, medium="rgb", rate=10.0, value_range=(0.0, 1.0))


@pytest.mark.parametrize("name", ENGINES)
def test_a_frame_of_a_video_is_that_of_render(name, visit):
    field = clip()
    path, network = make(field)
    page = visit(path, hash=ENGINES[name], **SMALL)
    press(page, "1")
    wanted = expected(network, field)
    for frame in (0, 4):
        slide(page, ".timeline input", frame + 0.5)
        low = region(page)[1:]
        top, left = (round((field.extents[k + 1][0] - low[k, 0]) / field.spacing[k + 1]) for k in range(2))
        assert_close(pixels(page)[top : top + 20, left : left + 28, :3], wanted[frame])
    press(page, ",")
    assert "frame 4" in page.run('document.querySelector(".timeline output").textContent')


def test_a_video_plays_and_stops(visit):
    path, _ = make(clip())
    page = visit(path, **SMALL)
    wait_until_ready(page)
    position = 'Number(document.querySelector(".timeline input").value)'
    page.run('document.querySelector(".timeline button").click()')
    page.wait_for(f"{position} > 2")
    page.run('document.querySelector(".timeline button").click()')
    settle(page)
    at = page.run(position)
    assert page.run('document.querySelector(".timeline button").textContent') == "Play"
    settle(page)
    assert page.run(position) == at


def test_slices_through_each_axis_of_a_volume(visit):
    z, y, x = np.mgrid[-1:1:10j, -1:1:14j, -1:1:18j]
    field = Grid((z + 2 * y + 3 * x)[..., None], extents=((0.0, 20.0), (0.0, 14.0), (0.0, 18.0)))
    path, _ = make(field)
    page = visit(path, **SMALL)
    for axis, box in ((0, (14, 18)), (1, (20, 18)), (2, (20, 14))):
        choose(page, "Through the", axis)
        shown_part = pixels(page)[..., 3] == 255
        height, width = shown_part.any(axis=1).sum(), shown_part.any(axis=0).sum()
        assert height / width == pytest.approx(box[0] / box[1], rel=0.02)  # voxels are twice as thick as they are wide


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_and_wide_screens_in_light_and_dark(dark, visit):
    path, _ = make(photo(), title="a very long name of a signal, as somebody may have it")
    brightness = {}
    for width in (1280, 400):
        page = visit(path, width=width, height=700, dark=dark)
        engine(page)
        page.run('document.querySelector("#details-button").click()')
        assert page.run("document.documentElement.scrollWidth") == width
        assert page.run("document.documentElement.scrollHeight") == 700
        color = page.run("getComputedStyle(document.body).backgroundColor")
        brightness[width] = int(color.strip("rgb()").split(",")[0])
    assert all((value < 128) == dark for value in brightness.values())


def test_the_canvas_has_words_for_those_who_do_not_see_it(visit):
    path, _ = make(photo())
    page = visit(path, **SMALL)
    wait_until_ready(page)
    label = page.run('document.querySelector("#stage canvas").getAttribute("aria-label")')
    assert label.startswith("An image of 52 × 40 pixels in RGB as a neural network of ")
    tree = page.send("Accessibility.getFullAXTree")["nodes"]
    for node in tree:
        if node.get("role", {}).get("value") in ("button", "combobox", "slider"):
            assert node["name"]["value"], node


def test_a_name_that_looks_like_markup_is_text(visit):
    field, name = photo(), '<script>alert("a")</script><img src=x onerror=alert(1)>{{network}}'
    save_drawn("a.uniphase", field)
    file = read_tensors("a.uniphase")
    Path("a.html").write_text(make_page(name, file, Path("a.uniphase").read_bytes()))
    page = visit(Path("a.html"), **SMALL)
    wait_until_ready(page)
    assert page.run('document.querySelector("h1").textContent') == name
    assert page.run("document.title") == name
    assert page.run('document.querySelectorAll("img").length') == 0


def test_the_page_may_not_ask_for_anything(browser):
    """The policy forbids it, even to a script that got in."""
    path, _ = make(photo())
    intruder = '<img src="https://example.org/a.png"><script>document.title = 1</script></body>'
    Path("b.html").write_text(path.read_text().replace("</body>", intruder))
    with browser.page(Path("b.html"), **SMALL) as page:
        wait_until_ready(page)
        page.wait_for("1")
        assert page.run("document.title") == "a"
        assert sum("Content Security Policy" in message for message in page.messages) == 2


def test_requests_and_messages_of_the_console_are_seen(browser, here):
    """So the checks of all other tests can fail; in a worker, too."""
    worker = """console.error("three"); throw new Error("four")"""
    script = f"""console.error("one"); fetch("https://example.org/two").catch(() => 0);
      new Worker(URL.createObjectURL(new Blob([`{worker}`])))"""
    (here / "a.html").write_text(f"<script>{script}</script>")
    with browser.page(Path("a.html")) as page:
        page.wait_for("new Promise((done) => setTimeout(() => done(1), 300))")
        assert page.foreign_requests == ["https://example.org/two"]
        for word in ("one", "three", "four"):
            assert any(word in message for message in page.messages)


def test_without_webgl_the_page_takes_typed_arrays(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip(WITHOUT_BROWSER)
    path, _ = make(photo())
    with (
        open_browser(tmp_path_factory.mktemp("chromium"), webgl=False) as browser,
        browser.page(path, **SMALL) as page,
    ):
        assert engine(page) == "typed arrays"
        wait_until_ready(page)
        assert page.messages == []
