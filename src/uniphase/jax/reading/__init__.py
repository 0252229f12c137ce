"""Reading: a model of any JAX library as the layers that it computes."""

from .chain import AffineMap as AffineMap, Chain as Chain, ReadLayer as ReadLayer
from .models import (
    AnyModel as AnyModel,
    Parameters as Parameters,
    arrays_of as arrays_of,
    as_function as as_function,
    read_layers as read_layers,
    replace_arrays as replace_arrays,
)
from .values import Stored as Stored
