"""`uniphase moments`: the statistics of a signal that its initialization follows from."""

from typing import Literal

from . import terminal
from .options import Align, Axes, Json, Options, Signal, Size, Space


def moments(
    signal: Signal,
    /,
    *,
    recipe: Literal["default", "paper"] = "default",
    size: Size = None,
    space: Space = None,
    align: Align = None,
    axes: Axes = None,
    json: Json = False,
) -> None:
    """Print the mean, covariance and structure tensor of a signal.

    For example:

        uniphase moments photo.jpg
        uniphase moments camera --size 128 --recipe paper --json

    Parameters
    ----------
    recipe
        "paper": as in the paper, with samples at the corners, every axis of an image from -1 to 1, and ε = 1e-6.
    """
    from .subjects import load_signal, moments_of

    options = Options(recipe=recipe, space=space, align=align, axes=axes)
    field = load_signal(signal, options, size)
    estimate = moments_of(field, options)
    if json:
        names = ("mean", "covariance", "structure_tensor")
        terminal.print_json({name: getattr(estimate, name).tolist() for name in names})
        return
    domain = f"{terminal.times(field.shape)} samples of {field.out_size} channel(s) on {terminal.ranges(field.extents)}"
    print(f"{signal}: {domain}, {field.align}\n{estimate}")
