"""The site: every public name is in its reference, every example in its gallery, and links lead from page to page."""

import ast
import importlib
import inspect
import itertools
import re
import shutil
from pathlib import Path

import pytest

import uniphase
from helpers.browser import CHROMIUM, WITHOUT_BROWSER, open_browser

ROOT = Path(__file__).parents[1]
REFERENCE = {
    path.stem: re.findall(r"^::: ([\w.]+)", path.read_text(), re.M) for path in (ROOT / "docs/api").glob("*.md")
}
# Public names that are data, and where they are defined.
DATA = {
    "Field": "uniphase.signals.fields",
    "SCHEMES": "uniphase.initialization.schemes",
    "SIGNAL_NAMES": "uniphase.signals.datasets",
}
# A function that has the name of its file is listed by both.
NAMES = [re.sub(r"\.(\w+)\.\1$", r".\1", name) for names in REFERENCE.values() for name in names]


@pytest.fixture
def site(monkeypatch, tmp_path):
    """docs/make_site.py, which writes its pages elsewhere."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    module = importlib.import_module("make_site")
    monkeypatch.setattr(module, "PAGES", tmp_path / "docs")
    return module


def test_the_reference_has_every_public_name_once():
    assert sorted(name for name in NAMES if not name.startswith("uniphase.torch.")) == sorted(
        f"uniphase.{name}" for name in uniphase.__all__
    )


def test_the_reference_has_every_public_name_of_the_torch_side_once():
    side = pytest.importorskip("uniphase.torch", reason="the extra torch is not installed")
    assert sorted(name for name in NAMES if name.startswith("uniphase.torch.")) == sorted(
        f"uniphase.torch.{name}" for name in side.__all__
    )


def public_members(documented) -> list[str]:
    """What the reference shows of a class: its own public methods and properties."""
    kinds = (property, staticmethod, classmethod)
    members = [
        member for base in documented.__mro__ if base.__module__.startswith("uniphase") for member in vars(base).items()
    ]
    return [
        name for name, value in members if not name.startswith("_") and (callable(value) or isinstance(value, kinds))
    ]


def attribute_docstring(name: str) -> str | None:
    """The string below an assignment, which the reference shows; Python itself does not keep it."""
    nodes = ast.parse(inspect.getsource(importlib.import_module(DATA[name]))).body
    for node, after in itertools.pairwise(nodes):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return ast.get_docstring(ast.Module([after], []))
    return None


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_the_reference_shows_has_a_docstring(name):
    if name.startswith("uniphase.torch."):
        pytest.importorskip("torch", reason="the extra torch is not installed")
    module, attribute = name.rsplit(".", 1)
    documented = getattr(importlib.import_module(module), attribute)
    assert attribute_docstring(attribute) if attribute in DATA else inspect.getdoc(documented), name
    if inspect.isclass(documented):
        for member in public_members(documented):
            assert inspect.getdoc(getattr(documented, member)), f"{name}.{member}"


def test_the_gallery_has_every_example_and_all_of_their_pictures(site):
    listed = [name for names in site.navigation().values() for name in names]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    site.gather()
    assert site.missing() == []


def test_every_page_is_listed(site):
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(site.listed())


def test_what_is_not_there_is_found(site):
    site.gather()
    (site.PAGES / "theory" / "phases.webp").unlink()
    (site.PAGES / "paper.md").unlink()
    assert site.missing() == ["theory.md shows theory/phases.webp", "zensical.toml lists paper.md"]
    with pytest.raises(SystemExit, match=r"theory\.md shows theory/phases\.webp, which is not there"):
        site.build()
    shutil.rmtree(site.PAGES)


@pytest.mark.parametrize(
    ("source", "target", "link", "expected"),
    [
        ("docs/fitting.md", "fitting.md", "[rule](rule.md#it)", "[rule](rule.md#it)"),
        ("docs/fitting.md", "fitting.md", "[x](../examples/photo.py)", "[x](gallery/photo.md)"),
        ("docs/fitting.md", "fitting.md", "[x](../results/report.md#narrow)", "[x](results/report.md#narrow)"),
        ("docs/fitting.md", "fitting.md", "[`code`](../src/uniphase/lab)", "`code`"),
        ("results/report.md", "results/report.md", "![x](figures/narrow.png)", "![x](figures/narrow.png)"),
        ("CHANGELOG.md", "changelog.md", "[x](docs/torch.md)", "[x](torch.md)"),
        ("docs/api/torch.md", "api/torch.md", "[x](../torch.md)", "[x](../torch.md)"),
        ("docs/fitting.md", "fitting.md", "[x](https://example.org/a.md)", "[x](https://example.org/a.md)"),
        ("docs/fitting.md", "fitting.md", "`tables[name](field)`", "`tables[name](field)`"),
    ],
)
def test_links_between_files_become_links_between_pages(site, source, target, link, expected):
    assert site.relink(f"before {link} after", source, target) == f"before {expected} after"


def test_the_moving_picture_of_a_fit_is_small():
    assert (ROOT / "docs" / "fit.webp").stat().st_size < 1.5e6


def test_the_network_to_play_with_draws_what_its_sliders_say(tmp_path):
    if CHROMIUM is None:
        pytest.skip(WITHOUT_BROWSER)
    text = (ROOT / "docs" / "theory.md").read_text()
    (piece,) = re.findall(r'<div id="random-network".*?</script>', text, re.S)
    shutil.copy(ROOT / "docs" / "random-network.js", tmp_path)
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><html><head><meta charset='utf-8'></head><body>{piece}</body></html>")
    with open_browser(tmp_path / "chromium") as browser, browser.page(page) as shown:
        picture = "document.querySelector('canvas').toDataURL()"
        shown.wait_for("document.querySelector('output').textContent === '13'")
        before = shown.run(picture)
        shown.run("document.querySelector('[name=phases]').value = 0")
        shown.run("document.querySelector('[name=phases]').dispatchEvent(new Event('input', {bubbles: true}))")
        assert shown.run("[...document.querySelectorAll('output')].map(o => o.textContent)") == ["13", "0 %", "4", "32"]
        assert shown.run(picture) != before
        assert shown.messages == []
        assert [request.rpartition("/")[2] for request in shown.foreign_requests] == ["random-network.js"]
