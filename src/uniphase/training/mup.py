"""Learning rates by role: the maximal-update parametrization (μP) for Adam.

An array has one of four roles: input weights, hidden weights, output weights, or bias. μP lets the rates of the hidden
and output weights fall like 1/N, and in its strict form starts the output weights smaller, too.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import optax
from jaxtyping import PyTree

from ..jax.network import CoordinateMLP


class Rates(NamedTuple):
    """A learning rate for each role.

    **Arguments:**

    - `input`, `hidden`, `output`: of the weights of these layers.
    - `bias`: of all biases.

    !!! example
        ```python
        rates = Rates(input=1e-3, hidden=1e-4, output=1e-4, bias=1e-3)
        ```
    """

    input: float
    hidden: float
    output: float
    bias: float

    @staticmethod
    def uniform(rate: float) -> "Rates":
        """The same rate for all.

        !!! example
            ```python
            Rates.uniform(1e-4)
            ```
        """
        return Rates(rate, rate, rate, rate)


def mup_rates(rate: float, *, width: int, base_width: int) -> Rates:
    """μP's rates for Adam: those of hidden and output weights are multiplied by `base_width / width`.

    **Arguments:**

    - `rate`: of all arrays at the base width, and of input weights and biases at every width.
    - `width`, `base_width`: N, and the N₀ at which the rate was chosen.

    !!! example
        ```python
        mup_rates(1e-3, width=256, base_width=64)  # hidden and output weights at 2.5e-4
        ```

    ??? cite "Reference"
        Yang and coauthors, "Tensor programs V", 2022, table 8, with the output weights as in Kuang, Chickering and Lin,
        "Stable initialization without the CLT", appendix C.
    """
    for name, value in (("width", width), ("base_width", base_width)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    scaled = rate * base_width / width
    return Rates(rate, scaled, scaled, rate)


def mup_output(network: CoordinateMLP, *, base_width: int) -> CoordinateMLP:
    """The network with its output weights multiplied by √(N₀/N): μP's initialization of the last layer.

    **Arguments:**

    - `network`: as it was drawn, of width N.
    - `base_width`: N₀, at which nothing changes.

    !!! example
        ```python
        smaller = mup_output(network, base_width=4)
        ```
    """
    if base_width < 1:
        raise ValueError(f"base_width is {base_width}; it must be at least 1")
    factor = math.sqrt(base_width / network.layers[-1].weight.shape[1])
    return eqx.tree_at(lambda n: n.layers[-1].weight, network, replace_fn=lambda weight: factor * weight)


def role_rates(network: CoordinateMLP, rates: Rates) -> PyTree[float]:
    """The rate of every array of a network, in a tree of its structure; 0 for the arrays of a frozen layer.

    !!! example
        ```python
        from uniphase.training.mup import role_rates

        role_rates(network, Rates.uniform(1e-4)).layers[0].weight  # 0.0001
        ```
    """
    tree = eqx.filter(network, eqx.is_array)
    for i, layer in enumerate(network.layers):
        weight, bias = (getattr(rates, layer.role), rates.bias) if layer.trainable else (0.0, 0.0)
        tree = eqx.tree_at(lambda t, i=i: t.layers[i].weight, tree, weight)
        if layer.bias is not None:
            tree = eqx.tree_at(lambda t, i=i: t.layers[i].bias, tree, bias)
    return tree


def scale_by_roles(network: CoordinateMLP, rates: Rates) -> optax.GradientTransformation:
    """Multiply every update by minus the rate of its role: `optax.scale_by_learning_rate`, role by role.

    **Arguments:**

    - `network`: whose layers have the roles.
    - `rates`: one for each role.

    !!! example
        ```python
        rates = mup_rates(1e-3, width=8, base_width=64)
        optimizer = optax.chain(optax.scale_by_adam(), scale_by_roles(network, rates))
        ```
    """
    tree = role_rates(network, rates)
    return optax.stateless(lambda updates, _: jax.tree.map(lambda rate, update: -rate * update, tree, updates))
