import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from helpers.small import TINY, TINY_ARGUMENTS, Ran, names, run_in, write_sound
from uniphase.cli import compare as module
from uniphase.cli.compare import Comparison, compare_schemes
from uniphase.cli.options import Options
from uniphase.cli.subjects import choose_recipe, load_subject, make_blueprint
from uniphase.signals.metrics import evaluate

ARGUMENTS = ["--schemes", "uniform-phase,relu", "--seeds", "2", "--size", "16", "--eval-size", "32", *TINY_ARGUMENTS]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory) -> tuple[Ran, Comparison]:
    """A comparison that was run once: what the command printed, and the result."""
    results = []

    def record(*arguments, **options):
        results.append(compare_schemes(*arguments, **options))
        return results[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "compare_schemes", record)
        ran = run_in(tmp_path_factory.mktemp("compare"), "compare", "camera", *ARGUMENTS)
    return ran, results[0]


def test_compare(run, comparison, monkeypatch):
    ran, result = comparison
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["scheme", "uniform-phase", "relu", "bicubic"]
    assert [line.count("±") for line in lines[:4]] == [0, 4, 4, 0]
    assert lines[3].split()[1:3] == ["exact", "exact"]
    assert lines[-2].startswith("recipe: optimizer muon, learning_rate ")
    assert lines[-1] == "wrote camera.compare.png, camera.compare.curves.png"
    assert "relu, seed 1  step 20/20" in ran.err
    for path in ran.directory.iterdir():
        Image.open(path).verify()
    monkeypatch.setattr(module, "compare_schemes", lambda *_, **__: result)
    code, out, err = run("compare", "camera", *ARGUMENTS, "--json", "-o", "a.png")
    report = json.loads(out)
    assert (code, err, list(report)) == (0, "", ["rows", "recipe", "output"])
    assert [row["scheme"] for row in report["rows"]] == ["uniform-phase", "relu", "bicubic"]
    assert {len(row["test"]["snr_db"]) for row in report["rows"][:2]} == {2}
    assert report["rows"][2]["train"] is None
    assert list(report["recipe"]) == ["uniform-phase", "relu"]


def test_a_comparison_has_a_row_for_each_scheme_and_for_the_spline(comparison, monkeypatch):
    ran, result = comparison
    rows = result.rows
    assert [row.scheme for row in rows] == ["uniform-phase", "relu", "bicubic"]
    assert [(len(row.train), len(row.test)) for row in rows] == [(2, 2), (2, 2), (0, 1)]
    assert rows[0].train[0] != rows[0].train[1]
    told = [line.partition("  ")[0] for line in ran.err.splitlines()]
    assert set(told) == {f"{name}, seed {seed}" for name in ("uniform-phase", "relu") for seed in (0, 1)}
    assert rows[-1].test[0].snr_db > 8  # measured: 9.4
    assert names(ran.directory) == ["camera.compare.curves.png", "camera.compare.png"]
    monkeypatch.chdir(ran.directory)
    with pytest.raises(FileExistsError, match="exists; pass --force"):
        compare_schemes("camera", ["relu"], Options(**TINY, eval_size=32))


@pytest.fixture
def no_training(monkeypatch):
    """Fits that end before they begin, with a perfect result; the networks and recipes that they were given."""
    given = []

    def fit(network, term, *, recipe, **_):
        given.append((network, recipe))
        field = term.field
        metrics = evaluate(field.values, field)
        values = {"prediction": field.values, "metrics": metrics, "losses": np.ones(3)}
        values |= {"test_prediction": None, "test_metrics": None}
        return SimpleNamespace(network=network, **values)

    monkeypatch.setattr("uniphase.training.fit.fit", fit)
    return given


def test_a_picture_shows_what_was_measured(comparison):
    """The network is evaluated once on the test field, not again for the picture."""
    rows = comparison[1].rows
    subject = load_subject("camera", Options(**TINY, eval_size=32))
    values = {"prediction": subject.field.values, "test_prediction": subject.test.values}
    result = SimpleNamespace(network=None, metrics=rows[0].train[0], test_metrics=rows[0].test[0], **values)
    column = module._column(result, subject.field, subject.test)
    np.testing.assert_array_equal(column.train, subject.field.values)
    np.testing.assert_array_equal(column.test, subject.test.values)


