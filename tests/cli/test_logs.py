import pytest

from uniphase.cli.logs import COLUMNS, Log, require_log
from uniphase.fitting.plan import Progress


def at(step: int) -> Progress:
    return Progress(step, 90, 0.01, 20.0, 25.0, 2.0, 65.0, None, step / 2, 0.05)


def steps(path) -> list[str]:
    return [line.partition(",")[0] for line in path.read_text().splitlines()]


def test_every_row_is_there_at_once(here):
    log = Log("run.csv")
    log.add(at(10))
    assert (here / "run.csv").read_text() == f"{','.join(COLUMNS)}\n10,5,0.01,20,0.05,2\n"
    log.add(at(20))
    assert steps(here / "run.csv") == ["step", "10", "20"]


def test_a_continued_log_drops_what_is_done_again_and_what_a_kill_cut_off(here):
    log = Log("run.csv")
    for step in (10, 20, 30):
        log.add(at(step))
    with (here / "run.csv").open("a") as file:
        file.write("40,2")
    again = Log("run.csv", resume=True)
    again.add(at(30))
    assert steps(here / "run.csv") == ["step", "10", "20", "30"]
    Log("run.csv").add(at(10))
    assert steps(here / "run.csv") == ["step", "10"]


def test_another_file_is_not_continued(here):
    (here / "data.csv").write_text("x,y\n1,2\n")
    require_log(here / "data.csv", resume=False)
    require_log(here / "none.csv", resume=True)
    with pytest.raises(ValueError, match=r"data.csv: not the log of a fit; pass another --log"):
        require_log(here / "data.csv", resume=True)
