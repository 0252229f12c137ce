"""`uniphase diagnose`: the report on a network for a signal."""

import dataclasses
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from . import terminal
from .options import (
    Align,
    Array,
    Axes,
    Coordinates,
    Depth,
    Force,
    Json,
    Omega,
    Options,
    Output,
    Signal,
    Size,
    Space,
    Values,
    Width,
)

if TYPE_CHECKING:
    from ..diagnosis.report import Report


def diagnose(
    signal: Signal,
    /,
    *,
    network: Annotated[str | None, Parameter(help="A .uniphase file to examine instead of a new network.")] = None,
    scheme: str | None = None,
    width: Width = None,
    depth: Depth = None,
    omega: Omega = None,
    size: Size = None,
    space: Space = None,
    align: Align = None,
    axes: Axes = None,
    array: Array = None,
    coordinates: Coordinates = None,
    values: Values = None,
    seed: int = 0,
    output: Output = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Examine a network before training: its phases, Jacobians, gradients and moments on a signal, with verdicts.

    For example:

        uniphase diagnose photo.jpg --scheme sm20
        uniphase diagnose photo.jpg --scheme siren --omega 60 -o report.png
        uniphase diagnose photo.jpg --network photo.uniphase

    Parameters
    ----------
    scheme
        Initialization of a new network; `uniphase schemes` lists them. Default: uniform-phase.
    seed
        Seed of the new network, and of the samples that are examined.
    output
        Picture of the report (.png). Default: none.
    """
    if json:
        warnings.simplefilter("ignore", UserWarning)
    options = Options(
        width=width,
        depth=depth,
        omega=omega,
        size=size,
        space=space,
        align=align,
        axes=axes,
        array=array,
        coordinates=coordinates,
        values=values,
    )
    report = examine_signal(signal, options, scheme=scheme, network=network, seed=seed, output=output, force=force)
    if json:
        terminal.print_json(report.to_dict())
        return
    terminal.print_report(report)
    if output is not None:
        print(f"\nwrote {output}")


def examine_signal(
    signal: str,
    options: Options,
    *,
    scheme: str | None = None,
    network: str | None = None,
    seed: int = 0,
    output: str | None = None,
    force: bool = False,
) -> "Report":
    """Examine the network that a scheme draws for a signal, or that of a file, and draw the report if asked to.

    **Arguments:**

    - `signal`, `options`: a name or a file, and how to load it; of the rest, only the network's options are used.
    - `scheme`, `seed`: what to draw, by default uniform-phase. The seed also chooses the samples that are examined.
    - `network`: a `.uniphase` file to read instead of drawing a network.
    - `output`: the picture, a PNG.
    - `force`: whether an existing file may be replaced.

    !!! example
        ```python
        report = examine_signal("camera", Options(size=16, width=16), scheme="sm20")
        ```
    """
    from ..initialization.schemes import require_omega
    from ..jax.diagnostics import diagnose
    from ..jax.files import load_network
    from ..plots.diagnosis import write_diagnosis
    from ..recipe import as_seed
    from ..signals.fields import Grid
    from .outputs import require_writable, writing
    from .subjects import Subject, draw_network, load_signal, make_blueprint, moments_of

    as_seed(seed)
    drawn = {"scheme": scheme, "width": options.width, "depth": options.depth, "omega": options.omega}
    for name, value in drawn.items():
        if network is not None and value is not None:
            raise ValueError(f"{name} is {value!r}, but the network is that of {network}; leave out one of them")
    scheme = "uniform-phase" if scheme is None else scheme
    require_omega(options.omega, [scheme])
    target = None if output is None else Path(output)
    if target is not None:
        if target.suffix.lower() != ".png":
            raise ValueError(f"{target}: the suffix is {target.suffix!r}; use .png")
        require_writable([target], signal, replace=force)
    content = None if network is None else load_network(network)
    if content is not None and content.domain.shape is not None and options.align is None:
        options = dataclasses.replace(options, align=content.domain.align)
    field = load_signal(signal, options, options.size)
    shape = None if content is None else content.domain.shape
    if content is not None and shape is not None and isinstance(field, Grid) and len(shape) == field.in_size:
        field = dataclasses.replace(field, extents=content.domain.extents)
    moments = moments_of(field, options)
    if content is None:
        model = draw_network(make_blueprint(Subject(field, None, moments), scheme, options), seed)
    else:
        model = content.network
    report = diagnose(model, field, moments, seed=seed)
    if target is not None:
        with writing(target):
            write_diagnosis(target, report, f"{scheme if network is None else network} for {Path(signal).name}")
    return report
