import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from uniphase.torch.batches import draw_batch  # noqa: E402


@pytest.mark.parametrize(("samples", "batch"), [(100, 10), (107, 10), (20, 19), (9, 1)])
def test_one_from_each_run(samples, batch):
    for step in range(20):
        indices = draw_batch(samples, batch, step).sort().values
        assert len(indices) == batch
        assert 0 <= indices[0] <= indices[-1] < samples
        assert (indices.diff() > 0).all()
        assert batch == 1 or indices.diff().max() <= 2 * -(-samples // batch)


def test_samples_are_visited_in_turn():
    """The second round is in another order; where runs have a sample more, a round leaves out others."""
    rounds = [torch.stack([draw_batch(960, 40, 24 * number + i) for i in range(24)]) for number in range(2)]
    for each in rounds:
        assert torch.equal(each.ravel().sort().values, torch.arange(960))
    assert not torch.equal(*rounds)
    counts = torch.cat([draw_batch(23, 4, step) for step in range(5 * 200)]).bincount(minlength=23)
    mean = 200 * 20 / 23  # a sample is left out of a round by chance: six standard deviations of a binomial law
    assert (counts - mean).abs().max() < 6 * (200 * (20 / 23) * (3 / 23)) ** 0.5


def test_visits_of_a_run_are_spread():
    """Each eighth of a run is visited within any sixteen steps; of sixteen random ones one in eight would not be."""
    steps = np.stack([draw_batch(64 * 100, 64, step).numpy() for step in range(100)])
    for first in range(100 - 16):
        visited = steps[first : first + 16] // 100, steps[first : first + 16] % 100 // 12.5
        assert len(set(zip(*(each.ravel().tolist() for each in visited), strict=True))) > 0.97 * 64 * 8


def test_all_if_there_are_no_more():
    for batch in (7, 100):
        assert torch.equal(draw_batch(7, batch, 3), torch.arange(7))


def test_seeds():
    draws = [draw_batch(1000, 50, 7, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_bad_sizes():
    with pytest.raises(ValueError, match="samples is 5 and batch is 0; both must be positive"):
        draw_batch(5, 0, 0)
