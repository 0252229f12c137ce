import numpy as np
import optax
import pytest

from helpers.fits import FIELD, assert_identical, interrupted, network
from helpers.interrupts import Interrupt
from uniphase.fitting.loop import Checkpoint, State
from uniphase.fitting.plan import FallingPlan
from uniphase.initialization.moments import estimate_moments
from uniphase.recipe import Recipe
from uniphase.signals.fields import Grid
from uniphase.training.checkpoints import TreeFiles
from uniphase.training.fit import fit
from uniphase.training.terms import Values


@pytest.mark.parametrize("optimizer", ["muon", "adam"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path, optimizer, monkeypatch):
    recipe = Recipe(optimizer, 0.02, 0.1, 95, 100)
    whole = fit(network(), FIELD, recipe=recipe)
    path = tmp_path / "state"
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    for calls in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            fit(network(), FIELD, recipe=recipe, checkpoint=path, resume=True, callback=Interrupt(calls))
    rest = fit(network(), FIELD, recipe=recipe, checkpoint=path, resume=True)
    assert_identical(rest.network, whole.network)
    np.testing.assert_array_equal(rest.losses, whole.losses)


def test_checkpoints_are_written_while_it_runs(tmp_path, monkeypatch):
    path, seen = tmp_path / "state", []
    monkeypatch.setattr("uniphase.fitting.plan._TELL_SECONDS", 0.0)
    look = lambda progress: seen.append(path.exists())  # noqa: E731
    fit(network(), FIELD, steps=30, checkpoint=path, checkpoint_seconds=0.0, callback=look)
    assert seen == [True, True, True]  # it is written before the callback of every ten steps


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    """Of another seed, of another network of the same shape, and of other values with the same moments."""
    path = interrupted(tmp_path, network(), FIELD, steps=20)
    mirrored = Grid(np.flip(FIELD.values, axis=0), extents=FIELD.extents)
    moments = estimate_moments(FIELD)
    for model, field, options in [
        (network(), FIELD, {"seed": 1}),
        (network(seed=1), FIELD, {}),
        (network(), mirrored, {"moments": moments}),
        (network(), Values(FIELD), {"optimizer": optax.adam(1e-3)}),
    ]:
        with pytest.raises(ValueError, match=r"a checkpoint of another run|resume with the settings of the saved run"):
            fit(model, field, steps=20, checkpoint=path, resume=True, **options)
    assert fit(network(), FIELD, steps=20, checkpoint=path, resume=True).steps == 20


def test_the_losses_are_not_copied(monkeypatch):
    """Every call gets the one array of the run: a copy for each would cost the square of the number of steps."""
    seen, review = [], FallingPlan.review

    def look(self, good, state, losses):
        seen.append(losses)
        return review(self, good, state, losses)

    monkeypatch.setattr(FallingPlan, "review", look)
    fit(network(), FIELD, steps=30)
    assert [len(losses) for losses in seen] == [30, 30, 30]
    assert all(losses is seen[0] for losses in seen)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"identity": "a"},
        {"identity": "a", "numbers": {"step": "10"}},
        {"identity": "a", "numbers": {"step": 21}},
        {"identity": "a", "numbers": {"step": 10, "best": None}},
        {"identity": "a", "numbers": {"step": 10, "path": 1}},
    ],
)
def test_a_checkpoint_with_other_numbers_is_refused(tmp_path, header):
    arrays = {"weight": np.ones(3)}, {"mean": np.zeros(3)}, np.zeros(20)
    TreeFiles().save(tmp_path / "a", arrays, header)
    message = "a damaged checkpoint .its numbers are" if header else "a checkpoint of another run"
    with pytest.raises(ValueError, match=f"a: {message}"):
        Checkpoint(tmp_path / "a", 1.0, "a", TreeFiles()).restore(State(*arrays[:2]), arrays[2])
