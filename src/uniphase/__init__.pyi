from .blueprints import Blueprint as Blueprint, LayerPlan as LayerPlan
from .checkpoints import Saved as Saved, load_network as load_network, save_network as save_network
from .datasets import NAMES as NAMES, load as load
from .diagnostics import (
    activations as activations,
    jacobian as jacobian,
    jacobian_spectra as jacobian_spectra,
    network_moments as network_moments,
    phase_statistics as phase_statistics,
)
from .fields import Field as Field, Grid as Grid, Points as Points
from .files import array as array, audio as audio, image as image, volume as volume
from .metrics import Metrics as Metrics, evaluate as evaluate
from .moments import Moments as Moments, estimate_moments as estimate_moments, prescribe_moments as prescribe_moments
from .mup import Rates as Rates, mup_output as mup_output, mup_rates as mup_rates, scale_by_roles as scale_by_roles
from .networks import CoordinateMLP as CoordinateMLP
from .optimizers import default_rate as default_rate, unit_muon as unit_muon
from .protocol import Trace as Trace, fit_together as fit_together
from .render import grid_positions as grid_positions, render as render
from .schemes import (
    SCHEMES as SCHEMES,
    cvp26_0 as cvp26_0,
    cvp26_1 as cvp26_1,
    cvp26_fixed_point as cvp26_fixed_point,
    gelu as gelu,
    get_scheme as get_scheme,
    relu as relu,
    silu as silu,
    sm20 as sm20,
    tanh_pe as tanh_pe,
    uniform_phase as uniform_phase,
)
from .sine import cosine as cosine, sine as sine
from .training import (
    Diverged as Diverged,
    Fit as Fit,
    Progress as Progress,
    Recipe as Recipe,
    default_recipe as default_recipe,
    default_size as default_size,
    fit as fit,
    measure as measure,
    paper_recipe as paper_recipe,
)
