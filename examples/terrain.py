"""A terrain from scattered points: python examples/terrain.py

Heights at random places, in metres on a map in kilometres: units do not matter. The hillshade on the right is made of
the exact gradient of the network. Beside it stands SciPy's Clough–Tocher interpolation.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CloughTocher2DInterpolator, RegularGridInterpolator

import uniphase as up


def mountains(size: int) -> np.ndarray:
    """Heights of a random landscape, whose waves are lower the shorter they are."""
    waves = np.fft.rfft2(np.random.default_rng(3).normal(size=(size, size)))
    steepness = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)) + 1 / size
    land = np.fft.irfft2(waves / steepness**3)
    return 800 + 300 * land / land.std()


def main(samples: int = 4000, steps: int = 400, size: int = 200) -> tuple[float, float]:
    """The error between the points, root mean square in metres, by the network and by interpolation."""
    land, axis = mountains(size), np.linspace(0, 10, size)
    places = np.random.default_rng(0).uniform(0, 10, (samples, 2))
    heights = RegularGridInterpolator((axis, axis), land)(places)
    result = up.fit(up.Points(places, heights), steps=steps)

    domain = {"extents": ((0.0, 10.0), (0.0, 10.0)), "align": "corners"}
    found = up.render(result.network, (size, size), **domain)[..., 0]
    slopes = up.render(result.network, (size, size), derivative="gradient", **domain)[..., 0, :]
    spline = CloughTocher2DInterpolator(places, heights)(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1))
    inside = np.isfinite(spline)
    errors = [float(np.sqrt(np.mean((guess - land)[inside] ** 2))) for guess in (found, spline)]

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained")
    axes[0].scatter(places[:, 1], places[:, 0], c=heights, s=1, cmap="terrain")
    axes[0].set(title=f"{samples:,} points", aspect="equal", ylim=(10, 0), xlim=(0, 10))
    axes[1].imshow(found, cmap="terrain", extent=(0, 10, 10, 0))
    axes[1].set(title="heights")
    axes[2].imshow(
        -slopes.sum(axis=-1) / np.hypot(200, np.linalg.norm(slopes, axis=-1)), cmap="gray", extent=(0, 10, 10, 0)
    )
    axes[2].set(title="light from the upper left")
    figure.savefig("terrain.png")
    print(f"{samples:,} points: off by {errors[0]:.1f} m, Clough–Tocher by {errors[1]:.1f} m (root mean square)")
    return errors[0], errors[1]


if __name__ == "__main__":
    main()
