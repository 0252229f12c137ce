"""`uniphase export`: from a network's file to something that runs without this package."""

from pathlib import Path

from .options import Bits, Force, NetworkPath, Output

# As `uniphase render` writes them.
_RENDERED = (".png", ".tif", ".tiff", ".mp4", ".gif", ".wav", ".npy", ".npz")


def export(
    file: NetworkPath,
    /,
    *,
    output: Output = None,
    bits: Bits = None,
    original: str | None = None,
    force: Force = False,
) -> None:
    """Write a page that shows the field in any browser, a model for other programs, or a smaller file.

    For example:

        uniphase export photo.uniphase                      # photo.html, to open, zoom into and send
        uniphase export photo.uniphase --original photo.jpg
        uniphase export photo.uniphase -o photo.onnx
        uniphase export photo.uniphase -o photo.py
        uniphase export photo.uniphase --bits 8 -o small.uniphase

    Parameters
    ----------
    output
        Where to write, by the suffix. .html: one page that works offline, with nothing to install. .onnx: positions
        in, channels out. .py: a script that renders the file with NumPy alone. .uniphase: the same network in fewer
        bits. .png, .tif, .mp4, .gif, .wav, .npy, .npz: as `uniphase render`. Default: the name of the file with .html,
        in the current directory.
    original
        The image that was fitted, whose pixels the page shows beside the network on request. Default: the pixels that
        the network gives.
    """
    target = Path(f"{Path(file).stem}.html" if output is None else output)
    if target.suffix.lower() not in _RENDERED:
        print(_export(file, target, bits, original, force))
        return
    for name, value in (("bits", bits), ("original", original)):
        if value is not None:
            raise ValueError(f"{target}: {name} is {value}, but only .html and .uniphase have it; leave --{name} out")
    from .render import render_file

    written = render_file(file, output=str(target), force=force)
    print(f"wrote {written.path} ({written.path.stat().st_size:,} bytes)")


def _export(file: str, target: Path, bits: int | None, original: str | None, force: bool) -> str:
    """Write a target that is not rendered, and say what was written and what was lost."""
    from ..export.targets import TARGETS, export_network, require_target
    from .outputs import require_writable, writing

    if target.suffix.lower() not in TARGETS:
        known = ", ".join((*TARGETS, *_RENDERED[:-1]))
        raise ValueError(f"{target}: the suffix is {target.suffix!r}; use {known} or {_RENDERED[-1]}")
    require_target(target, bits=bits, original=original)
    require_writable([target], file, replace=force)
    with writing(target):
        loss = export_network(file, target, bits=bits, original=original)
    lost = "" if loss is None else f"; hidden weights in {bits} bits: {loss}"
    return f"wrote {target} ({target.stat().st_size:,} bytes){lost}"
