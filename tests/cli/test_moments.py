import json

import numpy as np
import pytest
from PIL import Image


def test_moments_of_camera_are_the_printed_ones(run):
    code, out, err = run("moments", "camera", "--size", "128", "--recipe", "paper", "--json")
    assert (code, err) == (0, "")
    moments = json.loads(out)
    assert list(moments) == ["mean", "covariance", "structure_tensor"]
    np.testing.assert_allclose(moments["mean"], [0.506114], rtol=1e-5)
    np.testing.assert_allclose(moments["covariance"], [[0.07927476]], rtol=1e-5)
    np.testing.assert_allclose(moments["structure_tensor"], [[87.02186, 10.91007], [10.91007, 114.8221]], rtol=1e-5)


def test_moments_in_words(run):
    code, out, _ = run("moments", "coffee", "--size", "64", "--space", "lab")
    assert code == 0
    domain = "[-0.666667, 0.666667] × [-1, 1]"  # of 400 × 600 pixels, which are square
    assert out.startswith(f"coffee: 64 × 43 pixels (width × height), 3 channels, on {domain}, centers\nmean\n")
    assert "structure tensor" in out


def test_moments_of_files(run, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(8, 8, 8)))
    for axes, channels, in_size in ((3, 1, 3), (2, 8, 2)):
        code, out, _ = run("moments", str(tmp_path / "a.npy"), "--axes", str(axes), "--json")
        moments = json.loads(out)
        assert (code, len(moments["mean"]), len(moments["structure_tensor"])) == (0, channels, in_size)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["moments", "nothing.png"], 1, "uniphase: nothing.png: no such file, nor one of the signals camera"),
        (["moments", "camera", "--size", "1"], 1, "uniphase: size is 1; it must be at least 2"),
        (["moments", "camera", "--axes", "2"], 1, "uniphase: camera: axes is 2, but"),
        (["schemes", "wavelet"], 1, "uniphase: there is no scheme 'wavelet'; the known ones are uniform-phase"),
        (["moments", "camera", "--align", "left"], 2, 'Choose from: "centers", "corners"'),
        (["moments"], 2, "requires an argument"),
        (["paint"], 2, 'Unknown command "paint"'),
    ],
)
def test_bad_input_is_one_message_and_an_exit_code(run, arguments, code, message):
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_an_unreadable_file_is_one_line(run, tmp_path):
    (tmp_path / "a.png").write_text("not an image")
    code, out, err = run("moments", str(tmp_path / "a.png"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {tmp_path / 'a.png'}: cannot be read as an image")


def test_what_is_dropped_is_said(run, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (9, 9, 4), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    code, _, err = run("moments", str(tmp_path / "a.png"))
    assert (code, err) == (0, f"uniphase: note: {tmp_path / 'a.png'}: dropped its alpha channel\n")


def test_channels_that_are_too_large_for_the_papers_ridge(run, tmp_path):
    """Gray in three channels. The fix is one that the command line has."""
    path = str(tmp_path / "a.npy")
    np.save(path, np.tile(1e6 * np.random.default_rng(0).normal(size=(8, 8, 1)), 3))
    code, out, err = run("moments", path, "--recipe", "paper")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "on the command line: leave out --recipe paper" in err
    assert run("moments", path)[0] == 0
