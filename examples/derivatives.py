"""Gradient and Laplacian of a photo: python examples/derivatives.py

A network of sines has derivatives of every order. They are exact, computed in the forward pass, and as sharp as the
network, at any resolution; differences of pixels are not.
"""

import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def main(size: int = 128, steps: int = 400, width: int = 128) -> float:
    """The correlation between the gradient of the network and differences of pixels."""
    photo = up.load("camera", size=size)
    result = up.fit(photo, width=width, steps=steps)
    fine = 3 * size, 3 * size
    steep = np.linalg.norm(result.render(fine, derivative="gradient")[..., 0, :], axis=-1)
    curved = result.render(fine, derivative="laplacian")[..., 0]

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    axes[0].imshow(result.render(fine)[..., 0], cmap="gray", vmin=0, vmax=1)
    axes[1].imshow(steep, cmap="magma", vmax=np.quantile(steep, 0.99))
    limit = np.quantile(np.abs(curved), 0.97)
    axes[2].imshow(curved, cmap="RdBu", vmin=-limit, vmax=limit)
    for ax, title in zip(axes, ("the network", "length of its gradient", "its Laplacian"), strict=True):
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("derivatives.png")
    differences = np.linalg.norm(np.gradient(photo.values[..., 0]), axis=0)
    pixels = np.linalg.norm(result.render(derivative="gradient")[..., 0, :], axis=-1)
    agreement = float(np.corrcoef(pixels.ravel(), differences.ravel())[0, 1])
    print(f"gradients and differences of pixels have a correlation of {agreement:.3f}")
    return agreement


if __name__ == "__main__":
    main()
