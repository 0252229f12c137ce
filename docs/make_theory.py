"""Write the pictures of docs/theory.md into docs/theory: python docs/make_theory.py [NAME ...]"""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from make_gallery import STYLE
from matplotlib.figure import Figure
from PIL import Image

import uniphase as up
from uniphase.signals.paths import atomic_path

HERE = Path(__file__).parent / "theory"


def phases() -> Figure:
    """The slope of a sine beside the weighted input that it depends on, for narrow and for uniform phases."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=400_000)
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained", sharey=True)
    for ax, share in zip(axes, (0.05, 0.4, 1.0), strict=True):
        slope = np.cos(x + rng.uniform(-share * np.pi, share * np.pi, x.size))
        counts, x_edges, y_edges = np.histogram2d(x, slope, bins=(70, 60), range=((-2.5, 2.5), (-1, 1)))
        density = counts / counts.sum(axis=1, keepdims=True)  # of the slope, for each x
        ax.pcolormesh(x_edges, y_edges, np.minimum(density, 0.12).T, cmap="viridis")
        centers = (y_edges[1:] + y_edges[:-1]) / 2
        ax.plot((x_edges[1:] + x_edges[:-1]) / 2, density @ centers, color="white", linewidth=2)
        title = "uniform around the circle" if share == 1 else f"biases within ±{share:g}π"
        ax.set(title=title, xlabel="x, the weighted input of a neuron")
    axes[0].set(ylabel="its slope, cos(x + b)")
    return figure


def depth() -> Figure:
    """How much a network amplifies slopes, layer by layer, for three initializations."""
    moments = up.prescribe_moments(length_scale=[0.1, 0.1])
    last, width, networks = (2, 4, 8, 12, 16, 20), 32, 30
    schemes = {
        "uniform-phase": lambda: up.uniform_phase(moments, width=width, depth=20),
        "SIREN (sm20)": lambda: up.sm20((2, 1), width=width, depth=20, omega=30.0),
        "CVP26, σ_a = 0": lambda: up.cvp26_0((2, 1), width=width, depth=20),
    }
    positions = jax.random.uniform(jax.random.key(0), (8, 2), minval=-1.0)
    figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
    for name, scheme in schemes.items():
        drawn = [up.CoordinateMLP(scheme(), key=key) for key in jax.random.split(jax.random.key(1), networks)]
        through = [[np.square(up.jacobian_spectra(net, positions, 1, end)).mean() for end in last] for net in drawn]
        (line,) = ax.semilogy(np.subtract(last, 1), np.mean(through, axis=0), "o-", label=name)
        ax.fill_between(
            np.subtract(last, 1), *np.quantile(through, [0.1, 0.9], axis=0), color=line.get_color(), alpha=0.2
        )
    ax.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    ax.set(xlabel="hidden layers", ylabel="mean squared singular value")
    ax.legend()
    return figure


def moments() -> Figure:
    """Untrained networks for several moments: what Ω does above, and what Σ and μ do below."""
    lengths = {"ℓ = 0.3": [0.3, 0.3], "ℓ = 0.1": [0.1, 0.1], "ℓ = 0.03": [0.03, 0.03], "ℓ = 0.3 and 0.03": [0.3, 0.03]}
    mixed = 0.04 * (0.05 * np.eye(3) + 0.95)
    warm = {"mean": [0.8, 0.45, 0.2], "covariance": 0.01}
    colors = {
        "Σ: channels apart": {"mean": 0.5 * np.ones(3), "covariance": 0.04 * np.eye(3)},
        "Σ: channels together": {"mean": 0.5 * np.ones(3), "covariance": mixed},
        "Σ: a fourth of it": {"mean": 0.5 * np.ones(3), "covariance": mixed / 4},
        "another μ": warm,
    }
    panels = {
        title: up.prescribe_moments(mean=0.5, covariance=0.05, length_scale=ell) for title, ell in lengths.items()
    }
    panels |= {title: up.prescribe_moments(**known, length_scale=[0.15, 0.15]) for title, known in colors.items()}
    figure, axes = plt.subplots(2, 4, figsize=(10.5, 5.7), layout="constrained")
    for ax, (title, known) in zip(axes.flat, panels.items(), strict=True):
        network = up.CoordinateMLP(up.uniform_phase(known, width=128, depth=1), key=jax.random.key(4))
        ax.imshow(up.render(network, (192, 192)).clip(0, 1), cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    return figure


def wrong_omega() -> Figure:
    """A curve through 150 samples, by SIREN at three ω₀ and by uniform-phase, after the same steps."""

    def truth(x: np.ndarray) -> np.ndarray:
        return np.sin(40 * x) * np.exp(-x / 2) + 0.4 * np.sin(90 * x + 1)

    x, fine = np.sort(np.random.default_rng(0).uniform(-1, 1, 150)), np.linspace(-1, 1, 2000)
    points = up.Points(x, truth(x))
    schemes = {f"SIREN, ω₀ = {omega}": up.sm20((1, 1), width=64, depth=2, omega=float(omega)) for omega in (3, 30, 300)}
    schemes["uniform-phase"] = up.uniform_phase(up.estimate_moments(points), width=64, depth=2)
    figure, axes = plt.subplots(2, 2, figsize=(10.5, 5), layout="constrained", sharex=True, sharey=True)
    for ax, (title, blueprint) in zip(axes.flat, schemes.items(), strict=True):
        network = up.CoordinateMLP(blueprint, key=jax.random.key(0))
        network = up.fit(network, points, optimizer=optax.adam(1e-3), steps=1000).network
        found = np.asarray(network(jnp.asarray(fine[:, None], jnp.float32)))[:, 0]
        ax.plot(fine, truth(fine), color="0.6", linewidth=3, alpha=0.5)
        ax.plot(fine, found, color="C0", linewidth=1.2)
        ax.plot(x, truth(x), ".", color="C1")
        error = np.sqrt(np.mean((found - truth(fine)) ** 2))
        ax.set(title=f"{title}: off by {error:.2f}", ylim=(-2.2, 2.2))
    return figure


def best_omega() -> Figure:
    """The test error of two photos over ω₀, one of them in two units, and that of uniform-phase."""
    signals = {"camera": ("camera", 1.0), "camera in other units": ("camera", 8.0), "clock": ("clock", 1.0)}
    omegas = np.geomspace(1, 256, 9)
    figure, ax = plt.subplots(figsize=(8.5, 3.8), layout="constrained")
    for color, (title, (name, half)) in zip(("C0", "C1", "C2"), signals.items(), strict=True):
        photo, twice = (up.load(name, size=size, extents=(-half, half)) for size in (32, 64))
        blueprints = [up.sm20((2, 1), width=32, depth=3, omega=float(omega)) for omega in omegas]
        ours = up.uniform_phase(up.estimate_moments(photo), width=32, depth=3)
        scores = [_explained(photo, twice, group) for group in (blueprints, [ours])]
        ax.semilogx(omegas, scores[0], "o-", color=color, label=f"{title}: SIREN")
        ax.axhline(scores[1][0], color=color, linestyle="--", label=f"{title}: uniform-phase")
    ax.set(xlabel="ω₀", ylabel="variance explained at twice\nthe resolution, dB", ylim=(-5, None))
    figure.legend(fontsize="small", loc="outside right center")
    return figure


def _explained(photo: up.Grid, test: up.Grid, blueprints: list[up.Blueprint]) -> list[float]:
    """Fit a photo from each blueprint in the same steps, and measure it on another grid, in dB."""
    networks = [up.CoordinateMLP(blueprint, key=jax.random.key(0)) for blueprint in blueprints]
    fits = up.fit_together(networks, photo, rates=[up.Rates.uniform(2e-3)] * len(networks), steps=300)
    errors = [up.evaluate_network(fit.network, test).mse for fit in fits]
    return [float(10 * np.log10(np.var(test.values) / error)) for error in errors]


FIGURES: tuple[Callable[[], Figure], ...] = (phases, depth, moments, wrong_omega, best_omega)

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for draw in FIGURES:
        if draw.__name__ in (sys.argv[1:] or [figure.__name__ for figure in FIGURES]):
            with plt.rc_context(STYLE):
                draw().savefig(buffer := io.BytesIO())
            with atomic_path(HERE / f"{draw.__name__}.webp") as whole:
                Image.open(buffer).save(whole, "WEBP", quality=88, method=6)
            print(draw.__name__, flush=True)
