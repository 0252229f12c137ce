"""Neural fields without tuning. The public names are listed, with their types, in `__init__.pyi`.

They are loaded when first used, so that importing the package is cheap and the parts that need no JAX never load it.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str):
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("equinox", "jax", "jaxlib", "optax"):
            raise ImportError(f'uniphase.{name} needs JAX; pip install "uniphase[jax]"') from error
        raise
