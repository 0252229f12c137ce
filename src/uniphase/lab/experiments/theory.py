"""Sections 2 and 3 and appendix A: Monte Carlo tests of every statement, exact or heuristic."""

import dataclasses
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...initialization.moments import prescribe_moments
from ...initialization.schemes import uniform_phase
from ..experiment import Experiment, titled
from ..runs import Outcome, Preset, SingleRun
from ..store import Store
from ..tables import MISSING, Table

# Correlated channels and an anisotropic structure tensor, so that no statement holds by symmetry alone.
_TARGET = prescribe_moments(
    mean=[1.0, -2.0, 0.5],
    covariance=[[2.0, 0.9, -0.3], [0.9, 1.0, 0.2], [-0.3, 0.2, 0.5]],
    structure_tensor=[[300.0, -120.0], [-120.0, 90.0]],
)
_POSITION = (0.3, -0.7)
# The probability of refuting a statement that is true.
_LEVEL = 1e-6

STATEMENTS = {
    "output-gramian": "E JJᵀ = I for J = ∂x_L/∂x₀, through all hidden layers",
    "input-gramian": "E JᵀJ = I for J = ∂x_L/∂x₀, through all hidden layers",
    "inner-output-gramian": "E JJᵀ = I for J = ∂x_L/∂x₁, between two hidden layers",
    "inner-input-gramian": "E JᵀJ = I for J = ∂x_L/∂x₁, between two hidden layers",
    "mean": "E f = μ",
    "covariance": "Cov f = Σ",
    "structure-tensor": "E ∇fᵀΣ⁻¹∇f = Ω",
    "independence": "cos z and W are uncorrelated, and so are their squares",
    "gradient-gramian": "E (∇W)ᵀ∇W = ¼‖g‖² I for a fixed cotangent g",
    "loss-gradient-gramian": "E (∇W)ᵀ∇W ≈ ¼‖g‖² I for the cotangent of a loss (a heuristic)",
    "loss-input-gradient": "E ‖∇x₀‖² ≈ ‖g‖² for the cotangent of a loss (a heuristic)",
}


