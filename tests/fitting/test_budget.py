import numpy as np
import pytest

from uniphase.fitting.budget import Budget
from uniphase.fitting.loop import Checkpoint, State, Training
from uniphase.fitting.plan import FallingPlan
from uniphase.recipe import Recipe


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands at what one writes into it."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


class Nowhere:
    """Files that are never written."""

    def save(self, path, tree, header):
        raise AssertionError

    def load(self, path, like):
        raise AssertionError


def train(clock, seconds: float | None, step_seconds: float, steps: int, looking: float = 0.0) -> tuple[State, str]:
    """A run whose steps, and looks at it, take as long as is said."""

    def take(parameters, optimizer, factors, first, count):
        clock[0] += count * step_seconds
        return parameters, optimizer, np.ones(count)

    def look(progress):
        clock[0] += looking

    plan = FallingPlan(Recipe("adam", 0.1, 0.1, steps, 10), seconds, None, 1.0, -np.inf, None, True, look)
    return Training(take, plan, np.full(steps, np.nan), Checkpoint(None, 10.0, "", Nowhere())).run(State(None, None))


@pytest.mark.parametrize("seconds", [5.0, 300.0])
@pytest.mark.parametrize(
    ("samples", "step_seconds"), [(4096, 0.01), (1 << 18, 0.05), (12_000_000, 0.06), (28_800_000, 2.9)]
)
@pytest.mark.parametrize("slower", [0.8, 1.2])
def test_a_fit_keeps_its_time_at_every_size(clock, seconds, samples, step_seconds, slower):
    """Also if measuring takes a little longer, or shorter, than it was thought to."""
    begun, sample_seconds = clock[0], step_seconds / 3 / 4096
    budget = Budget(seconds, samples, sample_seconds, 1.5)
    state, stop = train(clock, budget.training, step_seconds, 100_000)
    assert stop == "seconds"
    measured = budget.affordable(state.seconds)
    clock[0] += 1.5 + slower * measured * sample_seconds
    taken = clock[0] - begun
    assert abs(taken - seconds) < max(0.1 * seconds, 2.0) + step_seconds  # no step is cut short
    assert measured == samples or measured >= 4096


def test_all_is_measured_where_that_takes_no_more_than_a_quarter():
    assert Budget(60.0, 1000, 0.015, 1.0).affordable(59.0) == 1000
    large = Budget(60.0, 100_000, 0.015, 1.0)
    assert (large.training, large.measuring) == (44.0, 15.0)
    assert large.affordable(44.0) == pytest.approx(4096)  # 1,000 fit, but that many are too few to say anything
    assert large.affordable(0.5) == pytest.approx(4096)
    assert Budget(600.0, 100_000, 0.015, 1.0).affordable(300.0) == pytest.approx(19_933, abs=1)
    assert Budget(None, 10**9, 1.0, 1.0).affordable(1e9) == 10**9


def test_what_is_expected_counts_all_that_comes_after():
    assert Budget(None, 1000, 0.01, 2.0).expected(0.1, 100) == pytest.approx(22.0)
    assert Budget(20.0, 1000, 0.01, 2.0).expected(0.1, 1000) == pytest.approx(20.0)
    assert Budget(20.0, 1000, 0.0, 2.0).expected(0.1, 10) == pytest.approx(3.0)
    assert Budget(None, 1000, 0.01, 2.0).training is None


def test_who_looks_at_a_fit_takes_none_of_its_time(clock):
    begun = clock[0]
    state, _ = train(clock, None, 0.1, 100, looking=3.0)
    assert state.seconds == pytest.approx(10.0)
    assert clock[0] - begun == pytest.approx(10.0 + 10 * 3.0)


def test_the_last_call_is_as_short_as_the_time_that_is_left(clock):
    state, stop = train(clock, 12.3, 1.0, 1000)
    assert (state.step, stop) == (13, "seconds")
