import pytest

from helpers.small import TINY, names, write_sound
from uniphase.cli.compare import compare
from uniphase.cli.subjects import Options


def test_a_comparison_has_a_row_for_each_scheme_and_for_the_spline(here):
    told = []
    options = Options(**TINY, eval_size=32)
    result = compare("camera", ["uniform-phase", "relu"], options, seeds=2, callback=lambda name, _: told.append(name))
    assert [row.scheme for row in result.rows] == ["uniform-phase", "relu", "bicubic"]
    assert [(len(row.train), len(row.test)) for row in result.rows] == [(2, 2), (2, 2), (0, 1)]
    assert result.rows[0].train[0] != result.rows[0].train[1]
    assert set(told) == {f"{name}, seed {seed}" for name in ("uniform-phase", "relu") for seed in (0, 1)}
    assert result.rows[-1].test[0].snr_db > 8  # measured: 9.4
    assert names(here) == ["camera.compare.curves.png", "camera.compare.png"]
    with pytest.raises(FileExistsError, match="exists; pass --force"):
        compare("camera", ["relu"], options)


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_comparison_leaves_out_what_diverges(here):
    options = Options(**TINY | {"lr": 1e9})
    with (
        pytest.warns(UserWarning, match="uniform-phase: left out, as the loss exploded"),
        pytest.raises(ValueError, match=r"camera: every run diverged; pass a smaller --lr than 1e\+09"),
    ):
        compare("camera", ["uniform-phase"], options)
    assert names(here) == []


def test_a_comparison_of_sounds_goes_where_it_is_told(here):
    write_sound(here / "a.wav")
    (here / "out").mkdir()
    options = Options(**TINY | {"size": None})
    assert compare("a.wav", ["sm20"], options, output="out").rows[-1].test == ()
    compare("a.wav", ["sm20"], options, output="b.png")
    assert names(here) == ["a.wav", "b.curves.png", "b.png", "out"]
    assert names(here / "out") == ["a.compare.curves.png", "a.compare.png"]
    for output, message in (("b.jpg", "the suffix is '.jpg'"), ("none/b.png", "there is no directory none")):
        with pytest.raises((ValueError, OSError), match=message):
            compare("a.wav", ["sm20"], options, output=output)
