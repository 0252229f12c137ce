from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from helpers.small import TINY_ARGUMENTS, names, save_drawn, write_sound
from uniphase.jax.files import load_network
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid


def test_a_page_is_the_default(run, here):
    save_drawn("a.uniphase", load("camera", size=16))
    code, out, err = run("export", "a.uniphase")
    size = Path("a.html").stat().st_size
    assert (code, out, err) == (0, f"wrote a.html ({size:,} bytes)\n", "")
    assert Path("a.html").read_text().startswith("<!DOCTYPE html>")
    assert (
        run("export", "a.uniphase")[2] == "uniphase: a.html: exists; pass --force to replace it, or another --output\n"
    )
    assert run("export", "a.uniphase", "--force")[0] == 0
    assert names(here) == ["a.html", "a.uniphase"]


def test_models_scripts_and_smaller_files(run):
    save_drawn("a.uniphase", load("camera", size=16))
    for target in ("a.onnx", "a.py"):
        code, out, _ = run("export", "a.uniphase", "-o", target)
        assert (code, out) == (0, f"wrote {target} ({Path(target).stat().st_size:,} bytes)\n")
    code, out, _ = run("export", "a.uniphase", "-o", "b.uniphase", "--bits", "8")
    assert code == 0
    assert out.startswith("wrote b.uniphase (")
    assert "; hidden weights in 8 bits: the error of the quantization is at " in out
    assert run("export", "a.uniphase", "-o", "b.html", "--bits", "16")[0] == 0
    assert run("info", "b.uniphase")[1].splitlines()[0].endswith(" bytes, hidden weights in 8 bits")


def test_pictures_sounds_and_arrays_as_render_writes_them(run):
    write_sound(Path("s.wav"), 200)
    save_drawn("a.uniphase", load("camera", size=16))
    save_drawn("s.uniphase", load("s.wav"))
    for source, target in (("a", "a.png"), ("a", "a.npz"), ("s", "a.wav")):
        code, out, _ = run("export", f"{source}.uniphase", "-o", target)
        assert (code, out) == (0, f"wrote {target} ({Path(target).stat().st_size:,} bytes)\n")
    with Image.open("a.png") as picture:
        assert picture.size == (16, 16)
    assert soundfile.info("a.wav").frames == 200
    assert np.load("a.npz")["values"].shape == (16, 16, 1)
    assert load("a.npz").shape == (16, 16)


def test_the_original_goes_into_the_page(run):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 20, 3), dtype=np.uint8)).save("photo.png")
    save_drawn("a.uniphase", load("photo.png"))
    assert run("export", "a.uniphase", "--original", "photo.png")[0] == 0
    assert '<script type="text/plain" id="original">' in Path("a.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["-o", "a.docx"],
            "a.docx: the suffix is '.docx'; use .html, .uniphase, .onnx, .py, .png, .tif, .tiff, .mp4, ",
        ),
        (["-o", "a.png", "--bits", "8"], "a.png: bits is 8, but only .html and .uniphase have it; leave --bits out"),
        (["-o", "a.png", "--original", "b"], "a.png: original is b, but only .html and .uniphase have it; leave --or"),
        (["-o", "no/a.html"], "no/a.html: there is no directory no; make it first"),
        (["-o", "a.uniphase", "--force"], "a.uniphase: would replace the file that is read; pass another --output"),
        (["-o", "a.html"], "a.html: a page shows up to 3 coordinates, but the network has 4; write .onnx, .py or .npy"),
    ],
)
def test_bad_input_is_one_line(arguments, message, run, here):
    save_drawn("a.uniphase", Grid(np.random.default_rng(0).normal(size=(3, 3, 3, 3, 1))))
    code, out, err = run("export", "a.uniphase", *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(here) == ["a.uniphase"]


def test_bad_files_are_one_line(run, here):
    (here / "a.uniphase").write_bytes(b"\x89PNG and more of a picture")
    for source, message in (("a.uniphase", "cannot be read as a uniphase network"), ("no.uniphase", "no such file")):
        code, out, err = run("export", source, "-o", "b.html")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert message in err
    assert names(here) == ["a.uniphase"]


def test_a_fit_in_fewer_bits(run):
    """What is printed, drawn and stored is the network that the file gives back."""
    arguments = ["camera", "--size", "16", *TINY_ARGUMENTS]
    code, out, _ = run("fit", *arguments, "--bits", "8")
    assert code == 0
    file = load_network("camera.uniphase")
    assert (file.bits, file.training["options"]["bits"]) == (8, 8)
    assert file.metrics is not None
    line = next(line for line in out.splitlines() if line.startswith("hidden weights in 8 bits: PSNR falls from "))
    assert line.endswith(f" to {file.metrics['psnr_db']:.2f} dB")
    from uniphase.jax.render import evaluate_network

    found = evaluate_network(file.network, load("camera", size=16), average=file.domain.sampling == "averages")
    assert found.to_dict() == pytest.approx(file.metrics, rel=1e-5)


def test_several_fits_in_fewer_bits(run):
    arguments = ["camera", "brick", "--size", "16", *TINY_ARGUMENTS, "--bits", "16"]
    assert run("fit", *arguments)[0] == 0
    assert [load_network(f"{name}.uniphase").bits for name in ("camera", "brick")] == [16, 16]
    assert run("fit", *arguments, "--resume")[1].count("(done already)") == 2
