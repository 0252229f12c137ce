import math

import numpy as np
import pytest

from uniphase.fitting.batches import round_steps, run_starts, run_strides

SIZES = [(100, 10), (107, 10), (20, 19), (9, 1), (262_144, 4096), (2**31 - 5, 8192)]


@pytest.mark.parametrize(("samples", "batch"), SIZES)
def test_runs_are_equal_to_a_sample_and_visited_in_full(samples, batch):
    starts, run = run_starts(samples, batch).astype(np.int64), samples // batch
    lengths = np.diff([*starts, samples])
    assert starts[0] == 0
    assert set(lengths.tolist()) <= {run, run + 1}
    for stride in run_strides(samples, batch):
        assert math.gcd(stride, run) == 1


@pytest.mark.parametrize("run", [22, 64, 500, 1000, 1024, 2310])
def test_visits_are_spread_at_any_number_of_them(run):
    """The largest gap between visits is at most 2.5 times that of evenly spread ones.

    Of random ones it is log(n) times: 4.5 of a hundred.
    """
    for stride in run_strides(run, 1):
        for visits in range(2, min(run, 200)):
            places = np.sort(stride * np.arange(visits) % run)
            assert np.diff([*places, places[0] + run]).max() <= 2.5 * run / visits


def test_products_stay_within_32_bits():
    assert round_steps(4096 * 100, 4096) == 100
    for samples, batch in ((2**31 - 5, 1), (2**31 - 5, 8192), (2**31 - 5, 65536)):
        largest = max(run_strides(samples, batch)) * (round_steps(samples, batch) - 1) + samples // batch
        assert largest < 2**31
