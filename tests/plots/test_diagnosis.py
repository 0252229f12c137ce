import numpy as np
import pytest

from helpers.pictures import FIELDS, assert_picture
from uniphase.diagnosis.chain import draw_chain
from uniphase.diagnosis.examination import examine
from uniphase.initialization.schemes import relu, sm20
from uniphase.plots.diagnosis import write_diagnosis


@pytest.mark.parametrize("blueprint", [sm20((2, 1), width=8, depth=9), relu((2, 1), width=8, depth=0)])
def test_a_diagnosis_with_and_without_sines(blueprint, tmp_path):
    report = examine(draw_chain(blueprint, np.random.default_rng(0)), FIELDS["gray"])
    write_diagnosis(tmp_path / "a.png", report, "a network")
    assert_picture(tmp_path / "a.png")
