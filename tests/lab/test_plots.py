from PIL import Image

from helpers.fakes import fill
from uniphase.lab.experiments.cameraman import EXPERIMENT
from uniphase.lab.plots import save
from uniphase.lab.store import Store


def test_a_figure_gives_the_same_png_and_pdf_every_time(tmp_path):
    store = Store(tmp_path / "store")
    fill(store, EXPERIMENT.runs("quick", 1, store)[:2])
    for name in ("first", "second"):
        save(EXPERIMENT.figures("quick", 1, store)["cameraman"], tmp_path / name)
    with Image.open(tmp_path / "first.png") as picture:
        assert picture.width > 300
    assert (tmp_path / "first.pdf").read_bytes().startswith(b"%PDF")
    for suffix in (".png", ".pdf"):
        assert (tmp_path / f"first{suffix}").read_bytes() == (tmp_path / f"second{suffix}").read_bytes()
