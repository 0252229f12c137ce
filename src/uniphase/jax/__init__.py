"""Networks in JAX and Equinox: the module itself, its derivatives, its values on a grid, its files."""

from . import initializers as initializers
