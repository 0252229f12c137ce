"""What `uniphase diagnose` does: the report on a network for a signal."""

import dataclasses
from pathlib import Path

from .. import plots as figures
from ..diagnosis.report import Report
from ..initialization.moments import estimate_moments
from ..jax.diagnostics import diagnose
from ..jax.files import load_network
from .outputs import require_writable, writing
from .subjects import Options, Subject, draw_network, load_signal, require_seed


def examine_signal(
    signal: str,
    options: Options,
    *,
    scheme: str | None = None,
    network: str | None = None,
    seed: int = 0,
    output: str | None = None,
    force: bool = False,
) -> Report:
    """Examine the network that a scheme draws for a signal, or that of a file, and draw the report if asked to.

    **Arguments:**

    - `signal`, `options`: a name or a file, and how to load it; of the rest, only the width and the depth are used.
    - `scheme`, `seed`: what to draw, by default uniform-phase. The seed also chooses the samples that are looked at.
    - `network`: a `.uniphase` file to read, in place of drawing one.
    - `output`: the picture, a PNG.
    - `force`: whether a file that exists may be replaced.

    !!! example
        ```python
        report = examine_signal("camera", Options(size=16, width=16), scheme="sm20")
        ```
    """
    require_seed(seed)
    drawn = {"scheme": scheme, "width": options.width, "depth": options.depth}
    for name, value in drawn.items():
        if network is not None and value is not None:
            raise ValueError(f"{name} is {value!r}, but the network is that of {network}; leave out one of them")
    scheme = "uniform-phase" if scheme is None else scheme
    target = None if output is None else Path(output)
    if target is not None:
        if target.suffix.lower() != ".png":
            raise ValueError(f"{target}: the suffix is {target.suffix!r}; use .png")
        require_writable([target], signal, replace=force)
    saved = None if network is None else load_network(network)
    if saved is not None and options.align is None:
        options = dataclasses.replace(options, align=saved.domain.align)
    field = load_signal(signal, options, options.size)
    moments = estimate_moments(field)
    if saved is None:
        _, model = draw_network(Subject(field, None, moments), scheme, options, seed)
    else:
        model = saved.network
    report = diagnose(model, field, moments, seed=seed)
    if target is not None:
        with writing(target):
            figures.diagnosis(target, report, f"{scheme if network is None else network} for {Path(signal).name}")
    return report
