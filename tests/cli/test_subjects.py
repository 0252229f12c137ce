from dataclasses import replace

import numpy as np
import pytest

from helpers.small import write_sound
from uniphase.cli.fit import prepare
from uniphase.cli.subjects import Options, shown_part
from uniphase.recipe import default_rate, default_recipe, default_size
from uniphase.signals.fields import Grid


def test_what_is_not_chosen_follows_from_the_signal(here):
    write_sound(here / "a.wav")
    image = prepare("camera", Options(size=128))
    width, depth = default_size(image.subject.field)
    assert (image.blueprint.width, len(image.blueprint.layers)) == (width, depth + 2)
    assert image.recipe == default_recipe(image.subject.field, image.network)
    assert image.subject.field.align == "centers"
    paper = prepare("camera", Options(size=16, recipe="paper"))
    assert (paper.blueprint.width, len(paper.blueprint.layers), paper.subject.field.align) == (256, 13, "corners")
    assert (paper.recipe.optimizer, paper.recipe.learning_rate, paper.recipe.final_fraction) == ("adam", 1e-4, 1.0)
    assert (paper.recipe.steps, paper.recipe.batch) == (3000, 256)
    sound = prepare("a.wav", Options(recipe="paper"))
    assert (len(sound.blueprint.layers), sound.recipe.steps, sound.recipe.learning_rate) == (7, 5000, 5e-5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(optimizer="adam"), ("adam", 1e-3, 0.01)),
        (Options(optimizer="adam", lr=0.5), ("adam", 0.5, 0.01)),
        (Options(optimizer="muon", lr=0.5), ("muon", 0.5, 0.01)),
        (Options(recipe="paper", optimizer="muon"), ("muon", None, 1.0)),
        (Options(recipe="paper", lr=0.5), ("adam", 0.5, 1.0)),
    ],
)
def test_a_choice_replaces_one_entry_of_the_recipe(options, expected):
    job = prepare("camera", replace(options, size=8, width=8))
    optimizer, rate, final_fraction = expected
    rate = default_rate(job.network) if rate is None else rate
    recipe = job.recipe
    assert (recipe.optimizer, recipe.learning_rate, recipe.final_fraction) == (optimizer, rate, final_fraction)


def test_a_signal_made_smaller_is_tested_as_stored(monkeypatch):
    assert prepare("camera", Options(size=16)).subject.test.shape == (512, 512)
    assert prepare("camera", Options(size=16, eval_size=32)).subject.test.shape == (32, 32)
    assert prepare("camera", Options(size=512, width=8)).subject.test is None
    monkeypatch.setattr("uniphase.cli.subjects.MANY_SAMPLES", 512 * 512 - 1)
    with pytest.warns(UserWarning, match="camera: not tested on all of its 262,144 samples; see --eval-size"):
        assert prepare("camera", Options(size=16)).subject.test is None


def test_a_large_field_is_drawn_from_samples_where_they_are(monkeypatch):
    field = Grid(np.arange(101 * 53 * 2.0).reshape(101, 53, 2, 1), extents=((0.0, 1.0), (0.0, 1.0), (0.0, 9.0)))
    assert shown_part(field) is field
    monkeypatch.setattr("uniphase.cli.subjects.MANY_SAMPLES", 1000)
    shown = shown_part(field)
    assert shown.samples <= 2 * 1000
    rows = {tuple(x): v for x, v in zip(field.coordinates().round(9), field.flat_values()[:, 0], strict=True)}
    kept = zip(shown.coordinates().round(9), shown.flat_values()[:, 0], strict=True)
    assert all(rows[tuple(x)] == v for x, v in kept)
