"""Reading: a user's model as the layers that it computes."""

from .chain import AffineMap as AffineMap, Chain as Chain, ReadLayer as ReadLayer
from .layers import Model as Model, read_layers as read_layers
from .stating import StatedLayers as StatedLayers
from .stored import Stored as Stored
