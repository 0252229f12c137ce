"""A volume, and slices between its slices: python examples/volume.py

Every second slice of a volume is held back. The network, fitted to the others, is asked for all of them; beside it
stands linear interpolation.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import uniphase as up


def main(size: int = 32, steps: int = 400, width: int = 128) -> tuple[float, float]:
    """The SNR of the slices that were held back, by the network and by interpolation, in dB."""
    noise = np.random.default_rng(0).normal(size=(2 * size, size, size))
    tissue = gaussian_filter(noise, 2.5, mode="wrap") - gaussian_filter(noise, 5, mode="wrap")
    tissue = 1 / (1 + np.exp(-tissue / 0.005))  # soft walls between two materials
    known = up.Grid(tissue[::2, ..., None], extents=((0.0, 2.0), (-0.5, 0.5), (-0.5, 0.5)))
    result = up.fit(known, width=width, steps=steps)
    result.save("volume.uniphase")
    up.export_network("volume.uniphase", "volume.html", bits=8)

    between = up.render(
        result.network, (size, size, size), extents=((1 / size, 2 + 1 / size), (-0.5, 0.5), (-0.5, 0.5))
    )
    between, true = between[:-1, ..., 0], tissue[1:-1:2]
    linear = (tissue[:-2:2] + tissue[2::2]) / 2
    ours, theirs = (float(10 * np.log10(np.var(true) / np.mean((guess - true) ** 2))) for guess in (between, linear))

    middle = size // 2
    panels = {
        "slice before": tissue[2 * middle],
        "held back": true[middle],
        "network": between[middle],
        "linear": linear[middle],
    }
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), layout="constrained")
    for ax, (title, picture) in zip(axes, panels.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("volume.png")
    print(f"slices that were held back: {ours:.2f} dB SNR, linear interpolation {theirs:.2f} dB")
    return ours, theirs


if __name__ == "__main__":
    main()
