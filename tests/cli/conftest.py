from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
