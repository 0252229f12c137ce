"""The command line: a file for each command, with its options, what it does and what it prints."""

import sys
from collections.abc import Sequence

# Packages that an installation without extras lacks, and the extra that brings them.
_EXTRAS = {
    **dict.fromkeys(("cyclopts", "matplotlib", "rich"), "cli"),
    **dict.fromkeys(("equinox", "jax", "jaxlib", "optax"), "jax"),
    **dict.fromkeys(("dask", "distributed"), "distributed"),
    **{"av": "video", "duckdb": "tables", "nibabel": "scans", "onnx": "export", "zarr": "zarr"},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. If a package is missing, say in one line what to install."""
    try:
        from .app import main as run

        run(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        install = f'pip install "uniphase[{_EXTRAS[package]}]"'
        print(f"uniphase: {package} is not installed, which this command needs; run {install}", file=sys.stderr)
        sys.exit(1)
