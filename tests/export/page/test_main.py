"""The page as a whole: its drawer, its words, its policy and the engine that it takes."""

from pathlib import Path

import pytest

from helpers.browser import CHROMIUM, WITHOUT_BROWSER, open_browser
from helpers.pages import SMALL, make, photo
from helpers.small import save_drawn
from helpers.viewer import engine, press, wait_until_ready
from uniphase.export.html import make_page
from uniphase.export.networks import read_tensors


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
