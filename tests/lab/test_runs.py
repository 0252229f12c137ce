import dataclasses
import math
import re

import pytest

from helpers.fakes import Sum
from uniphase.initialization.schemes import IMAGE_OMEGA
from uniphase.lab.fits import FitRun, Signal
from uniphase.lab.runs import NUMERICS, commit, execute, finite, identify

RUN = FitRun(Signal("camera", "gray", 16), "sm20", width=8, depth=1, steps=2, rate=1e-3)


def test_an_identity_is_that_of_the_effective_config():
    """Spelling out a default gives the same run; any other change gives a different one."""
    assert identify(RUN) == identify(dataclasses.replace(RUN, options=(("omega", IMAGE_OMEGA),)))
    others = [{"options": (("omega", 30.0),)}, {"seed": 1}, {"rate": 2e-3}, {"scheme": "cvp26-0"}, {"scaling": "lr"}]
    others += [{"signal": Signal("camera", "gray", 16, 32)}, {"epsilon": 0.0}, {"steps": 3}, {"width": 16}]
    names = {identify(dataclasses.replace(RUN, **change)) for change in others}
    assert len(names | {identify(RUN)}) == len(others) + 1


def test_scalings_coincide_at_the_base_width():
    base = dataclasses.replace(RUN, width=64)
    scalings = ("standard", "lr", "lr+ll")
    assert len({identify(dataclasses.replace(base, scaling=scaling)) for scaling in scalings}) == 1
    assert len({identify(dataclasses.replace(RUN, scaling=scaling)) for scaling in scalings}) == 3


def test_the_identity_depends_on_the_version_of_the_numerics(monkeypatch):
    before = identify(RUN)
    monkeypatch.setattr("uniphase.lab.runs.NUMERICS", NUMERICS + 1)
    assert identify(RUN) != before


def test_a_record_has_its_provenance(tmp_path):
    record = execute(Sum(3, str(tmp_path / "log")))
    assert record.metrics == {"sum": 3}
    assert record.config == {"terms": 3, "seed": 0}
    assert record.provenance["device"].startswith("cpu: ")
    assert set(record.provenance["versions"]) == {"uniphase", "jax", "numpy"}


def test_the_commit_is_named_in_a_checkout():
    assert commit() is None or re.fullmatch(r"[0-9a-f]{12,}(-dirty)?", commit())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_none(value):
    assert finite({"a": [1.0, value], "b": {"c": value}, "d": "nan"}) == {
        "a": [1.0, None],
        "b": {"c": None},
        "d": "nan",
    }