@dataclass(frozen=True)
class TheoryRun(SingleRun):
    """Test a statement on independent random networks."""

    statement: str
    width: int
    depth: int
    networks: int
    seed: int = 0

    kind = "theory"

    @property
    def label(self) -> str:
        return f"{self.statement} N={self.width} L={self.depth} seed={self.seed}"

    def effective(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def compute(self) -> Outcome:
        import jax

        from ...jax.network import CoordinateMLP

        begun = time.perf_counter()
        blueprint = uniform_phase(_TARGET, width=self.width, depth=self.depth)
        keys = jax.random.split(jax.random.key(self.seed), self.networks)

        def sample(key):
            return _statistic(self.statement, CoordinateMLP(blueprint, dtype=np.float32, key=key)).ravel()

        samples = jax.jit(lambda keys: jax.lax.map(sample, keys, batch_size=200))(keys)
        metrics = summarize(np.asarray(samples, np.float64), _expected(self.statement, self.width).ravel())
        return Outcome(metrics, {}, time.perf_counter() - begun)


def summarize(samples: np.ndarray, expected: np.ndarray) -> dict[str, Any]:
    """Compare the mean of the samples with the expected array, as a whole and entry by entry.

    `measured` is the projection of the mean onto the expected array, so that 1 is predicted; if the expected array is
    zero, it is the average of all entries. `largest_deviation` is that of an entry in units of its standard error.
    """
    from scipy.special import ndtri  # the quantiles of a normal variable; scipy.stats takes a second to import

    vanishing = not expected.any()
    direction = np.full(expected.shape, 1 / expected.size) if vanishing else expected / (expected @ expected)
    projected, root = samples @ direction, math.sqrt(len(samples))
    errors = samples.std(axis=0, ddof=1) / root
    deviations = np.abs(samples.mean(axis=0) - expected) / np.where(errors > 0, errors, np.inf)
    return {
        "predicted": 0.0 if vanishing else 1.0,
        "measured": float(projected.mean()),
        "standard_error": float(projected.std(ddof=1) / root),
        "entries": int(expected.size),
        "largest_deviation": float(deviations.max()),
        "bound": float(-ndtri(_LEVEL / 2 / expected.size)),
    }


def _statistic(statement: str, network):
    """A function of one random network whose expectation is `_expected`."""
    import jax
    import jax.numpy as jnp

    from ...jax.diagnostics import jacobian, layer_outputs

    x, mean = jnp.asarray(_POSITION, np.float32), jnp.asarray(_TARGET.mean, np.float32)
    hidden = len(network.layers) - 1
    if statement.endswith(("output-gramian", "input-gramian")):
        j = jacobian(network, x, 2 if statement.startswith("inner") else 1, hidden)
        return j @ j.T if statement.endswith("output-gramian") else j.T @ j
    if statement == "mean":
        return network(x)
    if statement == "covariance":
        return jnp.outer(network(x) - mean, network(x) - mean)
    if statement == "structure-tensor":
        slopes = jacobian(network, x)
        return slopes.T @ jnp.asarray(np.linalg.inv(_TARGET.covariance), np.float32) @ slopes
    h = layer_outputs(network, x)
    layer = network.layers[hidden - 1]
    if statement == "independence":
        slopes = jnp.cos(layer.preactivation(h[hidden - 1]))[:, None]
        squares = (slopes**2 - 0.5) * (layer.weight**2 - 2 / layer.weight.shape[1])
        return jnp.stack([slopes * layer.weight, squares])
    cotangent = jnp.ones(h[hidden].shape, np.float32)
    if statement.startswith("loss"):
        cotangent = jax.grad(lambda top: jnp.sum(jnp.square(network.layers[-1](top) - mean)) / 2)(h[hidden])
    if statement == "loss-input-gradient":
        return jnp.sum((jacobian(network, x, 1, hidden).T @ cotangent) ** 2) / jnp.sum(cotangent**2)
    # The second hidden layer, whose input is the output of another hidden layer.
    back = jacobian(network, x, 3, hidden).T @ cotangent
    slopes = jnp.cos(network.layers[2].preactivation(h[2]))
    gradient = jnp.outer(slopes * back, h[2])
    return 4 * gradient.T @ gradient / jnp.sum(cotangent**2)


def _expected(statement: str, width: int) -> np.ndarray:
    if statement == "mean":
        return _TARGET.mean
    if statement == "covariance":
        return _TARGET.covariance
    if statement == "structure-tensor":
        return _TARGET.structure_tensor
    if statement == "loss-input-gradient":
        return np.ones(1)
    return np.zeros((2, width, width)) if statement == "independence" else np.eye(width)


_NETWORKS: dict[Preset, int] = {"paper": 50_000, "quick": 2_000}


def _runs(preset: Preset, seeds: int, store: Store) -> list[TheoryRun]:
    """All statements at three sizes; wide networks need fewer samples, since they average over neurons."""
    sizes = ((2, 2, 1), (8, 4, 1), (64, 8, 10))
    return [
        TheoryRun(statement, width, depth, _NETWORKS[preset] // fewer, seed)
        for seed in range(seeds)
        for statement in STATEMENTS
        for width, depth, fewer in sizes
    ]


def _tables(preset: Preset, seeds: int, store: Store) -> list[Table]:
    rows = []
    for run in _runs(preset, seeds, store):
        record = store.get(run)
        size = (STATEMENTS[run.statement], str(run.width), str(run.depth), f"{run.networks:,}", str(run.seed))
        if record is None:
            rows.append((*size, *[MISSING] * 5, "not run"))
            continue
        m = record.metrics
        refuted = f"off by {100 * abs(m['measured'] - 1):.0f} %" if "heuristic" in size[0] else "refuted"
        judged = "holds" if m["largest_deviation"] < m["bound"] else refuted
        numbers = (f"{m['predicted']:.0f}", f"{m['measured']:.5f}", f"{m['standard_error']:.5f}")
        rows.append((*size, *numbers, f"{m['largest_deviation']:.2f}", f"{m['bound']:.2f}", judged))
    header = ("statement", "N", "L", "networks", "seed", "predicted", "measured", "standard error")
    header = (*header, "largest deviation of an entry / its error", "bound", "verdict")
    note = (
        "Measured in units of what is predicted; 0 where all entries should vanish. *Refuted* if an entry deviates by "
        "more standard errors than the bound, which all entries together exceed with probability 1e-6 if the statement "
        "is true. A heuristic is then *off by* so much."
    )
    return [Table("theory", titled("Statements of the theory, by Monte Carlo", preset), header, tuple(rows), (note,))]


EXPERIMENT = Experiment("theory", "theorems of sections 2 and 3, appendix A.3", (_runs,), _tables, lambda *_: {})
