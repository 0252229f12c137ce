"""For PyTorch: the same blueprints, moments and files, for modules and training loops of PyTorch. It never loads JAX.

Signals, moments and schemes are those of `uniphase` itself; see `uniphase.load`, `uniphase.estimate_moments` and
`uniphase.SCHEMES`.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('uniphase.torch needs PyTorch; pip install "uniphase[torch]"') from error

from . import init as init
from .batches import draw_batch as draw_batch
from .derivatives import gradient as gradient, laplacian as laplacian
from .diagnostics import diagnose as diagnose
from .files import load_network as load_network, save_network as save_network
from .fit import fit as fit
from .initialization import (
    cvp26_0_ as cvp26_0_,
    cvp26_1_ as cvp26_1_,
    gelu_ as gelu_,
    initialize_ as initialize_,
    relu_ as relu_,
    silu_ as silu_,
    siren_ as siren_,
    sm20_ as sm20_,
    tanh_pe_ as tanh_pe_,
    uniform_phase_ as uniform_phase_,
)
from .mup import param_groups as param_groups
from .network import CoordinateMLP as CoordinateMLP
from .optimizers import UnitMuon as UnitMuon
from .reading import (
    Chain as Chain,
    ReadLayer as ReadLayer,
    StatedLayers as StatedLayers,
    read_layers as read_layers,
)
from .render import evaluate_network as evaluate_network, render as render
from .result import Fit as Fit

__all__ = [
    "Chain",
    "CoordinateMLP",
    "Fit",
    "ReadLayer",
    "StatedLayers",
    "UnitMuon",
    "cvp26_0_",
    "cvp26_1_",
    "diagnose",
    "draw_batch",
    "evaluate_network",
    "fit",
    "gelu_",
    "gradient",
    "init",
    "initialize_",
    "laplacian",
    "load_network",
    "param_groups",
    "read_layers",
    "relu_",
    "render",
    "save_network",
    "silu_",
    "siren_",
    "sm20_",
    "tanh_pe_",
    "uniform_phase_",
]
