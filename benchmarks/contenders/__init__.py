"""What benchmarks/speed.py times: for each piece of work, the same computation by each contender.

A contender is a function that prepares the work and returns `run(count)`, which does it `count` times and gives the
seconds it took and what it computed. All start from the same weights, on the same data. Each runs in a process of its
own, and imports only what it needs.
"""

from .laplacians import (
    plain_laplacian as plain_laplacian,
    torch_laplacian as torch_laplacian,
    uniphase_laplacian as uniphase_laplacian,
)
from .limits import (
    products_jax as products_jax,
    products_numpy as products_numpy,
    products_torch as products_torch,
    sines_jax as sines_jax,
)
from .moments import scipy_sobel as scipy_sobel, uniphase_moments as uniphase_moments
from .rendering import torch_render as torch_render, uniphase_render as uniphase_render
from .size import Size as Size
from .steps import (
    plain_equinox as plain_equinox,
    siren_pytorch as siren_pytorch,
    torch_compile as torch_compile,
    torch_eager as torch_eager,
    torch_memory as torch_memory,
    uniphase_adam as uniphase_adam,
    uniphase_memory as uniphase_memory,
    uniphase_muon as uniphase_muon,
    uniphase_torch_fit as uniphase_torch_fit,
    uniphase_torch_muon as uniphase_torch_muon,
)
from .together import uniphase_one_by_one as uniphase_one_by_one, uniphase_together as uniphase_together
