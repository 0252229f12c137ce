from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from helpers.small import write_sound
from uniphase.cli.options import Options
from uniphase.cli.subjects import (
    Subject,
    choose_recipe,
    load_signal,
    load_subject,
    make_blueprint,
    shown_part,
    shown_prediction,
)
from uniphase.initialization.blueprint import Blueprint
from uniphase.recipe import Recipe, default_rate, default_recipe, default_size
from uniphase.signals.fields import Grid


def follow(signal: str, options: Options) -> tuple[Subject, Blueprint, Recipe]:
    """What follows from a signal, but for the drawing of the network."""
    subject = load_subject(signal, options)
    blueprint = make_blueprint(subject, "uniform-phase", options)
    return subject, blueprint, choose_recipe(subject.field, blueprint, options)


def test_what_is_not_chosen_follows_from_the_signal(here):
    write_sound(here / "a.wav")
    image, blueprint, recipe = follow("camera", Options(size=128))
    width, depth = default_size(image.field)
    assert (blueprint.width, len(blueprint.layers)) == (width, depth + 2)
    assert recipe == default_recipe(image.field, blueprint, draws=4)  # the network can hold it: averages
    points = Options(size=128, samples="points")
    assert follow("camera", points)[2] == default_recipe(image.field, blueprint)
    adam = follow("camera", replace(points, optimizer="adam"))[2]
    assert (adam.fall, adam.final_fraction) == ("cosine", 0.001)
    # half of the batch visits every sample half as often: 102 times
    assert follow("camera", replace(points, batch=4096))[2] == default_recipe(image.field, blueprint, batch=4096)
    assert image.field.align == "centers"
    paper, blueprint, recipe = follow("camera", Options(size=16, recipe="paper"))
    assert (blueprint.width, len(blueprint.layers), paper.field.align) == (256, 13, "corners")
    assert (recipe.optimizer, recipe.learning_rate, recipe.final_fraction) == ("adam", 1e-4, 1.0)
    assert (recipe.steps, recipe.batch) == (3000, 256)
    _, blueprint, recipe = follow("a.wav", Options(recipe="paper"))
    assert (len(blueprint.layers), recipe.steps, recipe.learning_rate) == (7, 5000, 5e-5)


def test_the_paper_has_its_own_domain_and_epsilon(here):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 16), dtype=np.uint8)).save("a.png")
    ours, paper = (load_subject("a.png", Options(recipe=recipe)) for recipe in ("default", "paper"))
    assert ours.field.extents == ((-0.5, 0.5), (-1.0, 1.0))
    assert (paper.field.extents, paper.moments.epsilon) == (((-1.0, 1.0), (-1.0, 1.0)), 1e-6)
    write_sound(here / "a.wav")
    assert load_signal("a.wav", Options(recipe="paper"), None).extents == ((-100.0, 100.0),)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(optimizer="adam"), ("adam", 1e-3, 0.001)),
        (Options(optimizer="adam", lr=0.5), ("adam", 0.5, 0.001)),
        (Options(optimizer="muon", lr=0.5), ("muon", 0.5, 0.001)),
        (Options(recipe="paper", optimizer="muon"), ("muon", None, 1.0)),
        (Options(recipe="paper", lr=0.5), ("adam", 0.5, 1.0)),
    ],
)
def test_a_choice_replaces_one_entry_of_the_recipe(options, expected):
    _, blueprint, recipe = follow("camera", replace(options, size=8, width=8))
    optimizer, rate, final_fraction = expected
    rate = default_rate(blueprint) if rate is None else rate
    assert (recipe.optimizer, recipe.learning_rate, recipe.final_fraction) == (optimizer, rate, final_fraction)


def test_a_signal_made_smaller_is_tested_as_stored(monkeypatch):
    assert load_subject("camera", Options(size=16)).test.shape == (512, 512)
    assert load_subject("camera", Options(size=16, eval_size=32)).test.shape == (32, 32)
    assert load_subject("camera", Options(size=512)).test is None
    monkeypatch.setattr("uniphase.cli.subjects.MANY_SAMPLES", 512 * 512 - 1)
    with pytest.warns(UserWarning, match="camera: not tested on all of its 262,144 samples; pass --eval-size"):
        assert load_subject("camera", Options(size=16)).test is None


def test_a_large_field_is_drawn_from_samples_where_they_are(monkeypatch):
    field = Grid(np.arange(101 * 53 * 2.0).reshape(101, 53, 2, 1), extents=((0.0, 1.0), (0.0, 1.0), (0.0, 9.0)))
    assert shown_part(field) is field
    monkeypatch.setattr("uniphase.cli.subjects.MANY_SAMPLES", 1000)
    shown = shown_part(field)
    assert shown.samples <= 2 * 1000
    rows = {tuple(x): v for x, v in zip(field.coordinates().round(9), field.flat_values()[:, 0], strict=True)}
    kept = zip(shown.coordinates().round(9), shown.flat_values()[:, 0], strict=True)
    assert all(rows[tuple(x)] == v for x, v in kept)
    assert shown.value_range == field.value_range
    np.testing.assert_array_equal(shown_prediction(None, field, field.values), shown.values)
