import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from uniphase.initialization.blueprint import Blueprint
from uniphase.initialization.distributions import Given
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme, sm20, tanh_pe
from uniphase.storage.structure import read_structure, same_structure

MOMENTS = prescribe_moments(length_scale=[0.1, 0.2])


def network(blueprint: Blueprint) -> SimpleNamespace:
    """What the networks of all frameworks have in common."""
    layers = [
        SimpleNamespace(
            weight=np.zeros((plan.rows, plan.columns)),
            bias=None if plan.bias is None else np.zeros(plan.rows),
            **{key: getattr(plan, key) for key in ("activation", "omega", "role", "trainable")},
        )
        for plan in blueprint.layers
    ]
    return SimpleNamespace(layers=layers)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_structure_of_every_scheme_is_read_from_its_network(name):
    blueprint = get_scheme(name).blueprint(MOMENTS, width=8, depth=2)
    found = read_structure(network(blueprint))
    assert same_structure(found, blueprint)
    assert (found.scheme, found.parameters) == ("given", blueprint.parameters)
    assert {plan.weight for plan in found.layers} == {Given()}


def test_a_structure_prints():
    assert str(read_structure(network(tanh_pe((2, 1), width=8, depth=0)))).splitlines() == [
        "given: 2 → 1, 81 parameters",
        "layer   maps   activation            weights         biases",
        "input   2 → 8  [sin(2πz), cos(2πz)]  given (frozen)  none",
        "hidden  8 → 8  tanh(z)               given           given",
        "output  8 → 1  z                     given           given",
    ]


@pytest.mark.parametrize(
    "change", [{"omega": 30.0}, {"activation": "tanh"}, {"role": "output"}, {"trainable": False}, {"bias": None}]
)
def test_every_property_of_a_layer_counts(change):
    blueprint = sm20((2, 1), width=8, depth=1)
    first, *rest = blueprint.layers
    assert not same_structure(blueprint, Blueprint("other", (dataclasses.replace(first, **change), *rest)))


@pytest.mark.parametrize("other", [None, SimpleNamespace(layers=[np.zeros(3)]), SimpleNamespace(layers=3)])
def test_a_network_without_such_layers(other):
    with pytest.raises(ValueError, match=r"network is a .*, whose layers cannot be saved .*; pass a CoordinateMLP"):
        read_structure(other)
