import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from uniphase.torch.batches import draw_batch  # noqa: E402


def seeded(seed: int = 0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("samples", "batch"), [(100, 10), (107, 10), (20, 19), (9, 1)])
def test_one_from_each_run(samples, batch):
    for seed in range(20):
        indices = draw_batch(samples, batch, generator=seeded(seed)).sort().values
        assert len(indices) == batch
        assert 0 <= indices[0] <= indices[-1] < samples
        assert (indices.diff() > 0).all()
        assert batch == 1 or indices.diff().max() < 2 * (samples // batch) + samples % batch


def test_all_if_there_are_no_more():
    for batch in (7, 100):
        assert torch.equal(draw_batch(7, batch), torch.arange(7))


def test_every_sample_is_drawn_equally_often():
    """Counts of a binomial law, within six standard deviations; one seed, so that it cannot fail by chance."""
    generator, draws = seeded(), 2000
    counts = torch.stack([draw_batch(23, 4, generator=generator) for _ in range(draws)]).ravel().bincount(minlength=23)
    mean = draws * 4 / 23
    assert (counts - mean).abs().max() < 6 * (mean * (1 - 4 / 23)) ** 0.5


def test_seeds():
    draws = [draw_batch(1000, 50, generator=seeded(seed)) for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_bad_sizes():
    with pytest.raises(ValueError, match="samples is 5 and batch is 0; both must be positive"):
        draw_batch(5, 0)
