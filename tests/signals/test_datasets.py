import logging
import os
from pathlib import Path

import numpy as np
import pooch
import pytest
import requests
import soundfile
from PIL import Image
from skimage import data

from uniphase.signals import datasets
from uniphase.signals.fields import square_extents
from uniphase.signals.images import image

_SHAPES = {
    "camera": (512, 512, 1),
    "brick": (512, 512, 1),
    "gravel": (512, 512, 1),
    "clock": (300, 400, 1),
    "hubble": (872, 1000, 3),
    "skin": (960, 1280, 3),
    "astronaut": (512, 512, 3),
    "coffee": (400, 600, 3),
    "bach": (308207, 1),
}
_FILES = {"skin": "skin.tif", "bach": "gt_bach.wav"}

# Of the images resized to 128 samples, in the precision to which the published figures were checked.
_MEANS = [
    ("brick", "gray", [0.4370851]),
    ("camera", "gray", [0.506114]),
    ("gravel", "gray", [0.4962664]),
    ("clock", "gray", [0.573852]),
    ("hubble", "rgb", [0.07287113, 0.07761918, 0.07486308]),
    ("skin", "rgb", [0.8087804, 0.6604676, 0.7434734]),
    ("astronaut", "rgb", [0.5551572, 0.414752, 0.3783409]),
    ("coffee", "rgb", [0.6218087, 0.3364262, 0.2018614]),
    ("hubble", "lab", [6.468459, -0.350042, 0.1591068]),
    ("skin", "lab", [72.98644, 17.51581, -5.388009]),
    ("astronaut", "lab", [47.72864, 13.54884, 11.94688]),
    ("coffee", "lab", [44.39302, 26.59799, 32.83623]),
]


@pytest.fixture
def user_data(monkeypatch):
    """The user's own data directory, which only the tests that ask for it see."""
    directory = os.environ.get("UNIPHASE_DATA", "")

    def require(name: str) -> None:
        if name in _FILES and not Path(directory, _FILES[name]).exists():
            pytest.skip(f"{_FILES[name]} is not in the directory UNIPHASE_DATA")
        if directory:
            monkeypatch.setenv("UNIPHASE_DATA", directory)

    return require


@pytest.fixture(autouse=True)
def offline(user_data, monkeypatch):
    def fail(*args, **kwargs):
        raise requests.ConnectionError("no network\nin tests")

    monkeypatch.delenv("UNIPHASE_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", fail)
    monkeypatch.setattr(data, "skin", fail)


def test_names():
    assert set(datasets.SIGNAL_NAMES) == set(_SHAPES)


@pytest.mark.parametrize("name", datasets.SIGNAL_NAMES)
def test_native_shape(user_data, name):
    user_data(name)
    grid = datasets.load(name)
    assert grid.values.shape == _SHAPES[name]
    assert grid.values.dtype == np.float32
    assert grid.extents == (((-100.0, 100.0),) if name == "bach" else square_extents(grid.shape))


@pytest.mark.parametrize("size", [None, 50])
def test_the_domain_of_the_paper(size):
    grid = datasets.load("coffee", size=size, align="corners", extents=(-1.0, 1.0))
    assert grid.extents == ((-1.0, 1.0), (-1.0, 1.0))


@pytest.mark.parametrize(("name", "space", "mean"), _MEANS)
def test_means(user_data, name, space, mean):
    user_data(name)
    grid = datasets.load(name, size=128, space=space, align="corners")
    assert grid.align == "corners"
    # Seven digits are given; an absolute bound, as channels of CIELAB nearly cancel.
    np.testing.assert_allclose(grid.flat_values().mean(0, dtype=np.float64), mean, rtol=1e-6, atol=1e-6)


def test_mean_of_bach(user_data):
    user_data("bach")
    mean = datasets.load("bach").values.mean(dtype=np.float64)
    np.testing.assert_allclose(mean, -1.385323e-5, rtol=1e-6)  # seven digits are given


