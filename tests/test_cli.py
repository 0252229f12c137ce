import json
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from uniphase.cli import main
from uniphase.schemes import SCHEMES


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: str):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def test_moments_of_camera_are_the_printed_ones(run):
    code, out, err = run("moments", "camera", "--size", "128", "--align", "corners", "--json")
    assert (code, err) == (0, "")
    moments = json.loads(out)
    assert list(moments) == ["mean", "covariance", "structure_tensor"]
    np.testing.assert_allclose(moments["mean"], [0.506114], rtol=1e-5)
    np.testing.assert_allclose(moments["covariance"], [[0.07927476]], rtol=1e-5)
    np.testing.assert_allclose(moments["structure_tensor"], [[87.02186, 10.91007], [10.91007, 114.8221]], rtol=1e-5)


def test_moments_in_words(run):
    code, out, _ = run("moments", "coffee", "--size", "64", "--space", "lab")
    assert code == 0
    assert out.startswith("coffee: 43 × 64 samples of 3 channel(s) on [-1, 1] × [-1, 1], centers\nmean\n")
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
        (["schemes", "siren"], 1, "uniphase: there is no scheme 'siren'; the known ones are uniform-phase, sm20"),
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


def test_schemes_lists_all_and_shows_each(run):
    code, out, _ = run("schemes")
    assert code == 0
    for name in SCHEMES:
        assert name in out
        code, shown, _ = run("schemes", name)
        assert code == 0
        assert "Reference: " in shown
        assert f"{name}: 2 → 1, " in shown


HELP = "import sys; from uniphase.cli import app; app(['--help'], result_action='return_value')"


def test_help_needs_neither_jax_nor_numpy():
    check = f"{HELP}; print([m for m in ('jax', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    assert "moments" in out
    assert out.endswith("[]\n")


def test_help_answers_in_half_a_second():
    """The fastest of five, since others may be using the machine."""

    def seconds():
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "uniphase.cli", "--help"], check=True, capture_output=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.5


def test_the_installed_command_runs():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="uniphase")
    assert command.value == "uniphase.cli:main"
