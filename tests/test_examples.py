"""The examples run, with few steps, do what they say, and leave a picture for the gallery."""

import importlib
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import pytest

pytest.importorskip("torch", reason="the extra torch is not installed")
import helpers.torch_models  # noqa: F401  # one thread

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def main(monkeypatch, tmp_path):
    """Run an example in an empty directory, as users have JAX."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)

    def run(name, **sizes):
        with jax.numpy_dtype_promotion("standard"):
            found = importlib.import_module(name).main(**sizes)
        assert [path.suffix for path in tmp_path.glob(f"{name}.*") if path.suffix in (".png", ".webp")]
        return found

    yield run
    plt.close("all")


def test_photo(main, tmp_path):
    assert main("photo", size=24, steps=60, width=32) > 20  # the mean colour is at about 12
    assert (tmp_path / "photo.html").exists()


def test_sixteen_bits(main):
    assert main("sixteen_bits", size=24, steps=60, width=32) < 1  # finer than 8 bits could be


def test_sound(main, tmp_path):
    assert main("sound", samples=1000, steps=60) > 3
    assert (tmp_path / "sound.wav").exists()


def test_slow_motion(main):
    assert main("slow_motion", size=16, frames=4, steps=60, width=32) > 15


def test_volume(main, tmp_path):
    network, _ = main("volume", size=10, steps=60, width=32)
    assert network > 0  # better than the mean
    assert (tmp_path / "volume.html").exists()


def test_terrain(main):
    network, spline = main("terrain", samples=400, steps=60, size=32)
    assert network < 200  # the mean is off by 300 m
    assert spline < network


def test_time_series(main):
    error, noise = main("time_series", samples=1500, steps=150)
    assert error < 5 * noise  # zero is off by a metre


def test_inpaint(main):
    found = main("inpaint", size=32, steps=100)
    assert set(found) == {"random_holes", "text_over"}
    assert found["text_over"]["uniphase"] > 18  # the mean of the image is at about 11


def test_denoise(main):
    found = main("denoise", size=32, rounds=2)
    assert found["uniphase"] > found["noisy"] + 1


def test_tomography(main):
    found = main("tomography", size=32, views=30, steps=200, width=32, draws=32)
    assert found["uniphase"][0] > 20  # without a reading it is at about 11


def test_super_resolution(main):
    found = main("super_resolution", size=24, steps=60, width=32)
    assert found["averages over cells"] > 0  # better than the mean


def test_from_gradients(main):
    assert main("from_gradients", size=24, steps=60, width=32) > 18  # the mean of the image is at about 11


def test_signed_distance(main):
    assert main("signed_distance", points=1000, steps=40, size=24, width=32) < 0.05  # it starts at 0.4


def test_few_points(main):
    alone, with_term = main("few_points", samples=100, steps=60, width=32)
    assert with_term < alone


def test_outliers(main):
    squared, absolute = main("outliers", size=32, steps=60, width=32)
    assert absolute > squared


def test_which_omega(main):
    found = main("which_omega", size=24, steps=40, width=32, omegas=(200,))
    assert found["uniform-phase"] > found["SIREN, ω₀ = 200"]


def test_moments_of_photos(main):
    found = main("moments_of_photos", size=64)
    assert found["gravel"].structure_tensor[0, 0] > 5 * found["camera"].structure_tensor[0, 0]


def test_diagnose_model(main):
    sick, well = main("diagnose_model", size=24, width=16, depth=2)
    assert not sick.healthy
    assert well.healthy


def test_equinox_module(main):
    as_it_comes, initialized = main("equinox_module", size=24, steps=40, width=24)
    assert initialized > as_it_comes + 2


def test_improve_siren_pytorch(main):
    pytest.importorskip("siren_pytorch", reason="siren-pytorch is not installed")
    before, after = main("improve_siren_pytorch", size=24, steps=60, width=32)
    assert after > before + 1


def test_together(main):
    found = main("together", size=16, steps=40, width=16, rates=2)
    assert set(found) == {"uniform-phase", "SIREN, ω₀ = 30"}
    assert found["uniform-phase"][1] > found["uniform-phase"][0]


def test_derivatives(main):
    assert main("derivatives", size=24, steps=60, width=32) > 0.8


def test_fit_image_torch(main, tmp_path):
    assert main("fit_image_torch", size=24, steps=60) > main("fit_image_torch", size=24, steps=1) + 10
    assert (tmp_path / "camera.uniphase").exists()


def test_train_in_jax_serve_in_torch(main):
    assert main("train_in_jax_serve_in_torch", size=24, steps=10) < 1e-5  # float32 phases of some ten, off by 1e-6


def test_onnx_model(main):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    assert main("onnx_model", size=24, steps=10, width=32) < 1e-5  # as above


def test_every_example_is_tested():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
