"""The limits of a step: the products of its hidden layers and nothing else, in their fastest layout, and its sines."""

import time
from collections.abc import Callable

import numpy as np

import uniphase as up

from .size import Run, Size


def products_numpy(size: Size) -> Run:
    return _products(size, np.asarray, lambda product: product, lambda result: result)


def products_torch(size: Size) -> Run:
    import torch

    torch.set_num_threads(2)
    return _products(size, torch.tensor, lambda product: product, lambda result: result)


def products_jax(size: Size) -> Run:
    import jax
    import jax.numpy as jnp

    return _products(size, jnp.asarray, jax.jit, jax.block_until_ready)


def _products(size: Size, asarray: Callable, compiled: Callable, wait: Callable) -> Run:
    """Forward W h, backward Wᵀ g and the gradient g hᵀ: rows or columns, whole or in blocks, whichever is fastest."""
    rng, points = np.random.default_rng(0), size.side**2
    weight = asarray(rng.standard_normal((size.width, size.width), dtype=np.float32))
    candidates: dict[str, list[Callable]] = {"forward": [], "backward": [], "gradient": []}
    for block in (2048, points):
        h, g = (asarray(rng.standard_normal((size.width, block), dtype=np.float32)) for _ in range(2))
        h_rows, g_rows = (asarray(np.ascontiguousarray(np.asarray(a).T)) for a in (h, g))
        transposed = asarray(np.ascontiguousarray(np.asarray(weight).T))
        layouts = {
            "forward": [(lambda w, h: w @ h, weight, h), (lambda h, w: h @ w.T, h_rows, weight),
                        (lambda h, w: h @ w, h_rows, transposed)],
            "backward": [(lambda w, g: w.T @ g, weight, g), (lambda w, g: w @ g, transposed, g),
                         (lambda g, w: g @ w, g_rows, weight)],
            "gradient": [(lambda g, h: g @ h.T, g, h), (lambda g, h: g.T @ h, g_rows, h_rows),
                         (lambda g, h: g @ h, g, h_rows)],
        }  # fmt: skip
        for kind, choices in layouts.items():
            for product, *operands in choices:
                function, repeats = compiled(product), points // block

                def whole(function=function, operands=operands, repeats=repeats):
                    wait([function(*operands) for _ in range(repeats)])

                candidates[kind].append(whole)

    def seconds(function):
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun

    for choices in candidates.values():
        for function in choices:
            function()  # compiled, and in the cache
    best = [min(choices, key=lambda f: min(seconds(f) for _ in range(5))) for choices in candidates.values()]

    def run(count):
        begun = time.perf_counter()
        for _ in range(count * size.depth):
            for function in best:
                function()
        return time.perf_counter() - begun, []

    return run


def sines_jax(size: Size) -> Run:
    """The sines and cosines of a step alone, by uniphase."""
    import jax
    import jax.numpy as jnp

    z = jnp.asarray(np.random.default_rng(0).normal(0, 2, (size.width, size.side**2)).astype(np.float32))
    both = jax.jit(lambda z: (up.sine(z), up.cosine(z)))

    def run(count):
        begun = time.perf_counter()
        for _ in range(count * (size.depth + 1)):
            jax.block_until_ready(both(z))
        return time.perf_counter() - begun, []

    return run
