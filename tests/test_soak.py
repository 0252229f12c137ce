"""The records of `make soak`: what was tried is not tried again, and what failed is, until it passes."""

import contextlib
import importlib
from pathlib import Path

import pytest


@pytest.fixture
def records(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    return importlib.import_module("benchmarks.soak.records")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "soak.jsonl"


def test_a_soak_goes_on_where_it_ended(records, path):
    trials = [records.Trial(0, "png", "read"), records.Trial(1, "png", "failed", "a traceback")]
    assert records.next_seed(records.read_batches(path), "files") == 0
    records.append(records.Batch.of("files", trials, 1.0), path)
    path.write_text(path.read_text() + '{"part": "files", "se')  # killed while it was written
    records.append(records.Batch.of("kills", [records.Trial(7, "image", "killed")], 1.0), path)
    batches = records.read_batches(path)
    assert [batch.part for batch in batches] == ["files", "kills"]
    assert (records.next_seed(batches, "files"), records.next_seed(batches, "kills")) == (2, 8)
    assert list(records.open_failures(batches, "files")) == [1]
    records.append(records.Batch.of("files", [records.Trial(1, "png", "refused")], 1.0), path)
    assert records.open_failures(records.read_batches(path), "files") == {}


def test_the_page_counts_the_records_and_names_the_seeds(records, path, tmp_path, monkeypatch):
    trials = [records.Trial(seed, "png", "read") for seed in range(8)]
    failures = [
        records.Trial(8, "png", "failed", "a `traceback`\nof two lines"),
        records.Trial(9, "wav", "failed", "x"),
    ]
    records.append(records.Batch.of("files", [*trials, *failures], 60.0), path)
    records.append(records.Batch.of("files", [records.Trial(9, "wav", "read")], 60.0), path)
    monkeypatch.setattr(records, "RECORDS", path)
    part = records.Part("files", "damaged files", 10_000, 1.0, 100, contextlib.nullcontext)
    records.write_page([part], tmp_path / "soak.md")
    page = (tmp_path / "soak.md").read_text()
    assert "| files | damaged files | 10 | 10,000 | 2 | 1 | 2.0 |" in page
    assert "seed 8 (png, commit" in page
    assert "`a 'traceback' of two lines`. **open**" in page
    assert "`x`. passes now" in page