def test_an_image_is_that_of_its_array():
    grid = datasets.load("coffee", size=50, space="lab")
    np.testing.assert_array_equal(grid.values, image(data.coffee(), size=50, space="lab").values)


@pytest.mark.parametrize(("name", "file"), [("camera", "camera.png"), ("skin", "skin.tif"), ("skin", "skin.jpg")])
def test_data_directory_comes_first(tmp_path, monkeypatch, name, file):
    monkeypatch.setenv("UNIPHASE_DATA", str(tmp_path))
    Image.fromarray(np.full((4, 6), 51, np.uint8)).save(tmp_path / file)
    np.testing.assert_allclose(datasets.load(name).values, np.full((4, 6, 1), 0.2), rtol=1e-7)  # float32


def test_data_directory_without_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIPHASE_DATA", str(tmp_path))
    assert datasets.load("camera").shape == (512, 512)


def test_data_directory_that_does_not_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIPHASE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"^UNIPHASE_DATA is '.*nowhere', which is not a directory; "):
        datasets.load("camera")


def test_wrong_bach_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("UNIPHASE_DATA", str(tmp_path))
    soundfile.write(tmp_path / "gt_bach.wav", np.zeros(10), 8000)
    with pytest.raises(ValueError, match=r"^.*gt_bach.wav: not the file at https://.*, as its sha256 differs; replace"):
        datasets.load("bach")


def test_bach_is_downloaded_quietly_and_checked(tmp_path, monkeypatch):
    soundfile.write(tmp_path / "gt_bach.wav", np.linspace(-0.5, 0.5, 11), 8000, subtype="FLOAT")
    logger = pooch.get_logger()
    level = logger.level

    def retrieve(url, known_hash, fname, path):
        assert url.startswith("https://")
        assert known_hash.startswith("sha256:0239")
        assert fname == "gt_bach.wav"
        assert Path(path) == Path(pooch.os_cache("uniphase"))
        assert not logger.isEnabledFor(logging.INFO)
        return str(tmp_path / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert datasets.load("bach").shape == (11,)
    assert logger.level == level


@pytest.mark.parametrize("name", ["bach", "skin"])
def test_failed_download(name):
    message = rf"^{name}: the download failed \(no network in tests\); put {_FILES[name]} .* variable UNIPHASE_DATA$"
    with pytest.raises(OSError, match=message):
        datasets.load(name)


def test_wrong_download(monkeypatch):
    def retrieve(*args, **kwargs):
        raise ValueError("SHA256 hash does not match")

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(OSError, match=r"^bach: the download failed \(SHA256 hash does not match\)"):
        datasets.load("bach")


def test_a_path(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((4, 6, 4)))
    assert datasets.load(tmp_path / "a.npy", axes=3).shape == (4, 6, 4)
    assert datasets.load(tmp_path / "a.npy", axes=3, extents=(0.0, 3.0)).extents == ((0.0, 3.0),) * 3
    monkeypatch.chdir(tmp_path)
    (tmp_path / "camera").touch()
    assert datasets.load("camera").shape == (512, 512)
    with pytest.raises(ValueError, match=r"^./camera: the suffix '' is not known"):
        datasets.load("./camera")


@pytest.mark.parametrize("signal", ["cameraman", "nowhere/a.png", Path("camera")])
def test_unknown_signal_lists_the_names(tmp_path, monkeypatch, signal):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"^{signal}: no such file, nor one of the signals camera, .*, bach$"):
        datasets.load(signal)


def test_options_that_do_not_fit(user_data):
    with pytest.raises(ValueError, match=r"^camera: axes is 2, but"):
        datasets.load("camera", axes=2)
    user_data("bach")
    with pytest.raises(ValueError, match=r"gt_bach.wav: space is 'lab', but only images"):
        datasets.load("bach", space="lab")
