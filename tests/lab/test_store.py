import csv
import json
import shutil
import sys

import duckdb
import numpy as np
import pytest

from helpers.fakes import Sum, record
from uniphase.lab.runs import execute, identify
from uniphase.lab.store import PACKED, Store, flat, pack, write_tables


@pytest.fixture
def run(tmp_path):
    return Sum(5, str(tmp_path / "log"))


def test_a_stored_record_is_found(tmp_path, run):
    store = Store(tmp_path / "store")
    assert run not in store
    assert store.get(run) is None
    store.put(execute(run))
    assert run in store
    found = store.get(run)
    assert found.metrics == {"sum": 10}
    np.testing.assert_array_equal(found.load()["terms"], np.arange(5))
    assert [each.identity for each in store.records()] == [identify(run)]


def test_a_record_without_its_json_file_does_not_count(tmp_path, run, monkeypatch):
    """A process that dies between writing the two files leaves no record."""
    store = Store(tmp_path)

    def die(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("json.dumps", die)
    with pytest.raises(KeyboardInterrupt):
        store.put(record(run, {}))
    monkeypatch.undo()
    assert run not in store
    assert list(store.records()) == []


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_killed_process_was_writing_is_no_record(tmp_path, run, monkeypatch, whole):
    store = Store(tmp_path)
    monkeypatch.setattr("os.replace", shutil.copy)  # the temporary files stay, as if another process were at work
    store.put(record(run, {}))
    (temporary,) = (tmp_path / "records").glob(".*.json")
    if not whole:
        temporary.write_text(temporary.read_text()[:20])
    assert [each.identity for each in store.records()] == [identify(run)]


def test_a_broken_file_says_what_to_do(tmp_path, run):
    store = Store(tmp_path)
    store.put(record(run, {}))
    path = tmp_path / "records" / f"{identify(run)}.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"\.json: not a record .*; remove it, and the run is computed again"):
        store.get(run)
    with pytest.raises(ValueError, match="not a record"):
        assert run in store  # not silently skipped


def test_records_of_other_numerics_are_left_out(tmp_path, run, monkeypatch):
    store = Store(tmp_path)
    monkeypatch.setattr("uniphase.lab.runs.NUMERICS", 0)
    store.put(record(run, {}))
    monkeypatch.undo()
    assert list(store.records()) == []
    store.put(record(run, {}))
    assert len(list(store.records())) == 1


def test_packed_records_are_found_without_their_large_arrays(tmp_path, run):
    spectrum = np.array([2.0, 1.0, 1 / 3])
    packed = record(run, {"sum": 10}, {"spectrum": spectrum, "test": np.zeros((8, 8, 1), np.uint8)})
    pack([packed], tmp_path / PACKED)
    store, loose = Store(tmp_path), Sum(6, "")
    store.put(record(loose, {"sum": 15}))
    assert [each.identity for each in store.records()] == sorted([packed.identity, identify(loose)])
    assert run in store
    found = store.get(run)
    assert found.metrics == {"sum": 10}
    assert list(found.load()) == ["spectrum"]
    np.testing.assert_array_equal(found.load()["spectrum"], spectrum)
    assert store.get(run, needs="spectrum") is found
    assert store.get(run, needs="test") is None


def test_a_run_that_is_packed_and_computed_again_has_its_arrays(tmp_path, run):
    pack([record(run, {"sum": 10})], tmp_path / PACKED)
    store = Store(tmp_path)
    store.put(execute(run))
    assert store.get(run, needs="terms") is not None
    assert len(list(store.records())) == 1


def test_a_broken_line_names_its_file(tmp_path, run):
    (tmp_path / PACKED).write_text("{}\n")
    with pytest.raises(ValueError, match=r"records\.jsonl, line 1: not a record .*; remove that line"):
        Store(tmp_path).get(run)


def test_all_records_in_one_table(tmp_path, run):
    records = [record(run, {"mse": 1.5, "pair": [1, 2], "note": None}), record(Sum(6, ""), {"mse": None, "text": "x"})]
    assert flat(records[0])["config.terms"] == 5
    assert write_tables(records, tmp_path / "a.csv", tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["metrics.mse"] for row in rows] == ["1.5", ""]
    assert json.loads(rows[0]["metrics.pair"]) == [1, 2]

    with duckdb.connect() as connection:
        query = 'SELECT identity, "metrics.mse", "metrics.text", "config.terms" FROM read_parquet(?)'
        found = connection.execute(query, [str(tmp_path / "a.parquet")]).fetchall()
    assert found == [(records[0].identity, 1.5, None, 5), (records[1].identity, None, "x", 6)]


def test_without_duckdb_there_is_csv(tmp_path, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert not write_tables([record(run, {})], tmp_path / "a.csv", tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("damage", [lambda data: data[:50], lambda data: b"text", lambda data: b"PK" + data[4:]])
def test_damaged_arrays_say_what_to_remove(tmp_path, run, damage):
    store = Store(tmp_path)
    store.put(record(run, {}, {"terms": np.arange(5)}))
    (path,) = (tmp_path / "records").glob("*.npz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"\.npz: cannot be read as the arrays of a record .* remove it"):
        store.get(run).load()


@pytest.mark.parametrize(
    "entry", [{"metrics": 5}, {"provenance": {}}, {"work": "1"}, {"arrays": [1]}, {"arrays": {"a": "b"}}]
)
def test_a_packed_record_of_another_kind_is_refused(tmp_path, run, entry):
    pack([record(run, {})], tmp_path / PACKED)
    line = json.loads((tmp_path / PACKED).read_text()) | entry
    (tmp_path / PACKED).write_text(json.dumps(line) + "\n")
    with pytest.raises(ValueError, match=r"records\.jsonl, line 1: not a record .*; remove that line"):
        list(Store(tmp_path).records())
