"""Train in JAX, serve in PyTorch: python examples/train_in_jax_serve_in_torch.py"""

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
    print(f"{served.shape} values from camera.uniphase; JAX and PyTorch differ by at most {difference:.1e}")
    return difference


if __name__ == "__main__":
    main()
