"""`uniphase moments`: the statistics of a signal that its initialization follows from."""

from typing import Literal

from . import terminal
from .options import Align, Array, Axes, Coordinates, Json, Options, Signal, Size, Space, Values


def moments(
    signal: Signal,
    /,
    *,
    recipe: Literal["default", "paper"] = "default",
    size: Size = None,
    space: Space = None,
    align: Align = None,
    axes: Axes = None,
    array: Array = None,
    coordinates: Coordinates = None,
    values: Values = None,
    json: Json = False,
) -> None:
    """Print the mean, covariance and structure tensor of a signal.

    For example:

        uniphase moments photo.jpg
        uniphase moments camera --size 128 --recipe paper --json
        uniphase moments stations.csv --coordinates lon,lat --values temperature

    Parameters
    ----------
    recipe
        "paper": as in the paper, with samples at the corners, every axis of an image from -1 to 1, and ε = 1e-6.
    """
    from ..storage.network_file import Domain
    from .subjects import load_signal, moments_of

    options = Options(
        recipe=recipe, space=space, align=align, axes=axes, array=array, coordinates=coordinates, values=values
    )
    field = load_signal(signal, options, size)
    estimate = moments_of(field, options)
    if json:
        names = ("mean", "covariance", "structure_tensor")
        terminal.print_json({name: getattr(estimate, name).tolist() for name in names})
        return
    domain = Domain.of(field)
    where = f"{terminal.described(field)}, on {terminal.ranges(domain.extents)}"
    print(f"{signal}: {where}{'' if domain.shape is None else f', {domain.align}'}\n{estimate}")
