"""Networks in JAX and Equinox: the module itself, its derivatives, its values on a grid, its files."""
