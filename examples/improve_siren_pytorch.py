"""One line for siren-pytorch: python examples/improve_siren_pytorch.py

A network of the package siren-pytorch, trained by a plain loop; and the same after `initialize_`, which reads which
layers, sines and ω a model has and draws them anew.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from siren_pytorch import SirenNet

import uniphase as up
import uniphase.torch as upt


def fit(network: torch.nn.Module, field: up.Grid, steps: int) -> np.ndarray:
    """A plain loop with Adam, the same for both; the picture after it."""
    x = torch.tensor(field.coordinates(), dtype=torch.float32)
    y = torch.tensor(field.flat_values(), dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)  # SIREN's rate
    for _ in range(steps):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return network(x).reshape(field.values.shape).numpy()


def main(size: int = 128, steps: int = 300, width: int = 128) -> tuple[float, float]:
    field = up.load("camera", size=size)
    torch.manual_seed(0)
    network = SirenNet(dim_in=2, dim_hidden=width, dim_out=1, num_layers=5)
    pictures = {"siren-pytorch as it comes": fit(network, field, steps)}

    network = SirenNet(dim_in=2, dim_hidden=width, dim_out=1, num_layers=5)
    upt.initialize_(network, up.estimate_moments(field))  # the line
    pictures["with one line of uniphase"] = fit(network, field, steps)

    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("improve_siren_pytorch.png")
    before, after = (up.evaluate(picture, field).psnr_db for picture in pictures.values())
    print(f"siren-pytorch as it comes:   {before:.2f} dB PSNR after {steps} steps")
    print(f"with one line of uniphase:   {after:.2f} dB PSNR after {steps} steps")
    return before, after


if __name__ == "__main__":
    main()
