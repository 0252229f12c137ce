"""Neural fields without tuning. The public names are listed, with their types, in `__init__.pyi`.

They are loaded when first used, so that importing the package is cheap and the parts that need no JAX never load it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
