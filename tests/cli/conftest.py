from pathlib import Path

import pytest
from PIL import Image

from helpers.small import TINY_ARGUMENTS, Ran, run_in
from uniphase.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def drawn() -> None:
    """For tests whose figures are looked at."""


@pytest.fixture(autouse=True)
def sketches(request, monkeypatch) -> None:
    """Figures are saved as one pixel, unless a test asks for `drawn`: tests/plots draws them all."""
    if "drawn" not in request.fixturenames:
        save = lambda self, path, **_: Image.new("L", (1, 1)).save(path)  # noqa: E731
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", save)


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: str):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def camera_fit(tmp_path_factory) -> Ran:
    """`uniphase fit camera`, tiny, with its picture."""
    return run_in(tmp_path_factory.mktemp("fit"), "fit", "camera", "--size", "16", *TINY_ARGUMENTS)
