"""The examples run, with few steps, and do what they say."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra torch is not installed")
import helpers.torch_models  # noqa: F401  # one thread

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def main(monkeypatch, tmp_path):
    """Run an example in an empty directory."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)
    return lambda name, **sizes: importlib.import_module(name).main(**sizes)


def test_fit_image_torch(main, tmp_path):
    assert main("fit_image_torch", size=24, steps=60) > main("fit_image_torch", size=24, steps=1) + 10
    assert (tmp_path / "camera.uniphase").exists()


def test_improve_siren_pytorch(main):
    pytest.importorskip("siren_pytorch", reason="siren-pytorch is not installed")
    before, after = main("improve_siren_pytorch", size=24, steps=60, width=32)
    assert after > before + 1


def test_train_in_jax_serve_in_torch(main):
    assert main("train_in_jax_serve_in_torch", size=24, steps=10) < 1e-5  # float32 phases of some ten, off by 1e-6


def test_inpaint(main):
    found = main("inpaint", size=48, steps=200)
    assert set(found) == {"random_holes", "text_over"}
    assert found["text_over"]["uniphase"] > 18  # the mean of the image is at about 11


def test_denoise(main):
    found = main("denoise", size=48, rounds=2)
    assert found["uniphase"] > found["noisy"] + 1


def test_tomography(main):
    found = main("tomography", size=32, views=30, steps=300)
    assert found["uniphase"][0] > 20  # without a reading it is at about 11


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
