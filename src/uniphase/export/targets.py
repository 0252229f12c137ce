"""Targets: what a network's file can be exported to, by the suffix of the path."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from ..signals.paths import FilePath, atomic_path
from ..storage.network_file import NetworkFile, network_bytes
from ..storage.quantization import require_bits
from .html import make_page, original_png, require_page
from .networks import Loss, Tensors, quantization_loss, read_tensors, with_bits
from .onnx import make_model
from .script import make_script

# Those that carry the network's file, in as many bits as are asked for, and those that are made from it.
CARRIERS = (".html", ".uniphase")
TARGETS = (*CARRIERS, ".onnx", ".py")


def export_network(
    path: FilePath, target: FilePath, *, bits: int | None = None, original: FilePath | None = None
) -> Loss | None:
    """Write a network's file as something that runs without this package, whole or not at all.

    **Arguments:**

    - `path`: the `.uniphase` file.
    - `target`: where to, by the suffix: `.html` for a page that shows the field in any browser, offline; `.onnx` for a
        model of positions to channels in float32, with a free batch axis; `.py` for a script that renders the file with
        NumPy alone; `.uniphase` for the same network in fewer bits.
    - `bits`: 8 or 16 for hidden matrices as integers with one scale for each row, in a page or a `.uniphase` file.
        Default: as they are.
    - `original`: the image that was fitted, whose pixels the page shows beside the network. Default: those that the
        network gives.

    **Returns:**

    What is lost by `bits`, as a `Loss`; otherwise `None`.

    !!! example
        ```python
        save_network("camera.uniphase", NetworkFile.of(network, field))
        export_network("camera.uniphase", "camera.html")
        print(export_network("camera.uniphase", "small.uniphase", bits=8))
        ```
    """
    target = Path(target)
    require_target(target, bits=bits, original=original)
    file = read_tensors(path)
    written, loss = file, None
    if bits is not None:
        written = with_bits(file, bits)
        loss = quantization_loss(file, written)
        # The metrics stay those that were measured, before.
        notes = {} if loss.psnr_db is None else {"quantized_psnr_db": loss.quantized_psnr_db}
        written = dataclasses.replace(written, training={**file.training, **notes})
    content = _MAKERS[target.suffix.lower()](str(path), target, written, None if original is None else str(original))
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    return loss


def require_target(target: Path, *, bits: int | None = None, original: FilePath | None = None) -> None:
    """Raise an error for a suffix that nothing is written as, or for an option that it does not have."""
    suffix = target.suffix.lower()
    if suffix not in TARGETS:
        raise ValueError(f"{target}: the suffix is {target.suffix!r}; use {', '.join(TARGETS[:-1])} or {TARGETS[-1]}")
    require_bits(bits)
    if bits is not None and suffix not in CARRIERS:
        raise ValueError(f"{target}: bits is {bits}, but only {' and '.join(CARRIERS)} have a choice; leave bits out")
    if original is not None and suffix != ".html":
        raise ValueError(f"{target}: original is {original}, but only a page (.html) shows it; leave original out")


def _page(path: str, target: Path, file: NetworkFile[Tensors], original: str | None) -> bytes:
    require_page(target, file)
    pixels = None if original is None else original_png(original, file)
    network = network_bytes(target, file, file.network, "numpy")
    return make_page(Path(path).stem, file, network, pixels).encode()


def _network(path: str, target: Path, file: NetworkFile[Tensors], original: str | None) -> bytes:
    return network_bytes(target, file, file.network, "numpy")


def _model(path: str, target: Path, file: NetworkFile[Tensors], original: str | None) -> bytes:
    return make_model(str(target), Path(path).stem, file)


def _script(path: str, target: Path, file: NetworkFile[Tensors], original: str | None) -> bytes:
    return make_script(path, target, file).encode()


_MAKERS: dict[str, Callable[[str, Path, NetworkFile[Tensors], str | None], bytes]] = {
    ".html": _page,
    ".uniphase": _network,
    ".onnx": _model,
    ".py": _script,
}
