import pytest
from matplotlib.figure import Figure

from helpers.pictures import FIELDS, LOSSES, assert_picture, noisy
from uniphase.plots.drawing import new_figure
from uniphase.plots.preview import preview_figure, write_preview
from uniphase.signals.metrics import evaluate


def without_layout(width: float, height: float) -> Figure:
    """The layout takes most of the time."""
    return Figure(figsize=(width, height))


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_has_a_preview(name, tmp_path, monkeypatch):
    field = FIELDS[name]
    if name not in ("gray", "slender", "curve", "sound"):  # these have the panels of all
        monkeypatch.setattr("uniphase.plots.preview.new_figure", without_layout)
    prediction = noisy(field)
    write_preview(tmp_path / "a.png", field, prediction, LOSSES, evaluate(prediction, field), name)
    assert_picture(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("title", ["costs 5$ or $6", "写真.png", r"\frac"])
def test_a_file_may_have_any_name(title, tmp_path, monkeypatch):
    field = FIELDS["gray"]
    panel = new_figure(4.0, 3.0)
    panel.subplots()
    monkeypatch.setattr("uniphase.plots.preview._image_preview", lambda *_: panel)  # only the title matters here
    write_preview(tmp_path / "a.png", field, field.values, LOSSES, evaluate(field.values, field), title)
    assert_picture(tmp_path / "a.png")


def test_a_preview_is_also_a_figure_to_go_on_with():
    field = FIELDS["gray"]
    figure = preview_figure(field, field.values, LOSSES, evaluate(field.values, field), "a title")
    assert isinstance(figure, Figure)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:4] == ["truth", "fit, PSNR inf dB", "|error|", "loss"]
    assert figure.get_suptitle() == "a title"
