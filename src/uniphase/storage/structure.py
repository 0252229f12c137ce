"""The structure of a network of any framework: its layers, as a blueprint without distributions."""

import dataclasses
from typing import Any

from ..initialization.blueprint import Blueprint, LayerPlan
from ..initialization.distributions import Constant, Given


def read_structure(network: Any) -> Blueprint:
    """The layers of a network as a blueprint whose distributions are all `Given`.

    **Arguments:**

    - `network`: of any framework. Each of its `layers` has `weight`, `bias`, `activation`, `omega`, `role` and
        `trainable`, as a `LayerPlan` has.

    !!! example
        ```python
        print(read_structure(network))
        ```
    """
    try:
        layers = tuple(network.layers)
        return Blueprint("given", tuple(_plan(layer) for layer in layers))
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"network is a {type(network).__name__}, whose layers cannot be saved ({error}); pass a CoordinateMLP"
        ) from error


def zeros(blueprint: Blueprint) -> Blueprint:
    """The same layers with every weight and bias at zero, in place of a random draw."""
    zero = Constant(0.0)
    plans = (
        dataclasses.replace(plan, weight=zero, bias=None if plan.bias is None else zero) for plan in blueprint.layers
    )
    return Blueprint(blueprint.scheme, tuple(plans))


def same_structure(blueprint: Blueprint, other: Blueprint) -> bool:
    """Whether two blueprints have the same layers, apart from their names and distributions."""
    return zeros(blueprint).layers == zeros(other).layers


def _plan(layer: Any) -> LayerPlan:
    rows, columns = layer.weight.shape
    return LayerPlan(
        layer.role,
        rows,
        columns,
        layer.activation,
        Given(),
        None if layer.bias is None else Given(),
        layer.omega,
        layer.trainable,
    )
