from pathlib import Path

import pytest


def test_an_experiment_is_reproduced_resumed_and_reported(run, drawn):
    chosen = ["reproduce", "moments", "--only", "camera/gray", "--store", "lab"]
    code, out, err = run(*chosen, "--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith("to do   camera/gray\n")
    assert "0 of 1 runs are stored; the others take about 0:00:00 here" in out
    code, out, err = run(*chosen)
    assert (code, out) == (0, "moments: 1 runs computed; `uniphase report --store lab` shows them\n")
    assert err == "moments: 1 of 1 runs  camera/gray, step 1/1\n"
    assert run(*chosen)[1].startswith("moments: 0 runs computed")
    assert run(*chosen, "--dry-run")[1].startswith("stored  camera/gray\n")
    code, out, _ = run("report", "--store", "lab", "-o", "out")
    assert code == 0
    assert out == "wrote out/report.md, out/report.html, out/records.csv, out/records.parquet, out/records.jsonl\n"
    assert "| camera/gray | 6 | 6 |" in Path("out/report.md").read_text()


def test_an_interrupted_experiment_says_how_to_continue(run, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("uniphase.lab.engine.reproduce", interrupt)
    code, _, err = run("reproduce", "all")
    assert (code, err) == (130, "uniphase: interrupted; the same command continues\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "siren"], "there is no experiment 'siren'; the known ones are moments, theory"),
        (["reproduce", "moments", "--seeds", "0"], "seeds is 0; it must be at least 1"),
        (["reproduce", "moments", "--seeds", "0", "--dry-run"], "seeds is 0; it must be at least 1"),
        (["reproduce", "moments", "--only", "camera"], "only is 'camera', but no run has these words; --dry-run"),
        (["reproduce", "moments", "--address", "tcp://x"], "address is 'tcp://x', but the engine is 'serial'"),
        (["reproduce", "moments", "--store", "file"], "store is 'file', but that is a file; pass a directory"),
        (["reproduce", "moments", "--store", ""], "store is ''; pass a directory, '.' for the current one"),
        (["report", "--store", "file"], "store is 'file', but that is a file; pass a directory"),
        (["report", "--store", "none"], "none: no records; run `uniphase reproduce` first, or pass --store"),
    ],
)
def test_errors_of_the_laboratory_are_one_line(run, arguments, message):
    Path("file").write_text("mine")
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"uniphase: {message}")
    assert err.count("\n") == 1
