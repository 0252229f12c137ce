"""Run examples and keep their pictures for the gallery: python docs/make_gallery.py [NAME ...] [--force]

The `main` of examples/NAME.py writes files that begin with its name: a picture, NAME.png or NAME.webp, and where it has
more to show NAME.wav, and NAME.html, a page exported from NAME.uniphase. Picture and sound go to docs/gallery, and so
do what it printed, as NAME.txt, and the network of an exported page; docs/make_site.py makes a page of each example,
and exports the network again. An example whose files are there is skipped, unless `--force` is given.
"""

import argparse
import contextlib
import importlib
import io
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image

import uniphase as up
from uniphase.signals.paths import atomic_path

DOCS = Path(__file__).parent
EXAMPLES, GALLERY = DOCS.parent / "examples", DOCS / "gallery"

# In place of an example's own sizes, where these take minutes.
SMALLER = {
    "denoise": {"size": 96, "rounds": 10},
    "fit_image_torch": {"size": 64, "steps": 300},
    "improve_siren_pytorch": {"size": 64, "width": 64},
    "inpaint": {"size": 96, "steps": 300},
    "tomography": {"size": 32, "steps": 300},
    "train_in_jax_serve_in_torch": {"size": 64, "steps": 200},
}
# Pictures stand on a light and on a dark page.
_INK = "#7a828c"
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    "axes.facecolor": "none",
    "legend.frameon": False,
    "savefig.transparent": True,
}


def run(name: str) -> None:
    """Run an example in a directory of its own, and keep what it leaves."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), plt.rc_context(STYLE):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            importlib.import_module(name).main(**SMALLER.get(name, {}))
        plt.close("all")
        for suffix in (".webp", ".wav"):
            if Path(name + suffix).exists():
                with atomic_path(GALLERY / (name + suffix)) as whole:
                    shutil.copyfile(name + suffix, whole)
        if Path(name + ".html").exists():
            up.export_network(name + ".uniphase", GALLERY / (name + ".uniphase"), bits=8)
        if Path(name + ".png").exists():
            with atomic_path(GALLERY / (name + ".webp")) as whole:
                Image.open(name + ".png").save(whole, "WEBP", quality=85, method=6)
    GALLERY.joinpath(name + ".txt").write_text(printed.getvalue(), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples without their suffix; default: all")
    parser.add_argument("--force", action="store_true", help="run those whose files are there as well")
    options = parser.parse_args()
    known = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    if unknown := set(options.names) - set(known):
        parser.error(f"no example is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    sys.path.insert(0, str(EXAMPLES))
    GALLERY.mkdir(exist_ok=True)
    for name in options.names or known:
        if options.force or not GALLERY.joinpath(name + ".txt").exists():
            started, used = time.perf_counter(), time.process_time()
            run(name)
            print(f"{name}: {time.perf_counter() - started:.0f} s, {time.process_time() - used:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
