"""The command line: parsing and printing only. Everything else is imported when a command needs it."""

import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Literal

from cyclopts import App, Parameter

app = App(
    name="uniphase",
    help=(
        "Neural fields without tuning: sine networks whose initialization follows from the signal.\n\n"
        "Examples: uniphase moments camera --size 128  |  uniphase schemes uniform-phase"
    ),
    version=lambda: version("uniphase"),
)

Json = Annotated[bool, Parameter(negative="", help="Print one JSON object.")]


@app.command
def moments(
    signal: str,
    /,
    *,
    size: int | None = None,
    space: Literal["gray", "rgb", "lab"] | None = None,
    align: Literal["centers", "corners"] = "centers",
    axes: int | None = None,
    json: Json = False,
):
    """Print the mean, covariance and structure tensor of a signal.

    Examples: uniphase moments photo.jpg  |  uniphase moments camera --size 128 --align corners --json

    Parameters
    ----------
    signal
        A file (image, sound or NPY array), or a name: camera, brick, gravel, clock, hubble, skin, astronaut, coffee,
        bach.
    size
        Resize first, so that the longest axis has this many samples.
    space
        Colour space of an image. Default: gray or rgb, as stored.
    align
        Whether samples lie at the centers of their cells or include the corners of the domain, as in the paper.
    axes
        Number of coordinate axes of an array. Default: all, but for a last one of at most 4 entries (the channels).
    """
    from .datasets import load
    from .moments import estimate_moments

    field = load(signal, size=size, space=space, align=align, axes=axes)
    estimate = estimate_moments(field)
    if json:
        _print_json({key: getattr(estimate, key).tolist() for key in ("mean", "covariance", "structure_tensor")})
        return
    shape = " × ".join(map(str, field.shape))
    domain = " × ".join(f"[{low:g}, {high:g}]" for low, high in field.extents)
    print(f"{signal}: {shape} samples of {field.out_size} channel(s) on {domain}, {field.align}\n{estimate}")


@app.command
def schemes(name: str | None = None, /):
    """List the initializations, or show one in full.

    Examples: uniphase schemes  |  uniphase schemes cvp26-1

    Parameters
    ----------
    name
        One of the list.
    """
    from .schemes import SCHEMES, get_scheme

    if name is None:
        rows = [(scheme.name, scheme.paper, scheme.biases) for scheme in SCHEMES.values()]
        _print_table(("scheme", "paper", "biases"), rows)
        return
    scheme = get_scheme(name)
    print(f"{scheme.summary}\n\nReference: {scheme.reference}\n\nFor a gray image:\n\n{scheme.example}")


def _print_json(content: dict) -> None:
    import json

    print(json.dumps(content))


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. What a user can mend is said in one line, without a traceback."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: print(f"uniphase: note: {message}", file=sys.stderr)
        try:
            app(sys.argv[1:] if arguments is None else arguments)
        except (ValueError, OSError) as error:
            print(f"uniphase: {error}", file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    main()
