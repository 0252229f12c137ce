"""The identity of a run in JAX: a hash of all that its result follows from."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..fitting import identity


def identify(*things: Any) -> str:
    """A hash of some objects, which may contain arrays and random keys of JAX; see `uniphase.fitting.identity`.

    !!! example
        ```python
        identify(jnp.arange(3), lambda x: 2 * x) == identify(jnp.arange(3), lambda x: 3 * x)  # False
        ```
    """
    return identity.identify(*things, to_numpy=_to_numpy)


def _to_numpy(thing: Any) -> Any:
    if not isinstance(thing, jax.Array):
        return thing
    is_key = jnp.issubdtype(thing.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(thing) if is_key else thing)
