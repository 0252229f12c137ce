from .diagnosis.report import Report as Report
from .export.targets import export_network as export_network
from .fitting.plan import Diverged as Diverged, Progress as Progress
from .initialization.blueprint import Blueprint as Blueprint, LayerPlan as LayerPlan
from .initialization.moments import (
    Moments as Moments,
    estimate_moments as estimate_moments,
    prescribe_moments as prescribe_moments,
)
from .initialization.noise import estimate_noise as estimate_noise
from .initialization.schemes import (
    SCHEMES as SCHEMES,
    cvp26_0 as cvp26_0,
    cvp26_1 as cvp26_1,
    cvp26_fixed_point as cvp26_fixed_point,
    gelu as gelu,
    get_scheme as get_scheme,
    relu as relu,
    silu as silu,
    siren as siren,
    sm20 as sm20,
    tanh_pe as tanh_pe,
    uniform_phase as uniform_phase,
)
from .jax import initializers as initializers
from .jax.derivatives import gradient as gradient, laplacian as laplacian
from .jax.diagnostics import (
    diagnose as diagnose,
    jacobian as jacobian,
    jacobian_spectra as jacobian_spectra,
    layer_outputs as layer_outputs,
    network_moments as network_moments,
    phase_statistics as phase_statistics,
)
from .jax.files import load_network as load_network, save_network as save_network
from .jax.initialization import initialize as initialize
from .jax.network import CoordinateMLP as CoordinateMLP
from .jax.render import (
    evaluate_network as evaluate_network,
    grid_positions as grid_positions,
    render as render,
)
from .jax.sine import cosine as cosine, sine as sine
from .recipe import (
    Recipe as Recipe,
    default_rate as default_rate,
    default_recipe as default_recipe,
    default_sampling as default_sampling,
    default_size as default_size,
    paper_recipe as paper_recipe,
)
from .signals.arrays import array as array, volume as volume
from .signals.datasets import SIGNAL_NAMES as SIGNAL_NAMES, load as load
from .signals.fields import Field as Field, Grid as Grid, Points as Points
from .signals.images import image as image
from .signals.metrics import Metrics as Metrics, evaluate as evaluate
from .signals.scans import scan as scan
from .signals.sounds import audio as audio
from .signals.tables import table as table
from .signals.videos import video as video
from .storage.network_file import NetworkFile as NetworkFile
from .training.averages import Averages as Averages
from .training.fit import fit as fit
from .training.mup import (
    Rates as Rates,
    mup_output as mup_output,
    mup_rates as mup_rates,
    scale_by_roles as scale_by_roles,
)
from .training.optimizers import unit_muon as unit_muon
from .training.protocol import ProtocolFit as ProtocolFit, fit_together as fit_together
from .training.regions import (
    Boxes as Boxes,
    Cells as Cells,
    Gaussians as Gaussians,
    Rays as Rays,
    Regions as Regions,
)
from .training.result import Fit as Fit
from .training.terms import Term as Term, Values as Values
