import pytest

from uniphase.cli.terminal import (
    fit_progress,
    lab_progress,
    number,
    print_plan,
    print_report,
    print_table,
    ranges,
    times,
    words,
)
from uniphase.fitting.plan import Progress
from uniphase.lab.engine import Estimate, Progress as Standing


def progress(step: int) -> Progress:
    numbers = {"mse": 0.01, "snr_db": 20.0, "psnr_db": 25.0, "steps_per_second": 2.0, "seconds_left": 65.0}
    return Progress(step=step, steps=9, **numbers, stop="steps" if step == 9 else None)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands at what one writes into it."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_where_there_is_no_terminal_lines_come_now_and_then_and_at_the_end(clock, capsys):
    with fit_progress(quiet=False) as tell:
        assert tell is not None
        for step, seconds in ((1, 100.0), (2, 104.9), (3, 105.1), (9, 105.2)):
            clock[0] = seconds
            tell(progress(step), "sm20")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines] == ["1/9", "3/9", "9/9"]
    assert lines[0] == "sm20  step 1/9  loss 1.000e-02  SNR 20.00 dB  PSNR 25.00 dB  steps/s 2.0  left 0:01:05"


def test_so_do_those_of_an_experiment(clock, capsys):
    with lab_progress("narrow") as tell:
        for done, seconds in ((0, 100.0), (1, 104.9), (2, 105.0)):
            clock[0] = seconds
            tell(Standing(done, 2, "a run", 5, 9))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["narrow: 0 of 2 runs  a run, step 5/9", "narrow: 2 of 2 runs  a run, step 5/9"]


def test_quiet_is_silent():
    with fit_progress(quiet=True) as tell:
        assert tell is None


def test_a_plan_adds_up(capsys):
    estimates = [Estimate("sine", 3, 1, 200, 30.0), Estimate("theory", 1, 0, 1, None)]
    print_plan([("a", True), ("b", False)], estimates)
    out = capsys.readouterr().out
    assert out.startswith("stored  a\nto do   b\n")
    assert out.splitlines()[-1] == "1 of 2 runs are stored; the others take about 1:40:00 here"
    assert "short" in out
    print_plan([], [])
    assert capsys.readouterr().out.endswith("0 of 0 runs are stored; the others take about 0:00:00 here\n")


def test_values_in_words():
    assert words({"a": 1.23456, "b": {"c": None}}) == "a 1.235, b c None"
    assert (times((512, 256)), ranges([(-1.0, 1.0), (0.0, 2.5)])) == ("512 × 256", "[-1, 1] × [0, 2.5]")
    assert (number(None), number(1234.5678)) == ("—", "1235")


def test_names_stand_in_a_table_as_they_are_and_in_one_line(capsys):
    long = "a reason " * 50
    print_table(("name", "why"), [("a[b]:cat:.png", long.strip())])
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=1) == ["a[b]:cat:.png", long.strip()]


class Findings:
    def __str__(self) -> str:
        return "layer  out\nok   phases: uniform\nbad  moments: [far] off"


def test_a_report_is_printed_as_it_is_and_in_colour_on_a_terminal(capsys, monkeypatch):
    print_report(Findings())
    assert capsys.readouterr().out == f"{Findings()}\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_report(Findings())
    _, good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("\x1b[32mok\x1b[0m   phases")
    assert bad.startswith("\x1b[1;31mbad\x1b[0m  moments: [far]")
