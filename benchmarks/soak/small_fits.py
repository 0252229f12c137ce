"""Fits of a second, of four kinds of signal, by the command line: what they leave, and whether it is right."""

import contextlib
import functools
import importlib
import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from PIL import Image
from safetensors.numpy import load_file

from uniphase.cli import main

from .children import Ended, in_child, scratch, start_child

SIGNALS = {"image": "photo.png", "sound": "sound.wav", "volume": "volume.npy", "points": "points.csv"}
_OPTIONS = ["--width", "16", "--depth", "1", "--steps", "600"]
_EXTRA = {"points": ["--coordinates", "x,y", "--values", "z"]}
_IMPORTED = (
    "uniphase.cli.app",
    "uniphase.cli.running",
    "uniphase.training.fit",
    "uniphase.plots.preview",
    "matplotlib.backends.backend_agg",
)
# Waiting for a fit that takes a second on an idle machine.
PATIENCE = 300.0


def make_signal(kind: str, directory: Path) -> None:
    """Write the file that is fitted."""
    rng, path = np.random.default_rng(0), directory / SIGNALS[kind]
    if kind == "image":
        Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(path)
    elif kind == "sound":
        soundfile.write(path, np.sin(np.arange(900) / 5), 8000)
    elif kind == "volume":
        np.save(path, rng.normal(size=(8, 9, 10)).astype(np.float32))
    else:
        rows = [",".join(map(repr, row)) for row in rng.random((200, 3)).tolist()]
        path.write_text("\n".join(["x,y,z", *rows]))


def results(kind: str) -> set[str]:
    """The files that a fit leaves."""
    stem = Path(SIGNALS[kind]).stem
    return {f"{stem}.uniphase", f"{stem}.fit.png"} | ({f"{stem}.fit.wav"} if kind == "sound" else set())


def state(kind: str) -> str:
    """The file of a fit that was interrupted."""
    return f"{Path(SIGNALS[kind]).stem}.uniphase.part"


def arguments(kind: str, *more: str) -> list[str]:
    """The command without `uniphase`."""
    return ["fit", SIGNALS[kind], *_OPTIONS, *_EXTRA.get(kind, []), *more]


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def is_finished(kind: str, directory: Path) -> bool:
    """Whether a fit left all of its results, and nothing else."""
    return names(directory) == {SIGNALS[kind]} | results(kind)


class Fits:
    """Fits in forked children, which share compiled programs, and the results of fits that nothing disturbed."""

    def __init__(self, base: Path):
        self.cache, self.logs, self.base = base / "cache", base / "logs", base
        self.logs.mkdir()

    def fresh(self, kind: str, name: str = "work") -> Path:
        """An empty directory with the signal alone."""
        directory = self.base / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        make_signal(kind, directory)
        return directory

    def work(self, kind: str, *more: str, before: Callable[[], object] = lambda: None) -> Callable[[], None]:
        """What a child does: a fit that writes its state after every ten steps."""

        def fit() -> None:
            import jax

            for name, value in (("dir", str(self.cache)), ("max_size", -1)):
                jax.config.update(f"jax_compilation_cache_{name}", value)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            importlib.import_module("uniphase.cli.running").run.__kwdefaults__["checkpoint_seconds"] = 0.0
            before()
            main(arguments(kind, *more))

        return fit

    def run(self, kind: str, directory: Path, *more: str, before: Callable[[], object] = lambda: None) -> Ended:
        return in_child(self.work(kind, *more, before=before), directory, self.logs, PATIENCE)

    def start(
        self, kind: str, directory: Path, *more: str, before: Callable[[], object] = lambda: None, log: str = ""
    ) -> tuple[int, Callable[[float], Ended]]:
        logs = self.logs / log
        logs.mkdir(exist_ok=True)
        return start_child(self.work(kind, *more, before=before), directory, logs)

    @functools.cache  # noqa: B019
    def reference(self, kind: str) -> dict[str, Any]:
        """What a fit gives that nothing disturbed."""
        directory = self.fresh(kind, f"reference-{kind}")
        ended = self.run(kind, directory)
        if ended.code != 0:
            raise RuntimeError(f"the {kind} is not fitted: {ended.err}")
        return content(kind, directory)

    @functools.cache  # noqa: B019
    def seconds(self, kind: str) -> float:
        """How long a fit takes once its programs are compiled."""
        import time

        self.reference(kind)
        begun = time.monotonic()
        self.run(kind, self.fresh(kind, f"timed-{kind}"))
        return time.monotonic() - begun

    def resumed(self, kind: str, directory: Path) -> str | None:
        """Go on to the end, and say what differs from a fit that nothing disturbed."""
        ended = self.run(kind, directory, "--resume")
        if ended.code != 0:
            return f"does not go on: {ended.err.strip().splitlines()[-1:]}"
        return self.difference(kind, directory)

    def difference(self, kind: str, directory: Path, allowed: set[str] = frozenset()) -> str | None:  # pyright: ignore[reportArgumentType]
        """What a finished fit left that it should not, or lacks, or has in other bits."""
        if odd := names(directory) ^ ({SIGNALS[kind]} | results(kind) | allowed):
            return f"strays or missing files: {', '.join(sorted(odd))}"
        found, expected = content(kind, directory), self.reference(kind)
        differs = [name for name in expected if found[name] != expected[name]]
        return f"other bits in {', '.join(differs)}" if differs else None


def content(kind: str, directory: Path) -> dict[str, Any]:
    """Everything in the files of a fit but the seconds that it took."""
    found: dict[str, Any] = {name: (directory / name).read_bytes() for name in results(kind)}
    network = f"{Path(SIGNALS[kind]).stem}.uniphase"
    raw = found.pop(network)
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["uniphase"])
    del header["training"]["seconds"]
    tensors = {name: tensor.tobytes() for name, tensor in load_file(directory / network).items()}
    return found | {"header": header, "tensors": tensors}


@contextlib.contextmanager
def fits() -> Iterator[Fits]:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for module in _IMPORTED:  # here, and not in every child
        importlib.import_module(module)
    with scratch() as base:
        yield Fits(base)
