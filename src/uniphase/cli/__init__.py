"""The command line: a file for each command, with its options, what it does and what it prints."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence

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
        with _interrupts():
            from .app import main as run

            run(arguments)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 wraps what is raised while a class is made, as in an import.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        print("uniphase: interrupted", file=sys.stderr)
        sys.exit(130)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        install = f'pip install "uniphase[{_EXTRAS[package]}]"'
        print(f"uniphase: {package} is not installed, which this command needs; run {install}", file=sys.stderr)
        sys.exit(1)


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """The end of a batch job and a closed terminal interrupt as Ctrl-C does, so that a fit keeps its state.

    A signal that is ignored, as under nohup, stays so.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():  # which alone can take signals
        taken = []
    for number in taken:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
