"""The moments of some photos: python examples/moments_of_photos.py

All that the initialization takes from a signal: the mean, the covariance, and the structure tensor Ω, which says how
fast the signal changes in each direction. The ellipse shows the length over which a photo changes by its own standard
deviation, ten times enlarged: upright bricks change faster sideways than downwards.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import uniphase as up


def main(size: int = 128) -> dict[str, up.Moments]:
    names = ("camera", "brick", "gravel", "clock", "astronaut", "coffee")
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.3), layout="constrained")
    found = {}
    for ax, name in zip(axes.flat, names, strict=True):
        photo = up.load(name, size=size)
        found[name] = up.estimate_moments(photo)
        squares, directions = np.linalg.eigh(found[name].structure_tensor / photo.out_size)
        lengths = 1 / np.sqrt(squares)  # from the longest to the shortest
        turn = np.degrees(np.arctan2(directions[0, 0], directions[1, 0]))  # coordinates are (down, right)
        (top, bottom), (left, right) = photo.extents
        ax.imshow(photo.values, cmap="gray", vmin=0, vmax=1, extent=(left, right, bottom, top))
        ax.add_patch(Ellipse((0, 0), 10 * lengths[0], 10 * lengths[1], angle=turn, fill=False, color="C1", linewidth=2))
        ax.set(title=f"{name}: {lengths[0]:.3f}, {lengths[1]:.3f}", xticks=[], yticks=[])
        print(f"{name:<10} length scales {lengths[0]:.3f} and {lengths[1]:.3f}; mean {found[name].mean.round(2)}")
    figure.savefig("moments_of_photos.png")
    return found


if __name__ == "__main__":
    main()
