import re
import sys
import warnings

import duckdb
import numpy as np
import pytest

from uniphase.signals.datasets import load
from uniphase.signals.fields import Points
from uniphase.signals.tables import table

CSV = "name,lon,lat,temperature\na,1,2,3.5\nb,4,5,6\nc,7,8,-1e1\n"
CHOSEN = {"coordinates": ["lon", "lat"], "values": ["temperature"]}
POSITIONS, VALUES = [[1, 2], [4, 5], [7, 8]], [[3.5], [6], [-10]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", CSV),
        ("a.CSV", CSV.replace("\n", "\r\n")),
        ("a.csv", "\ufeff" + CSV.replace(",", ";")),
        ("a.tsv", CSV.replace(",", "\t")),
        ("a.csv", CSV.replace("lat", '"lat"').replace("\nb,4", "\n\nb, 4 ")),
    ],
)
def test_columns_are_points(tmp_path, name, text):
    (tmp_path / name).write_text(text, newline="")
    points = table(tmp_path / name, **CHOSEN)
    np.testing.assert_array_equal(points.positions, POSITIONS)
    np.testing.assert_array_equal(points.values, VALUES)


def test_one_column_is_named_by_itself_and_several_values_are_channels(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    points = load(tmp_path / "a.csv", coordinates="lon", values=("temperature", "lat"))
    assert isinstance(points, Points)
    np.testing.assert_array_equal(points.positions, [[1], [4], [7]])
    np.testing.assert_array_equal(points.values, [[3.5, 2], [6, 5], [-10, 8]])


def write_parquet(path, query):
    with duckdb.connect() as connection:
        connection.sql(query).write_parquet(str(path))


def test_parquet(tmp_path):
    """Whatever its name is, and whatever types of numbers it has."""
    path = tmp_path / "a[1]*.parquet"
    rows = "(1::UTINYINT, 2::BIGINT, 3.5, 'a'), (4, 5, 6, 'b'), (7, 8, -10, 'c')"
    write_parquet(path, f'SELECT * FROM (VALUES {rows}) AS t("the ""lon""", lat, temperature, name)')
    points = table(path, coordinates=['the "lon"', "lat"], values="temperature")
    np.testing.assert_array_equal(points.positions, POSITIONS)
    np.testing.assert_array_equal(points.values, VALUES)
    with pytest.raises(ValueError, match=r"cannot be read as a table of numbers \(column name holds VARCHAR, not numb"):
        table(path, coordinates="lat", values="name")


def test_rows_with_empty_cells_are_dropped_and_counted(tmp_path):
    (tmp_path / "a.csv").write_text(CSV + ",9,9,\n,nan,9,1\n,,,\n")
    write_parquet(tmp_path / "a.parquet", "SELECT * FROM (VALUES (1, 2), (NULL, 3), (4, NULL)) AS t(x, y)")
    with pytest.warns(UserWarning, match=r"^.*a.csv: dropped 3 of its 6 rows with empty cells$"):
        points = table(tmp_path / "a.csv", **CHOSEN)
    np.testing.assert_array_equal(points.values, VALUES)
    with pytest.warns(UserWarning, match=r"^.*a.parquet: dropped 2 of its 3 rows"):
        assert table(tmp_path / "a.parquet", coordinates="x", values="y").samples == 1
    with warnings.catch_warnings():  # an empty cell in a column that is not used is no loss
        warnings.simplefilter("error")
        (tmp_path / "a.csv").write_text(CSV.replace("b,", ","))
        assert table(tmp_path / "a.csv", **CHOSEN).samples == 3


BAD = "cannot be read as a table of numbers"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", CSV.replace("6", "warm"), rf"{BAD} \(line 3, column temperature: 'warm' is not a finite number\)"),
        ("a.csv", CSV.replace("6", "inf"), rf"{BAD} \(line 3, column temperature: 'inf' is not a finite number\)"),
        ("a.csv", CSV.replace("5,6", "5"), rf"{BAD} \(line 3 has 3 cells, but there are 4 columns\)"),
        ("a.csv", CSV.replace("-1e1", '"-1e1'), rf"{BAD} \(unexpected end of data\)"),
        ("a.csv", CSV.replace("name", "lon"), "2 columns are named 'lon'; rename all but one"),
        ("a.csv", CSV.replace("lat", "breadth"), "there is no column 'lat'; it has name, lon, breadth, temperature"),
        ("a.csv", CSV.splitlines()[0], "none of its 0 rows has a number in every chosen column"),
        ("a.csv", CSV.splitlines()[0] + "\na,1,,\n", "none of its 1 rows has a number in every chosen column"),
        ("a.csv", "\n\n", rf"{BAD} \(it has no rows\)"),
        ("a.csv", "", "an empty file, not a table of numbers"),
        ("a.csv", b"\x89PNG\xff\x00", rf"{BAD} \(.*decode"),
        ("a.parquet", CSV, rf"{BAD} \(.*; get a whole copy"),
        ("a.xlsx", CSV, "the suffix is '.xlsx'; use one of .csv .tsv .parquet"),
    ],
)
def test_what_is_no_table_is_said_in_one_line(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {message}") as caught:
        table(path, **CHOSEN)
    assert "\n" not in str(caught.value)


def test_without_columns_the_error_lists_them(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    option = "--coordinates name,lon --values temperature"
    for chosen in ({}, {"coordinates": "lon"}, {"values": "lon"}, {"coordinates": [], "values": "lon"}):
        with pytest.raises(ValueError, match=f"its columns are name, lon, lat, temperature; choose .* {option}$"):
            table(tmp_path / "a.csv", **chosen)
    with pytest.raises(ValueError, match="the column 'lon' is chosen twice"):
        table(tmp_path / "a.csv", coordinates="lon", values=["lat", "lon"])
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="its only column is x; a table has at least a coordinate and a value"):
        table(tmp_path / "a.csv")


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(
        ModuleNotFoundError, match=r'a.parquet: needs the package duckdb; pip install "uniphase\[tables'
    ):
        table(tmp_path / "a.parquet", **CHOSEN)
