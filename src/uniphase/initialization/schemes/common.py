"""What all families share: what a network is for, and its sizes."""

from ..moments import Moments

# The moments of a signal, or (in_size, out_size) for a scheme that looks at no data.
Target = Moments | tuple[int, int]


def sizes_of(target: Target, width: int, depth: int) -> tuple[int, int]:
    """The number of coordinates and of channels, after a check of all sizes."""
    if width < 1:
        raise ValueError(f"width is {width}; a layer needs at least 1 neuron")
    if depth < 0:
        raise ValueError(f"depth is {depth}; pass the number of hidden layers, 0 or more")
    sizes = (target.in_size, target.out_size) if isinstance(target, Moments) else target
    if min(sizes) < 1:
        raise ValueError(f"target is {target!r}; pass Moments, or (in_size, out_size) of at least 1 each")
    return sizes
