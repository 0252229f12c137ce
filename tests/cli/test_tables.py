"""The commands with a table: scattered points in place of a grid."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from helpers.small import TINY_ARGUMENTS, names, run_in, save_drawn
from uniphase.cli.options import Options
from uniphase.cli.render import render_file
from uniphase.cli.subjects import load_subject, shown_part, shown_prediction
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.fields import Points

COLUMNS = ["--coordinates", "lon,lat", "--values", "temperature"]


def write_stations(path: Path) -> None:
    x, y = np.random.default_rng(0).uniform((0, 40), (20, 50), (60, 2)).T
    rows = np.stack([x, y, 10 + np.sin(x / 3) * np.cos(y / 3)], axis=1)
    np.savetxt(path, rows, delimiter=",", header="lon,lat,temperature", comments="")


@pytest.fixture(scope="module")
def stations(tmp_path_factory):
    """`uniphase fit stations.csv`, tiny."""
    directory = tmp_path_factory.mktemp("stations")
    write_stations(directory / "stations.csv")
    return run_in(directory, "fit", "stations.csv", *COLUMNS, *TINY_ARGUMENTS, "--optimizer", "adam", "--json")


def test_fit_of_a_table(stations):
    assert (stations.code, stations.err) == (0, "")
    assert json.loads(stations.out)["train"]["ssim"] is None
    assert names(stations.directory) == ["stations.csv", "stations.fit.png", "stations.uniphase"]
    content = load_network(stations.directory / "stations.uniphase")
    assert (content.domain.shape, content.blueprint.out_size) == (None, 1)


def test_info_of_a_table(run, stations):
    code, out, _ = run("info", str(stations.directory / "stations.uniphase"))
    assert code == 0
    assert "domain: scattered points on [" in out


def test_points_are_rendered_on_any_grid(run, stations):
    network = str(stations.directory / "stations.uniphase")
    code, out, err = run("render", network)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.endswith("fitted to scattered points, which have no size; pass --size\n")
    code, out, _ = run("render", network, "--size", "32", "--region", "0:20,40:50")
    assert (code, out) == (0, "wrote stations-0to20_40to50-32x16.npy, 32 × 16 samples\n")
    assert np.load("stations-0to20_40to50-32x16.npy").shape == (32, 16, 1)


def test_a_picture_of_points_is_a_map():
    """East to the right and north up."""
    positions = np.random.default_rng(0).uniform((0, 40), (20, 50), (60, 2))
    field = Points(positions, np.sin(positions))
    network = save_drawn("a.uniphase", Points(field.positions, field.values[:, :1]))
    spans = ((0.0, 20.0), (40.0, 50.0))
    render_file("a.uniphase", size=32, region="0:20,40:50", output="a.png")
    low, high = load_network("a.uniphase").value_range
    values = render(network, (32, 16), extents=spans, align="corners")[..., 0]
    pixels = np.clip(np.rint(255 * (values.astype(np.float64) - low) / (high - low)), 0, 255)
    np.testing.assert_array_equal(np.asarray(Image.open("a.png")), pixels.T[::-1])


def test_moments_and_diagnosis_of_a_table(run, stations):
    path = str(stations.directory / "stations.csv")
    code, out, _ = run("moments", path, *COLUMNS)
    assert code == 0
    assert out.startswith(f"{path}: 60 points of 2 coordinates, 1 channel, on [")
    code, out, _ = run("diagnose", path, *COLUMNS, "--network", str(stations.directory / "stations.uniphase"))
    assert code == 0
    assert out.startswith("layer ")


def test_the_paper_leaves_points_where_they_are(here):
    write_stations(here / "a.csv")
    options = Options(recipe="paper", coordinates="lon, lat", values="temperature")
    assert load_subject("a.csv", options).field.positions.min(axis=0)[1] > 39


def test_many_points_are_drawn_in_part(monkeypatch):
    field = Points(np.arange(100.0), np.arange(100.0) ** 2)
    assert shown_part(field) is field
    monkeypatch.setattr("uniphase.cli.subjects.MANY_POINTS", 30)
    shown = shown_part(field)
    np.testing.assert_array_equal(shown.positions[:, 0], np.arange(0, 100, 4))
    np.testing.assert_array_equal(shown_prediction(None, field, field.values), shown.values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "a.csv"], "a.csv: its columns are lon, lat, temperature; choose"),
        (["fit", "a.csv", *COLUMNS[:3], "depth"], "a.csv: there is no column 'depth'; it has lon, lat, temperature"),
        (["fit", "text.csv", *COLUMNS], "text.csv: cannot be read as a table of numbers (line 2, column temperature: "),
        (["fit", "a.csv", *COLUMNS, "--size", "8"], "a.csv: size is 8, but scattered points cannot be resized"),
        (["fit", "a.csv", *COLUMNS, "--align", "corners"], "a.csv: align is 'corners', but scattered points lie"),
        (["fit", "a.csv", *COLUMNS, "--axes", "2"], "a.csv: axes is 2, but only arrays"),
        (["fit", "camera", *COLUMNS], "camera: coordinates is ['lon', 'lat'], but this is an image or a sound"),
        (["fit", "a.png", *COLUMNS], "a.png: coordinates is ['lon', 'lat'], but only tables have columns"),
        (["fit", "line.csv", *COLUMNS], "positions lie in fewer than 2 dimensions"),
        (["compare", "a.csv", *COLUMNS, "--schemes", "siren"], "a.csv: scattered points, but a comparison shows grids"),
    ],
)
def test_a_table_that_cannot_be_fitted_is_refused_in_one_line(run, here, arguments, message):
    write_stations(here / "a.csv")
    (here / "text.csv").write_text("lon,lat,temperature\n1,2,warm\n")
    (here / "line.csv").write_text("lon,lat,temperature\n" + "".join(f"{k},{k},{k * k}\n" for k in range(9)))
    Image.new("L", (4, 4)).save("a.png")
    before = names(here)
    code, out, err = run(*arguments, "--json")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"uniphase: {message}")
    assert names(here) == before
