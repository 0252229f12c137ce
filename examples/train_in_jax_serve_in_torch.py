"""Train in JAX, serve in PyTorch: python examples/train_in_jax_serve_in_torch.py

Both frameworks read the same files, and the same weights give the same values.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import uniphase as up
import uniphase.torch as upt
from uniphase.signals.fields import grid_coordinates


def train(path: str, size: int, steps: int | None) -> np.ndarray:
    """Fit an image, write the network, and return its values in the middle of every pixel."""
    result = up.fit("camera", size=size, steps=steps)
    result.save(path)
    return result.render(average=False)


def serve(path: str) -> np.ndarray:
    """Read the network and evaluate it where the image was sampled. Nothing here loads JAX."""
    file = upt.load_network(path)
    shape = file.domain.shape
    assert shape is not None  # it was fitted to a grid
    positions = grid_coordinates(shape, file.domain.extents, file.domain.align)
    with torch.inference_mode():
        values = file.network(torch.tensor(positions, dtype=torch.float32))
    return values.reshape(*shape, -1).numpy()


def main(size: int = 128, steps: int | None = None) -> float:
    trained = train("camera.uniphase", size, steps)
    served = serve("camera.uniphase")
    difference = float(np.abs(trained - served).max())
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for ax, title, picture in zip(axes, ("JAX", "PyTorch"), (trained, served), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("train_in_jax_serve_in_torch.png")
    print(f"{served.shape} values from camera.uniphase; JAX and PyTorch differ by at most {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()
