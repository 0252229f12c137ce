"""Signals and networks that take no time, and what a command leaves in a directory."""

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile

TINY = {"size": 16, "width": 16, "depth": 1, "steps": 20}
# The same as arguments of a command, without the size.
TINY_ARGUMENTS = ["--width", "16", "--depth", "1", "--steps", "20"]
# For sounds. Adam is compiled in half the time.
TINY_SOUND = TINY | {"size": None, "optimizer": "adam"}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def write_sound(path: Path, samples: int = 300) -> None:
    """Write a stereo sound of 8,000 samples per second."""
    phases = np.arange(samples) / 5
    soundfile.write(path, np.stack([np.sin(phases), np.cos(phases) / 2], axis=1), 8000)


def save_drawn(path: str, field, *, scheme: str = "uniform-phase", width: int = 8):
    """Save a small network for a field as it is drawn: as good as a fitted one where the fit does not matter."""
    import jax

    from uniphase.initialization.moments import estimate_moments
    from uniphase.initialization.schemes import get_scheme
    from uniphase.jax.files import save_network
    from uniphase.jax.network import CoordinateMLP
    from uniphase.storage.network_file import NetworkFile

    moments = estimate_moments(field)
    blueprint = get_scheme(scheme).blueprint(moments, width=width, depth=1)
    network = CoordinateMLP(blueprint, key=jax.random.key(0))
    save_network(path, NetworkFile.of(network, field, blueprint=blueprint, moments=moments))
    return network


class Ran(NamedTuple):
    """A command that was run once for many tests, and the directory with its files."""

    code: int
    out: str
    err: str
    directory: Path


def run_in(directory: Path, *arguments: str) -> Ran:
    """Run a command in a directory, outside of a test."""
    import jax

    from uniphase.cli import main

    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(directory),
        jax.numpy_dtype_promotion("strict"),  # as in the tests, so that what is compiled here serves them too
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main(arguments)
    return Ran(stop.value.code or 0, out.getvalue(), err.getvalue(), directory)
