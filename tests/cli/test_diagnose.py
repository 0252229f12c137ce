import json

import numpy as np
import pytest
from PIL import Image

from helpers.small import names, save_drawn
from uniphase.cli.diagnose import examine_signal
from uniphase.cli.options import Options
from uniphase.signals.datasets import load
from uniphase.signals.images import image

SMALL = ["--size", "16", "--width", "8", "--depth", "1"]
OPTIONS = Options(size=16, width=8, depth=1)


def test_a_network_of_a_file_is_examined_where_it_was_fitted():
    """A file knows its alignment."""
    save_drawn("camera.uniphase", load("camera", size=16, align="corners"))
    saved = examine_signal("camera", Options(size=16), network="camera.uniphase")
    same = examine_signal("camera", Options(size=16, align="corners"), network="camera.uniphase")
    other = examine_signal("camera", Options(size=16, align="centers"), network="camera.uniphase")
    assert saved.to_dict() == same.to_dict() != other.to_dict()


def test_and_on_the_domain_that_it_was_fitted_on():
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 32), dtype=np.uint8)).save("a.png")
    stretched = image("a.png", extents=(-1.0, 1.0))
    save_drawn("a.uniphase", stretched)
    report = examine_signal("a.png", Options(), network="a.uniphase")
    square = examine_signal("a.png", Options(width=8, depth=1))
    ratio = np.diag(square.data.structure_tensor) / np.diag(report.data.structure_tensor)
    np.testing.assert_allclose(ratio, [16, 1], rtol=1e-3)  # 4 times the slope where the axis is a quarter; a ridge


def test_a_picture_is_drawn_only_if_asked_for_and_never_replaced(here):
    examine_signal("camera", OPTIONS)
    assert names(here) == []
    examine_signal("camera", OPTIONS, output="a.png")
    assert names(here) == ["a.png"]
    with pytest.raises(FileExistsError, match="exists; pass --force"):
        examine_signal("camera", OPTIONS, output="a.png")
    with pytest.raises(ValueError, match=r"a.jpg: the suffix is '.jpg'; use .png"):
        examine_signal("camera", OPTIONS, output="a.jpg")


def test_diagnose_in_words(run, here):
    code, out, err = run("diagnose", "camera", *SMALL, "--scheme", "sm20", "-o", "report.png")
    assert (code, err) == (0, "")
    assert out.startswith("layer ")
    assert "looks like: sm20" in out
    assert out.splitlines()[-1] == "wrote report.png"
    assert names(here) == ["report.png"]


def test_diagnose_a_file_for_programs(run):
    save_drawn("camera.uniphase", load("camera", size=16, align="corners"), scheme="sm20")
    code, out, err = run("diagnose", "camera", "--size", "16", "--network", "camera.uniphase", "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    assert [layer["name"] for layer in report["layers"]] == ["input", "hidden 1", "output"]
    assert {finding["severity"] for finding in report["findings"]} <= {"ok", "warn", "bad"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "report.jpg"], "report.jpg: the suffix is '.jpg'; use .png"),
        (["-o", "a.png"], "a.png: exists; pass --force to replace it"),
        (["--scheme", "wavelet"], "there is no scheme 'wavelet'"),
        (["--network", "a.png"], "a.png: "),
        (["--network", "none.uniphase"], "none.uniphase: no such file"),
        (["--network", "b.uniphase", "--scheme", "sm20"], "scheme is 'sm20', but the network is that of b.uniphase"),
        (["--network", "b.uniphase", "--width", "7"], "width is 7, but the network is that of b.uniphase; leave out"),
        (["--network", "b.uniphase", "--omega", "7"], "omega is 7.0, but the network is that of b.uniphase; leave out"),
        (["--scheme", "relu", "--omega", "7"], "omega is 7, but relu has none; leave it out, or choose from"),
        (["--seed", "-1"], "seed is -1; it must lie between 0 and"),
    ],
)
def test_what_cannot_be_diagnosed(run, here, arguments, message):
    (here / "a.png").write_text("mine")
    code, out, err = run("diagnose", "camera", "--size", "16", *arguments)
    assert (code, out) == (1, "")
    assert f"uniphase: {message}" in err
    assert (here / "a.png").read_text() == "mine"