def test_each_scheme_has_the_recipe_of_its_own_network(run, no_training):
    """tanh-pe has one hidden layer more, which share the rate; whatever the order of the list."""
    options = Options(**TINY, eval_size=16)
    subject = load_subject("camera", options)
    expected = {
        name: choose_recipe(subject.field, make_blueprint(subject, name, options), options)
        for name in ("uniform-phase", "tanh-pe")
    }
    assert expected["tanh-pe"].learning_rate < expected["uniform-phase"].learning_rate
    for schemes in (["uniform-phase", "tanh-pe"], ["tanh-pe", "uniform-phase"]):
        no_training.clear()
        assert compare_schemes("camera", schemes, options, force=True).recipes == expected
        assert [recipe for _, recipe in no_training] == [expected[name] for name in schemes]
    arguments = ["--size", "16", "--eval-size", "16", *TINY_ARGUMENTS, "--force"]
    code, out, _ = run("compare", "camera", "--schemes", "uniform-phase,tanh-pe", *arguments)
    lines = out.splitlines()
    assert code == 0
    assert lines[-3].startswith("recipe of uniform-phase: optimizer muon, learning_rate ")
    assert lines[-2].startswith("recipe of tanh-pe: optimizer muon, learning_rate ")


def test_omega_is_for_the_schemes_that_have_one(no_training):
    compare_schemes("camera", ["uniform-phase", "sm20"], Options(**TINY, eval_size=16, omega=12.5))
    assert [network.layers[0].omega for network, _ in no_training] == [1.0, 12.5]
    with pytest.raises(ValueError, match=r"omega is 12\.5, but none of uniform-phase, relu has one; leave it out"):
        compare_schemes("camera", ["uniform-phase", "relu"], Options(**TINY, omega=12.5))


@pytest.mark.filterwarnings("ignore:the loss exploded")
def test_a_comparison_leaves_out_what_diverges(here):
    options = Options(**TINY | {"lr": 1e9})
    with (
        pytest.warns(UserWarning, match="uniform-phase: left out, because the fit diverged 6 times"),
        pytest.raises(ValueError, match=r"camera: every run diverged; pass a smaller --lr than 1e\+09"),
    ):
        compare_schemes("camera", ["uniform-phase"], options)
    assert names(here) == []


def test_a_comparison_of_sounds_goes_where_it_is_told(here, no_training):
    write_sound(here / "a.wav")
    (here / "out").mkdir()
    options = Options(**TINY | {"size": None})
    assert compare_schemes("a.wav", ["sm20"], options, output="out").rows[-1].test == ()
    compare_schemes("a.wav", ["sm20"], options, output="b.png")
    assert names(here) == ["a.wav", "b.curves.png", "b.png", "out"]
    assert names(here / "out") == ["a.compare.curves.png", "a.compare.png"]
    for output, message in (("b.jpg", "the suffix is '.jpg'"), ("none/b.png", "there is no directory none")):
        with pytest.raises((ValueError, OSError), match=message):
            compare_schemes("a.wav", ["sm20"], options, output=output)


def test_compare_without_a_test_has_a_row_for_the_spline_all_the_same(run, here, no_training):
    write_sound(here / "a.wav")
    code, out, _ = run("compare", "a.wav", "--schemes", "sm20", *TINY_ARGUMENTS)
    assert code == 0
    words = out.splitlines()[2].split("  ")
    assert [word.strip() for word in words if word] == ["cubic spline", "exact", "exact", *["not applicable"] * 2]


def test_only_images_have_a_bicubic_spline(no_training):
    np.save("curve.npy", np.sin(np.arange(20.0)))
    np.save("volume.npy", np.random.default_rng(0).normal(size=(5, 6, 7)))
    for signal, name in (("curve.npy", "cubic spline"), ("volume.npy", "cubic spline"), ("camera", "bicubic")):
        size = 16 if signal == "camera" else None
        options = Options(**TINY | {"size": size, "eval_size": size})
        assert compare_schemes(signal, ["relu"], options).rows[-1].scheme == name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.png", "--schemes", "relu,wavelet"], "there is no scheme 'wavelet'; the known ones are"),
        (["a.png", "--schemes", "relu,relu"], "schemes has 'relu' 2 times; name each once"),
        (["a.png", "--schemes", "relu", "--seeds", "0"], "seeds is 0; it must be at least 1"),
        (["none.png", "--schemes", "relu"], "none.png: no such file"),
    ],
)
def test_what_cannot_be_compared(run, here, arguments, message):
    Image.new("L", (8, 8)).save("a.png")
    code, out, err = run("compare", *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(here) == ["a.png"]
