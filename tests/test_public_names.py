"""The public names are those of the stub, each is there, and none is listed twice."""

import ast
from pathlib import Path

import pytest

import uniphase

STUB = Path(uniphase.__file__).with_suffix(".pyi")
NAMES = [alias.asname for node in ast.parse(STUB.read_text()).body for alias in node.names]


def test_public_names_are_those_of_the_stub():
    assert sorted(uniphase.__all__) == sorted(NAMES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_there(name):
    assert getattr(uniphase, name) is not None


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = uniphase.nonsense
