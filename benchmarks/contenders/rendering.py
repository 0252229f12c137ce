"""Rendering."""

import time

import numpy as np

import uniphase as up

from .size import Run, Size
from .steps import torch_sequential

CHUNK = 65_536  # positions at a time, where a peer would otherwise need gigabytes


def uniphase_render(size: Size) -> Run:
    network = size.network()

    def run(count):
        begun = time.perf_counter()
        pictures = [up.render(network, (size.side, size.side)) for _ in range(count)]
        return time.perf_counter() - begun, pictures[-1][::97, ::97].ravel().tolist()

    return run


def torch_render(size: Size) -> Run:
    import torch

    torch.set_num_threads(2)
    model = torch_sequential(size)
    positions = torch.tensor(up.Grid(np.zeros((size.side, size.side, 1))).coordinates().astype(np.float32))

    def run(count):
        begun = time.perf_counter()
        with torch.no_grad():
            pictures = [torch.cat([model(chunk) for chunk in positions.split(CHUNK)]) for _ in range(count)]
        picture = pictures[-1].reshape(size.side, size.side)
        return time.perf_counter() - begun, picture[::97, ::97].ravel().tolist()

    return run
