import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_the_software_is_that_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= set(CITATION)  # what the format requires
    assert [CITATION[key] for key in ("title", "version", "license")] == [
        project[key] for key in ("name", "version", "license")
    ]


def test_the_paper_is_cited_by_title_and_authors():
    paper = CITATION["preferred-citation"]
    assert (paper["title"], paper["year"]) == ("Stable initialization without the CLT", 2026)
    names = [f"{author['given-names']} {author['family-names']}" for author in paper["authors"]]
    assert names == ["Simon Kuang", "Kyle Chickering", "Xinfan Lin"]
