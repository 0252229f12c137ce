"""The size of a piece of work: a network, and the picture that it is for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import uniphase as up

Run = Callable[[int], tuple[float, list[float]]]


@dataclass(frozen=True)
class Size:
    """A network of `depth` hidden layers, on a square picture of `side`² pixels."""

    width: int
    depth: int
    side: int = 128

    def field(self) -> up.Grid:
        return up.load("camera", size=self.side)

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        field = self.field()
        return field.coordinates().astype(np.float32), field.flat_values().astype(np.float32)

    def blueprint(self) -> up.Blueprint:
        return up.uniform_phase(up.estimate_moments(self.field()), width=self.width, depth=self.depth)

    def parameters(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights and biases, drawn by NumPy, so that every framework can start from them."""
        rng = np.random.default_rng(0)
        draws = {"normal": rng.standard_normal, "uniform": rng.random, "zero": np.zeros}

        def draw(law, shape):
            return law.sample(draws[law.standard](shape), np.asarray).astype(np.float32)

        return [(draw(p.weight, (p.rows, p.columns)), draw(p.bias, (p.rows,))) for p in self.blueprint().layers]

    def network(self) -> Any:
        import equinox as eqx
        import jax
        import jax.numpy as jnp

        network = up.CoordinateMLP(self.blueprint(), key=jax.random.key(0))
        arrays = [jnp.asarray(array) for pair in self.parameters() for array in pair]
        return eqx.tree_at(lambda n: [a for layer in n.layers for a in (layer.weight, layer.bias)], network, arrays)
