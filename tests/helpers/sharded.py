"""A small training run on all devices there are, in this process or in one of several."""

from unittest import mock

import equinox as eqx
import jax
import numpy as np

import uniphase as up
from uniphase.training.fit import RecipeRule
from uniphase.training.sampling import replicate
from uniphase.training.step import Problem, loss_and_gradients, split_network


def train(size: int) -> dict[str, np.ndarray]:
    """The loss and its gradients, the losses of some full-batch steps, and the quality of a fit by batches.

    23² samples are scattered points; others are a grid.
    """
    field = up.load("camera", size=size)
    if size == 23:
        field = up.Points(field.coordinates(), field.values.reshape(-1, 1))
    moments = up.estimate_moments(field)
    network = up.CoordinateMLP(up.uniform_phase(moments, width=16, depth=1), key=jax.random.key(0))
    recipe = up.Recipe("adam", 1e-3, 1.0, 20, 10**9)
    with mock.patch("uniphase.training.sampling._BLOCK_CPU", 100 * 16):  # several blocks
        parameters, frozen, static = replicate(split_network(network))
        term = up.Values(field, moments).prepare(np.dtype("float32"))
        problem = Problem((term,), frozen, static, None, RecipeRule("adam", None), recipe.batch)
        found = eqx.filter_jit(loss_and_gradients)(problem, parameters, frozen, jax.random.key(0))
        full = up.fit(network, field, recipe=recipe, moments=moments)
        partial = up.fit(network, field, recipe=up.Recipe("muon", 0.05, 0.01, 100, 128), moments=moments)
    arrays = {f"gradient {i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(found))}
    others = {"losses": full.losses, "snr": partial.metrics.snr_db, "devices": jax.device_count()}
    return arrays | {name: np.asarray(value) for name, value in others.items()}
