import pytest
from matplotlib.figure import Figure

from helpers.pictures import FIELDS, LOSSES, assert_picture, noisy
from uniphase.plots.preview import preview_figure, write_preview
from uniphase.signals.metrics import evaluate


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_has_a_preview(name, tmp_path):
    field = FIELDS[name]
    prediction = noisy(field)
    write_preview(tmp_path / "a.png", field, prediction, LOSSES, evaluate(prediction, field), name)
    assert_picture(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("title", ["costs 5$ or $6", "写真.png", r"\frac"])
def test_a_file_may_have_any_name(title, tmp_path):
    field = FIELDS["gray"]
    write_preview(tmp_path / "a.png", field, field.values, LOSSES, evaluate(field.values, field), title)
    assert_picture(tmp_path / "a.png")


def test_a_preview_is_also_a_figure_to_go_on_with():
    field = FIELDS["gray"]
    figure = preview_figure(field, field.values, LOSSES, evaluate(field.values, field), "a title")
    assert isinstance(figure, Figure)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:4] == ["truth", "fit, PSNR inf dB", "|error|", "loss"]
    assert figure.get_suptitle() == "a title"
