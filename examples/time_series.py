"""A time series with gaps: python examples/time_series.py

Readings of a tide gauge at irregular times, with outages of two hours and noise of a known size. Scattered samples
need no grid, and with `noise` the fit ends before it learns the noise.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up

PERIODS, HEIGHTS = np.array([12.42, 12.0, 25.82, 23.93, 6.21]), np.array([1.2, 0.5, 0.3, 0.25, 0.12])  # hours, metres


def tide(hours: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * hours[..., None] / PERIODS + np.arange(5)) @ HEIGHTS


def main(samples: int = 2500, steps: int | None = None, noise: float = 0.1) -> tuple[float, float]:
    """The error of the fit and that of the readings, root mean square in metres."""
    rng = np.random.default_rng(0)
    hours = np.sort(rng.uniform(0, 14 * 24, samples))
    for outage in rng.uniform(20, 300, 8):
        hours = hours[(hours < outage) | (hours > outage + 2)]
    readings = tide(hours) + rng.normal(0, noise, len(hours))
    result = up.fit(up.Points(hours, readings), noise=noise, steps=steps)

    fine = np.linspace(hours[0], hours[-1], 4000)
    curve = np.asarray(result.network(jnp.asarray(fine[:, None], jnp.float32)))[:, 0]
    figure, ax = plt.subplots(figsize=(11, 3.2), layout="constrained")
    ax.plot(hours / 24, readings, ".", markersize=2, color="0.6", label="readings")
    ax.plot(fine / 24, tide(fine), color="C0", linewidth=1, label="truth")
    ax.plot(fine / 24, curve, color="C1", linewidth=1.2, label="fit")
    ax.set(xlabel="days", ylabel="metres", xlim=(3, 10))
    ax.legend(ncols=3, loc="upper right")
    figure.savefig("time_series.png")
    error = float(np.sqrt(np.mean((curve - tide(fine)) ** 2)))
    print(f"{len(hours):,} readings that are off by {noise} m; the fit is off by {error:.3f} m ({result.stop})")
    return error, noise


if __name__ == "__main__":
    main()
