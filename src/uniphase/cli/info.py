"""`uniphase info`: what a network's file says, read without JAX."""

import os

from . import terminal
from .failures import printable
from .options import Json, NetworkPath


def info(file: NetworkPath, /, *, json: Json = False) -> None:
    """Show the layers of a network, the signal it was fitted to, and how well.

    For example:

        uniphase info photo.uniphase
        uniphase info photo.uniphase --json
    """
    from ..storage.network_file import read_header, read_network

    content = read_network(file, lambda blueprint, tensors: None)
    count = os.path.getsize(file)
    if json:
        terminal.print_json({"bytes": count, "parameters": content.blueprint.parameters, **read_header(file)})
        return
    domain, training = content.domain, dict(content.training)
    metrics = {"train": content.metrics, "test": training.pop("test_metrics", None)}
    size = None if domain.shape is None else terminal.sized(domain.shape, content.medium, content.rate)
    picture = size is not None and "pixels" in size
    shape = "scattered points" if size is None else size
    order = (" (time, down, right)" if len(domain.extents) == 3 else " (down, right)") if picture else ""
    medium = "" if content.medium is None else f", {content.medium}"
    stored = "" if content.stored is None else f", stored as {content.stored}"
    bits = "" if content.bits is None else f", hidden weights in {content.bits} bits"
    print(f"{file}: {count:,} bytes{bits}\n")
    print(printable(f"{content.blueprint}\n", keep="\n"))
    where = f"{shape} on {terminal.ranges(domain.extents)}{order}, {domain.align}, {domain.sampling}{medium}{stored}"
    print(printable(f"domain: {where}"))
    if content.moments is not None:
        print(content.moments)
    print()
    terminal.print_metrics(metrics)
    print()
    for name, value in {**training, "versions": content.versions}.items():
        print(printable(f"{name}: {terminal.words(value)}"))
