import base64
import re

import numpy as np
import pytest

from helpers.markup import SCRIPT, Seen
from uniphase.signals import markup


@pytest.mark.parametrize(
    "piece",
    [
        markup.section(SCRIPT, SCRIPT),
        markup.stacked(SCRIPT),
        markup.side_by_side(SCRIPT),
        markup.folded(SCRIPT, SCRIPT),
        markup.preformatted(SCRIPT),
        markup.coloured(SCRIPT, "red"),
        markup.captioned(SCRIPT, SCRIPT),
        markup.table([SCRIPT], [[SCRIPT]]),
    ],
)
def test_text_stays_text(piece):
    seen = Seen(piece)
    assert "script" not in seen.tags
    assert set(seen.words) == {SCRIPT}
    assert "background" not in piece.replace("background:none", "")  # it is that of the page, light or dark


def test_words_for_those_who_cannot_see_are_text_as_well():
    words, line = f'"{SCRIPT}', (np.arange(3), np.arange(3))
    assert Seen(markup.image(np.zeros((2, 2, 1), np.uint8), words)).tags == ["img"]
    assert Seen(markup.curves([line], words)).tags == ["svg", "rect", "path"]


def test_what_is_html_is_not_escaped_again():
    assert markup.escaped(markup.Html("<b>a</b>")) == "<b>a</b>"
    assert markup.escaped("<b>a</b>") == "&lt;b&gt;a&lt;/b&gt;"


def test_long_tables_and_long_texts_are_cut():
    seen = Seen(markup.table(["a", "b"], [(str(i), "x" * 5000) for i in range(1000)]))
    assert seen.tags.count("tr") == 34
    assert seen.words[-1] == "… and 968 more"
    assert len(seen.words[3]) == 240


@pytest.mark.parametrize("shape", [(5, 8, 1), (5, 8, 3), (1000, 700, 3), (3000, 2, 1)])
def test_a_picture_has_its_pixels_or_is_reduced(shape):
    pixels = np.full(shape, 7, np.uint8)
    pixels[-1, -1] = 200
    (found,) = Seen(markup.image(pixels, "a")).images
    assert max(found.shape) <= 192
    if max(shape) <= 192:
        np.testing.assert_array_equal(found.reshape(shape), pixels)
    else:
        assert found.shape[0] / found.shape[1] == pytest.approx(shape[0] / shape[1], rel=0.05) or found.shape[1] == 1


def test_a_picture_of_noise_is_small_as_well():
    piece = markup.image(np.random.default_rng(0).integers(0, 256, (192, 192, 3), dtype=np.uint8), "a")
    (found,) = Seen(piece).images
    assert len(base64.b64decode(piece.split(",")[1].split('"')[0])) <= 50_000
    assert 96 < max(found.shape) < 192
    assert 'width="192" height="192"' in piece


def points(path: str) -> list[list[float]]:
    return [[float(number) for number in pair.split()] for pair in re.split("[ML]", path)[1:]]


def test_a_curve_goes_from_corner_to_corner():
    (path,) = Seen(markup.curves([(np.arange(3), np.array([0, 1, 4]))], "a")).paths
    assert points(path) == [[0, 96], [144, 72], [288, 0]]


def test_what_is_not_known_is_a_gap():
    y = np.array([np.nan, 1.0, 2.0, np.inf, 3.0, 4.0])
    (path,) = Seen(markup.curves([(np.arange(6), y)], "a")).paths
    assert re.sub("[^ML]", "", path) == "MLML"


def test_the_extremes_of_a_long_curve_are_seen():
    y = np.zeros(100_000)
    y[12_345], y[67_890] = 1.0, -3.0
    (path,) = Seen(markup.curves([(np.arange(len(y)), y)], "a")).paths
    found = np.array(points(path))
    assert len(found) == 400
    assert {0.0, 96.0} <= set(found[:, 1])
    assert len(path) < 10_000


def test_the_axis_may_be_longer_than_a_curve():
    (path,) = Seen(markup.curves([(np.arange(3), np.arange(3))], "a", span=(0.0, 4.0))).paths
    assert points(path)[-1] == [144, 0]


@pytest.mark.parametrize("y", [[], [np.nan, np.nan], [2.0], [5.0, 5.0]])
def test_curves_of_nothing_and_of_constants(y):
    (path,) = Seen(markup.curves([(np.arange(len(y)), np.array(y))], "a")).paths
    assert all(height == 48 for _, height in points(path))
