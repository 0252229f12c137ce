import json

import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from helpers.small import names, save_drawn
from uniphase.signals.fields import Grid


def test_info(run, camera_fit):
    network = camera_fit.directory / "camera.uniphase"
    code, out, err = run("info", str(network))
    assert (code, err) == (0, "")
    for part in (
        "uniform-phase: 2 → 1, 337 parameters",
        "domain: 16 × 16 pixels (width × height) on [-1, 1] × [-1, 1] (down, right), centers, averages, gray, stored",
        "structure tensor\n",
        "\ntest ",
        "signal: camera\n",
        "recipe: optimizer muon, learning_rate ",
        "versions: uniphase ",
    ):
        assert part in out
    code, out, err = run("info", str(network), "--json")
    header = json.loads(out)
    assert (code, err, header["parameters"]) == (0, "", 337)
    assert header["bytes"] == network.stat().st_size
    assert {"format", "blueprint", "domain", "moments", "metrics", "training", "versions"} <= set(header)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "text.uniphase"], "text.uniphase: cannot be read as a uniphase network"),
        (["info", "folder.png"], "folder.png: a directory, not a uniphase network"),
        (["info", "none.uniphase"], "none.uniphase: no such file"),
        (["info", "short.uniphase"], "short.uniphase: cannot be read as a uniphase network"),
        (["render", "text.uniphase"], "text.uniphase: cannot be read as a uniphase network"),
        (["render", "none.uniphase"], "none.uniphase: no such file"),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(run, here, arguments, message):
    (here / "text.uniphase").write_text("mine")
    (here / "folder.png").mkdir()
    save_drawn("short.uniphase", Grid([[[0.0], [1.0]], [[1.0], [0.0]]]))
    whole = (here / "short.uniphase").read_bytes()
    (here / "short.uniphase").write_bytes(whole[:-4])
    before = names(here)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(here) == before


def test_info_spells_out_control_characters(run):
    save_drawn("a.uniphase", Grid([[0.0], [1.0], [0.5]]))
    tensors, metadata = load_file("a.uniphase"), safe_open("a.uniphase", "numpy").metadata()
    header = json.loads(metadata["uniphase"])
    header["training"] = {"signal": "\x1b]0;title\x07"}
    header["blueprint"]["scheme"] = "\x1b[2J"
    save_file(tensors, "a.uniphase", {"uniphase": json.dumps(header)})
    code, out, err = run("info", "a.uniphase")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "\x07" not in out
    assert r"signal: \x1b]0;title\x07" in out
