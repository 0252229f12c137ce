import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from uniphase.initialization.blueprint import LayerPlan
from uniphase.initialization.distributions import Normal, Uniform
from uniphase.initialization.layers import plan_layer, plan_layers, require_bias, require_fit
from uniphase.initialization.moments import prescribe_moments
from uniphase.initialization.schemes import SCHEMES, get_scheme

MOMENTS = prescribe_moments(mean=[1.0, -2.0, 0.5], covariance=[2.0, 0.5, 0.1], length_scale=[0.1, 0.3])
UNIFORM_PHASE = get_scheme("uniform-phase")


class Found(NamedTuple):
    name: str
    weight: Any
    bias: Any
    activation: str
    omega: float = 1.0


def found(plans: tuple[LayerPlan, ...]) -> list[Found]:
    """A model that fits these plans."""
    return [
        Found(f"layer {i}", np.zeros((plan.rows, plan.columns)), np.zeros(plan.rows), plan.activation, plan.omega)
        for i, plan in enumerate(plans)
    ]


def sines(*sizes: int) -> list[Found]:
    layers = [
        Found(f"layer {i}", np.zeros((sizes[i + 1], sizes[i])), np.zeros(sizes[i + 1]), "sine")
        for i in range(len(sizes) - 1)
    ]
    return [*layers[:-1], layers[-1]._replace(activation="linear")]


@pytest.mark.parametrize("name", SCHEMES)
def test_a_model_of_a_scheme_is_planned_as_its_blueprint(name):
    scheme = get_scheme(name)
    plans = scheme.blueprint(MOMENTS, width=16, depth=2).layers
    layers = found(plans)
    assert plan_layers(scheme, layers, MOMENTS, {}) == plans
    require_fit(layers, plans, scheme, one_by_one="")


@pytest.mark.parametrize("name", SCHEMES)
def test_a_layer_alone_is_planned_as_in_the_whole(name):
    scheme = get_scheme(name)
    plans = scheme.blueprint(MOMENTS, width=16, depth=1).layers
    for before, plan in zip((plans[0], *plans), plans, strict=False):
        omega = before.omega if plan.role == "output" else plan.omega
        assert plan_layer(scheme, plan.role, (plan.rows, plan.columns), MOMENTS, omega=omega) == plan


def test_widths_may_differ_in_uniform_phase_alone():
    """Every law goes by the inputs of its layer."""
    layers = sines(2, 12, 5, 3)
    first, hidden, last = plan_layers(UNIFORM_PHASE, layers, MOMENTS, {}, uneven=True)
    assert [(plan.columns, plan.rows) for plan in (first, hidden, last)] == [(2, 12), (12, 5), (5, 3)]
    assert (hidden.weight, hidden.bias) == (Normal(math.sqrt(2 / 12)), Uniform(math.pi))
    np.testing.assert_allclose(last.weight.covariance, 2 * MOMENTS.covariance / 5)
    even = plan_layers(UNIFORM_PHASE, layers, MOMENTS, {})
    for scheme, plans in ((UNIFORM_PHASE, even), *_uneven_plans_of_others(layers)):
        with pytest.raises(ValueError, match=rf"'layer 0' has 2 → 12, sine, but {scheme.name} has 2 → 5.*\(this way\)"):
            require_fit(layers, plans, scheme, one_by_one="this way")


def _uneven_plans_of_others(layers):
    for name in ("sm20", "cvp26-0", "cvp26-1"):
        yield get_scheme(name), plan_layers(get_scheme(name), layers, MOMENTS, {}, uneven=True)


def test_one_layer_and_missing_biases_are_told():
    moments = prescribe_moments(covariance=[1.0, 1.0], length_scale=[1.0, 1.0])
    only = [Found("only", np.zeros((2, 2)), np.zeros(2), "sine")]
    with pytest.raises(ValueError, match="the model has 1 layers, but uniform-phase has at least 2; pass a model with"):
        require_fit(only, plan_layers(UNIFORM_PHASE, only, moments, {}, uneven=True), UNIFORM_PHASE, one_by_one="")
    plan = plan_layer(UNIFORM_PHASE, "hidden", (8, 8))
    with pytest.raises(ValueError, match=r"it has no bias, but uniform-phase draws it from U\(±3.142\); make"):
        require_bias("it", None, plan, UNIFORM_PHASE)
    require_bias("it", None, plan_layer(get_scheme("relu"), "hidden", (8, 8)), get_scheme("relu"))
