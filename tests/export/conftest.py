from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from helpers.browser import CHROMIUM, WITHOUT_BROWSER, Browser, open_browser


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Browser]:
    """One Chromium for all tests."""
    if CHROMIUM is None:
        pytest.skip(WITHOUT_BROWSER)
    with open_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def visit(browser):
    """Open pages, and fail in the end if one asked the network for anything, or had something to say in the console."""
    with ExitStack() as stack:
        pages = []

        def call(path, **options):
            pages.append(stack.enter_context(browser.page(path, **options)))
            return pages[-1]

        yield call
        assert [page.foreign_requests for page in pages] == [[] for _ in pages]
        assert [page.messages for page in pages] == [[] for _ in pages]
