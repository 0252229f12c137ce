"""Write docs/schemes.md from the list of schemes: `make docs`."""

from pathlib import Path

from uniphase import SCHEMES


def page() -> str:
    """The page as it should be."""
    lines = [
        "# Initializations",
        "",
        "<!-- Written by docs/make_schemes.py from uniphase.SCHEMES; change it there and run `make docs`. -->",
        "",
        "Every scheme is a function `scheme(target, width=N, depth=L)` of `uniphase` that returns a `Blueprint`. The",
        "tables below are what printing that blueprint gives for a gray image with a length scale of 0.1, at width 256",
        "and depth 4. From the command line: `uniphase schemes NAME`.",
        "",
        "The depth L is the number of N×N matrices between the input and the output layer. `eqx.nn.MLP` counts one",
        "more: its `depth=4` is `depth=3` here. SIREN's own code counts as this package does (`hidden_layers=3`).",
        "",
        "| name | function | paper | biases |",
        "|---|---|---|---|",
    ]
    for scheme in SCHEMES.values():
        lines.append(f"| `{scheme.name}` | `{scheme.blueprint.__name__}` | {scheme.paper} | {scheme.biases} |")
    for scheme in SCHEMES.values():
        lines += ["", f"## `{scheme.name}`", "", scheme.summary, "", f"Reference: {scheme.reference}", ""]
        lines += ["```", str(scheme.example), "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("schemes.md").write_text(page(), encoding="utf-8")
