from pathlib import Path

import pytest

from helpers.small import names, save_drawn
from uniphase.signals.datasets import load


@pytest.mark.parametrize("found", [True, False])
def test_the_page_is_made_elsewhere_and_opened(found, run, here, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    opened = []
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or found)
    save_drawn("a b.uniphase", load("camera", size=16))
    code, out, err = run("view", "a b.uniphase")
    (page,) = elsewhere.glob("uniphase-*/a b.html")
    said = "opened" if found else "no browser was found; open"
    assert (code, out, err) == (0, f"{said} {page}\n", "")
    assert opened == [page.as_uri()]
    assert names(here) == ["a b.uniphase"]


def test_a_bad_file_opens_nothing_and_leaves_nothing(run, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail("opened"))
    Path("a.uniphase").write_text("not a network")
    code, out, err = run("view", "a.uniphase")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert names(elsewhere) == []
