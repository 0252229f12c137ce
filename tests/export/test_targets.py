import shutil
from pathlib import Path

import numpy as np
import pytest

from helpers.small import names, save_drawn
from uniphase.export.networks import Loss, quantization_loss, read_tensors, with_bits
from uniphase.export.targets import export_network
from uniphase.jax.files import load_network, save_network
from uniphase.jax.render import evaluate_network, render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid
from uniphase.signals.metrics import psnr_db
from uniphase.storage.network_file import NetworkFile, read_header


def test_the_same_network_in_fewer_bits():
    save_drawn("a.uniphase", load("camera", size=16), width=32)
    loss = export_network("a.uniphase", "b.uniphase", bits=8)
    before, after = load_network("a.uniphase"), load_network("b.uniphase")
    assert (before.bits, after.bits) == (None, 8)
    assert after.domain == before.domain
    assert Path("b.uniphase").stat().st_size < Path("a.uniphase").stat().st_size - 2000
    shape = (64, 64)
    exact, rounded = (render(file.network, shape) for file in (before, after))
    # The loss is measured at 4,096 random positions, of which a few hundred are independent.
    assert loss.quantized_psnr_db == pytest.approx(psnr_db(rounded, exact, before.value_range), abs=0.5)
    assert str(loss).startswith("the error of the quantization is at ")
    assert export_network("a.uniphase", "c.uniphase") is None
    assert read_header("c.uniphase")["format"] == 1


def test_a_network_that_was_measured_keeps_its_metrics_and_says_what_is_lost():
    field = load("camera", size=16)
    network = save_drawn("a.uniphase", field)
    metrics = evaluate_network(network, field)
    save_network("a.uniphase", NetworkFile.of(network, field, metrics=metrics))
    loss = export_network("a.uniphase", "b.uniphase", bits=8)
    small = load_network("b.uniphase")
    assert small.metrics == metrics.to_dict()
    assert small.training == {"quantized_psnr_db": loss.quantized_psnr_db}
    assert loss.psnr_db == pytest.approx(metrics.psnr_db)
    # The errors are not quite independent, as the estimate has it, and the quantization's is a hundredth of the other.
    assert loss.quantized_psnr_db == pytest.approx(evaluate_network(small.network, field).psnr_db, abs=0.2)


def test_sixteen_bits_lose_a_256th_of_what_eight_lose():
    save_drawn("a.uniphase", load("camera", size=16), width=32)
    file = read_tensors("a.uniphase")
    eight, sixteen = (quantization_loss(file, with_bits(file, bits)).quantized_psnr_db for bits in (8, 16))
    assert sixteen - eight == pytest.approx(20 * np.log10(32767 / 127), abs=3)  # rounding errors differ by chance


def test_a_loss_in_words():
    assert str(Loss(34.0, 33.5)) == "PSNR falls from 34.00 to about 33.50 dB"


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("a.docx", {}, "a.docx: the suffix is '.docx'; use .html, .uniphase, .onnx or .py"),
        ("a.onnx", {"bits": 8}, "a.onnx: bits is 8, but only .html and .uniphase have a choice; leave bits out"),
        ("a.html", {"bits": 4}, "bits is 4; it must be 8 or 16, or left out for weights as they are"),
        (
            "a.py",
            {"original": "a.png"},
            "a.py: original is a.png, but only a page (.html) shows it; leave original out",
        ),
        ("a.html", {"original": "no.png"}, "no.png: no such file, nor one of the signals "),
        ("no/a.html", {}, "no/a.html: there is no directory no; make it first"),
        ("deep", {}, "deep: the suffix is ''; use .html, .uniphase, .onnx or .py"),
    ],
)
def test_what_cannot_be_exported(target, options, message, here):
    save_drawn("a.uniphase", load("camera", size=16))
    with pytest.raises((ValueError, OSError)) as error:
        export_network("a.uniphase", target, **options)
    assert str(error.value).startswith(message)
    assert names(here) == ["a.uniphase"]


def test_four_coordinates_have_no_page(here):
    save_drawn("a.uniphase", Grid(np.random.default_rng(0).normal(size=(3, 3, 3, 3, 1))))
    with pytest.raises(
        ValueError, match=r"^a.html: a page shows up to 3 coordinates, but the network has 4; write .on"
    ):
        export_network("a.uniphase", "a.html")
    export_network("a.uniphase", "a.py")
    assert names(here) == ["a.py", "a.uniphase"]


@pytest.mark.parametrize("target", ["b.html", "b.uniphase", "b.onnx", "b.py"])
def test_a_foreign_or_truncated_file(target, here):
    save_drawn("a.uniphase", load("camera", size=16))
    content = Path("a.uniphase").read_bytes()
    for damaged in (content[:-10], content[:20], b"PNG", b""):
        Path("a.uniphase").write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"^a.uniphase: .*(cannot be read as|an empty file, not) a uniphase network"
        ):
            export_network("a.uniphase", target)
    assert names(here) == ["a.uniphase"]


def test_a_full_disk_leaves_nothing(here, monkeypatch):
    save_drawn("a.uniphase", load("camera", size=16))
    shutil.copy("a.uniphase", "b.uniphase")

    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left on device"):
        export_network("a.uniphase", "b.html")
    assert names(here) == ["a.uniphase", "b.uniphase"]
