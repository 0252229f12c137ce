"""`uniphase schemes`: the list of initializations."""

from . import terminal


def schemes(name: str | None = None, /) -> None:
    """List the initializations, or show one in full.

    For example:

        uniphase schemes
        uniphase schemes cvp26-1

    Parameters
    ----------
    name
        One of the list.
    """
    from ..initialization.schemes import SCHEMES, get_scheme

    if name is None:
        rows = [(scheme.name, scheme.paper, scheme.biases) for scheme in SCHEMES.values()]
        terminal.print_table(("scheme", "paper", "biases"), rows)
        return
    scheme = get_scheme(name)
    print(f"{scheme.summary}\n\nReference: {scheme.reference}\n\nFor a gray image:\n\n{scheme.example}")
