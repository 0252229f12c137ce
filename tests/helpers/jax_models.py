"""The same small network in every JAX library, and models as people write them by hand."""

import equinox as eqx
import flax.linen
import haiku
import jax
import jax.numpy as jnp
from flax import nnx

KEY = jax.random.key(0)
OMEGAS = (30.0, 2.0)
WIDTHS = (8, 8, 3)


class Linen(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x):
        for width, omega in zip(WIDTHS[:-1], OMEGAS, strict=True):
            x = jnp.sin(omega * flax.linen.Dense(width)(x))
        return flax.linen.Dense(WIDTHS[-1])(x)


class Nnx(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        sizes = zip((2, *WIDTHS[:-1]), WIDTHS, strict=True)
        self.layers = nnx.List([nnx.Linear(n, m, rngs=rngs) for n, m in sizes])

    def __call__(self, x):
        for layer, omega in zip(self.layers[:-1], OMEGAS, strict=True):
            x = jnp.sin(omega * layer(x))
        return self.layers[-1](x)


def _forward(x):
    for width, omega in zip(WIDTHS[:-1], OMEGAS, strict=True):
        x = jnp.sin(omega * haiku.Linear(width)(x))
    return haiku.Linear(WIDTHS[-1])(x)


def linen_pair():
    model = Linen()
    return model.apply, model.init(KEY, jnp.zeros(2))


def haiku_pair():
    model = haiku.without_apply_rng(haiku.transform(_forward))
    return model.apply, model.init(jax.random.key_data(KEY), jnp.zeros(2))


def equinox_module() -> eqx.nn.Sequential:
    layers = []
    for n, m, omega in zip((2, *WIDTHS[:-1]), WIDTHS, (*OMEGAS, None), strict=True):
        layers.append(eqx.nn.Linear(n, m, key=KEY))
        layers += [] if omega is None else [eqx.nn.Lambda(lambda z, omega=omega: jnp.sin(omega * z))]
    return eqx.nn.Sequential(layers)


LIBRARIES = {
    "linen": linen_pair,
    "nnx": lambda: Nnx(nnx.Rngs(0)),
    "haiku": haiku_pair,
    "equinox": equinox_module,
}


def by_hand(product=lambda w, x, b: w @ x + b, before=lambda x: x, after=lambda y: y, activation=jnp.sin):
    """A pair: sin(30 z) between linear maps of bare arrays, and functions around it."""
    keys = jax.random.split(KEY, 6)
    sizes = zip((2, *WIDTHS[:-1]), WIDTHS, strict=True)
    params = [
        (jax.random.normal(keys[2 * i], (m, n)) / n**0.5, jax.random.normal(keys[2 * i + 1], (m,)))
        for i, (n, m) in enumerate(sizes)
    ]

    def apply(params, x):
        h = before(x)
        for w, b in params[:-1]:
            h = activation(product(w, h, b))
        return after(params[-1][0] @ h + params[-1][1])

    return apply, params
