import json

import pytest

from helpers.markup import SCRIPT, Seen
from uniphase.initialization.blueprint import Blueprint, LayerPlan
from uniphase.initialization.distributions import Constant, Normal
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, tanh_pe, uniform_phase


def test_a_blueprint_prints_as_a_table():
    moments = prescribe_moments(mean=0.5, covariance=2.0, length_scale=[0.1, 0.2])
    assert str(uniform_phase(moments, width=16, depth=3)).splitlines() == [
        "uniform-phase: 2 → 1, 881 parameters",
        "layer      maps     activation  weights                         biases",
        "input      2 → 16   sin(z)      rows N(0, [[100, 0], [0, 25]])  U(±3.142)",
        "hidden ×3  16 → 16  sin(z)      N(0, 0.3536²)                   U(±3.142)",
        "output     16 → 1   z           columns N(0, [[0.25]])          [0.5]",
    ]
    assert "[sin(2πz), cos(2πz)]  N(0, 32²) (frozen)  none" in str(tanh_pe((2, 1), width=16, depth=1))


def test_a_notebook_shows_the_same_table():
    blueprint = uniform_phase(prescribe_moments(length_scale=[0.1, 0.2]), width=16, depth=3)
    seen = Seen(blueprint._repr_html_())
    title, *rows = str(blueprint).splitlines()
    assert seen.words[0] == title
    assert [word for word in seen.words[1:] if word in "\n".join(rows)] == seen.words[1:]
    assert seen.tags.count("tr") == len(rows)


def test_a_scheme_that_looks_like_markup_is_text():
    seen = Seen(Blueprint(SCRIPT, (LayerPlan("output", 1, 1, "linear", Normal(1.0), None),))._repr_html_())
    assert "script" not in seen.tags
    assert seen.words[0].startswith(SCRIPT)


def test_sizes_and_parameters():
    blueprint = uniform_phase(prescribe_moments(mean=[0.0, 0.0], length_scale=[1.0, 1.0, 1.0]), width=8, depth=2)
    assert (blueprint.in_size, blueprint.out_size, blueprint.width) == (3, 2, 8)
    assert blueprint.parameters == 8 * 4 + 2 * 8 * 9 + 2 * 9


def test_frozen_weights_are_not_parameters():
    assert tanh_pe((2, 1), width=8, depth=0).parameters == 8 * 9 + 9


def test_blueprints_are_equal_by_their_laws():
    moments = prescribe_moments(length_scale=0.1)
    assert uniform_phase(moments, width=8, depth=1) == uniform_phase(moments, width=8, depth=1)
    assert uniform_phase(moments, width=8, depth=1) != uniform_phase(moments, width=9, depth=1)


def test_layers_that_do_not_fit():
    plan = LayerPlan("input", 4, 2, "sine", Normal(1.0), Constant(0.0))
    with pytest.raises(ValueError, match="a layer with 4 outputs is followed by one with 2 inputs"):
        Blueprint("broken", (plan, plan))


@pytest.mark.parametrize("name", SCHEMES)
def test_blueprints_survive_json(name):
    moments = prescribe_moments(mean=[0.1, 0.2], covariance=[[2.0, 0.3], [0.3, 1.0]], length_scale=[0.1, 1 / 3])
    blueprint = get_scheme(name).blueprint(moments, width=8, depth=2)
    assert Blueprint.from_dict(json.loads(json.dumps(blueprint.to_dict()))) == blueprint


_LAYER = {
    **{"role": "output", "rows": 1, "columns": 2, "activation": "linear", "omega": 1.0, "trainable": True},
    **{"weight": {"law": "Normal", "std": 1.0}, "bias": None},
}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"scheme": "a"}, "a blueprint has the keys scheme; it must have scheme, layers"),
        (
            {"scheme": "a", "layers": [{"role": "output"}]},
            "a layer has the keys role; it must have role, rows, columns",
        ),
        ({"scheme": "a", "layers": [_LAYER | {"role": "first"}]}, "role is 'first'; it must be one of input, hidden"),
        ({"scheme": "a", "layers": [_LAYER | {"activation": "step"}]}, "activation is 'step'; it must be one of sine"),
        ({"scheme": "a", "layers": [_LAYER | {"bias": {"law": "Cauchy"}}]}, "law is 'Cauchy'; it must be one of"),
        ({"scheme": "a", "layers": [_LAYER, _LAYER]}, "layers do not fit"),
    ],
)
def test_a_dict_that_is_no_blueprint(entries, message):
    with pytest.raises(ValueError, match=message):
        Blueprint.from_dict(entries)


def test_keys_that_this_version_does_not_know_are_ignored_and_optional_ones_may_be_missing():
    plain = Blueprint.from_dict({"scheme": "a", "layers": [_LAYER]})
    assert Blueprint.from_dict({"scheme": "a", "layers": [_LAYER | {"depth": 3}], "unknown": None}) == plain
    short = {key: value for key, value in _LAYER.items() if key not in ("omega", "trainable")}
    assert Blueprint.from_dict({"scheme": "a", "layers": [short]}) == plain
