"""Take siren-pytorch's network and improve it with one line: python examples/improve_siren_pytorch.py"""

import torch
from siren_pytorch import SirenNet

import uniphase as up
import uniphase.torch as upt


def fit(network: torch.nn.Module, field: up.Grid, steps: int) -> float:
    """A plain loop with Adam, the same for both; the PSNR after it."""
    x = torch.tensor(field.coordinates(), dtype=torch.float32)
    y = torch.tensor(field.flat_values(), dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)  # SIREN's rate
    for _ in range(steps):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return up.evaluate(network(x).reshape(field.values.shape).numpy(), field).psnr_db


def main(size: int = 128, steps: int = 300, width: int = 128) -> tuple[float, float]:
    field = up.load("camera", size=size)
    torch.manual_seed(0)
    network = SirenNet(dim_in=2, dim_hidden=width, dim_out=1, num_layers=5)
    before = fit(network, field, steps)

    network = SirenNet(dim_in=2, dim_hidden=width, dim_out=1, num_layers=5)
    upt.initialize_(network, up.estimate_moments(field))  # the line
    after = fit(network, field, steps)

    print(f"siren-pytorch as it comes:   {before:.2f} dB PSNR after {steps} steps")
    print(f"with one line of uniphase:   {after:.2f} dB PSNR after {steps} steps")
    return before, after


if __name__ == "__main__":
    main()
