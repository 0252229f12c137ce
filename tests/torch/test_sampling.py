import numpy as np
import pytest

from uniphase.signals.fields import Grid, Points

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

import helpers.torch_models  # noqa: E402, F401  # one thread
from uniphase.torch.sampling import Batches, Samples  # noqa: E402

VALUES = np.arange(24.0).reshape(4, 6, 1)
GRID = Grid(VALUES, extents=((2.0, 5.0), (-1.0, 9.0)))
PLACE = torch.device("cpu"), torch.float64


def batches(field, sampling="points", size=8, seed=0) -> Batches:
    return Batches(Samples.of(field, *PLACE), sampling, size, seed)


def test_values_belong_to_their_positions():
    points = Points(GRID.coordinates(), GRID.flat_values())
    for field in (GRID, points):
        batch = batches(field).draw(3)
        rows = batch.values[:, 0].long()
        assert len(batch) == len(set(rows.tolist())) == 8
        torch.testing.assert_close(batch.positions, torch.tensor(GRID.coordinates())[rows][:, None])


def test_missing_samples_are_never_drawn():
    values = VALUES.copy()
    values[1, 2:5] = np.nan
    holed = Grid(values, extents=GRID.extents)
    every = batches(holed, size=24).draw(0)
    assert len(every) == 21
    expected = torch.tensor(GRID.coordinates())[every.values[:, 0].long()]
    torch.testing.assert_close(every.positions[:, 0], expected)
    assert all(batches(holed).draw(i).values.isfinite().all() for i in range(5))


def test_positions_fill_the_cells_evenly():
    drawn = [batches(GRID, "averages", 24).draw(i) for i in range(200)]
    for positions in torch.stack([batch.positions for batch in drawn]).unbind(dim=2):
        inside = (positions - torch.tensor(GRID.coordinates())) / torch.tensor(GRID.spacing)
        assert inside.abs().max() < 0.5
        # 4,800 uniform numbers of variance 1/12: six standard errors of the mean and of the variance
        assert inside.mean(dim=(0, 1)).abs().max() < 6 * (1 / 12 / 4800) ** 0.5
        assert (inside.var(dim=(0, 1)) - 1 / 12).abs().max() < 6 * (1 / 180 / 4800) ** 0.5
    for batch in drawn:  # each of the two pairs is opposite in its cell
        one, other = (pair.mean(dim=1) for pair in batch.positions.chunk(2, dim=1))
        torch.testing.assert_close(one, torch.tensor(GRID.coordinates()))
        torch.testing.assert_close(other, torch.tensor(GRID.coordinates()))
    shifts = torch.stack([batch.positions[:, ::2] - torch.tensor(GRID.coordinates())[:, None] for batch in drawn])
    one, other = (shifts / torch.tensor(GRID.spacing)).unbind(dim=2)
    # products of independent uniform numbers, of variance 1/144: six standard errors
    assert (one * other).mean(dim=(0, 1)).abs().max() < 6 * (1 / 144 / 4800) ** 0.5


def test_a_batch_depends_on_its_number_and_the_seed_alone():
    one, state = batches(GRID, "averages"), torch.get_rng_state()
    assert all(torch.equal(a, b) for a, b in zip(one.draw(5), batches(GRID, "averages").draw(5), strict=True))
    for other in (one.draw(6), batches(GRID, "averages", seed=1).draw(5)):
        assert not torch.equal(one.draw(5).positions, other.positions)
    assert torch.equal(torch.get_rng_state(), state)  # nobody else's numbers are used up


def test_bytes_stay_bytes_until_they_are_drawn():
    pixels = Grid(VALUES.astype(np.uint8))
    assert Samples.of(pixels, *PLACE).values.dtype == torch.uint8
    assert batches(pixels).draw(0).values.dtype == torch.float64
    assert Samples.of(Grid(VALUES.astype(np.uint16)), *PLACE).values.dtype == torch.float64
