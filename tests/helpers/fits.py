"""What the tests of fits share: a small image, networks for it, and a fit that is interrupted."""

import jax
import numpy as np
import pytest

from helpers.interrupts import Interrupt
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import get_scheme
from uniphase.jax.network import CoordinateMLP
from uniphase.signals.datasets import load
from uniphase.training.fit import fit

FIELD = load("camera", size=24)
MOMENTS = estimate_moments(FIELD)


def network(width=16, depth=2, seed=0, scheme="uniform-phase"):
    return CoordinateMLP(get_scheme(scheme).blueprint(MOMENTS, width=width, depth=depth), key=jax.random.key(seed))


def assert_identical(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


def interrupted(tmp_path, *arguments, **options):
    """The checkpoint of a fit that was interrupted."""
    path = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        fit(*arguments, checkpoint=path, callback=Interrupt(1), **options)
    return path
