"""Bricks at four times the resolution: python examples/super_resolution.py

A pixel is an average over its cell, and not the value in its middle. Fitted as averages, the network may be sharper
between the pixels than they are themselves. Beside it stand a fit of values at points, and a cubic spline.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from skimage.transform import resize

import uniphase as up


def main(size: int = 96, steps: int = 400, width: int = 128) -> dict[str, float]:
    """The SNR on the photo at four times the resolution, in dB."""
    coarse, fine = up.load("brick", size=size), up.load("brick", size=4 * size)
    moments = up.estimate_moments(coarse)
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(0))
    pictures = {"cubic spline": np.asarray(resize(coarse.values, fine.values.shape, order=3, mode="reflect"))}
    for name, term in {"values at points": coarse, "averages over cells": up.Averages(coarse)}.items():
        pictures[name] = up.render(up.fit(network, term, steps=steps).network, fine.shape)
    found = {name: up.evaluate(picture, fine).snr_db for name, picture in pictures.items()}

    cut = slice(size, 2 * size)
    panels = {f"{name}: {found[name]:.2f} dB": picture for name, picture in pictures.items()} | {"photo": fine.values}
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for ax, (title, picture) in zip(axes, panels.items(), strict=True):
        ax.imshow(picture[cut, cut, 0], cmap="gray", vmin=0.1, vmax=0.8)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("super_resolution.png")
    print(", ".join(f"{name} {snr:.2f} dB SNR" for name, snr in found.items()))
    return found


if __name__ == "__main__":
    main()
