import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.small import save_drawn, write_sound
from uniphase.export.targets import export_network
from uniphase.initialization.schemes import SCHEMES
from uniphase.jax.files import load_network
from uniphase.jax.render import render
from uniphase.signals.datasets import load
from uniphase.signals.fields import Grid, Points

# Packages that the script must not need, although they are installed.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(['uniphase', 'safetensors', 'jax', 'scipy'])); "


def rendered(script: Path) -> np.ndarray:
    """What a script writes, in a Python that has NumPy alone."""
    run = f"{WITHOUT}import runpy; runpy.run_path({str(script)!r})"
    done = subprocess.run([sys.executable, "-W", "error", "-c", run], capture_output=True, text=True, cwd="/")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    return np.load(script.with_suffix(".npy"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_script_gives_what_render_gives(scheme, here):
    field = load("coffee", size=16)
    network = save_drawn("a.uniphase", field, scheme=scheme)
    export_network("a.uniphase", "a.py")
    exact = render(network, field.shape, extents=field.extents)
    np.testing.assert_allclose(rendered(here / "a.py"), exact, atol=3e-5)  # large phases in float32


def test_the_script_reads_fewer_bits_from_another_directory(here):
    (here / "deep").mkdir()
    save_drawn("a.uniphase", load("coffee", size=16))
    for bits in (8, 16):
        export_network("a.uniphase", "b.uniphase", bits=bits)
        export_network("b.uniphase", Path("deep", "b.py"))
        file = load_network("b.uniphase")
        exact = render(file.network, file.domain.shape, extents=file.domain.extents)
        np.testing.assert_allclose(rendered(here / "deep" / "b.py"), exact, atol=1e-5)


def test_other_kinds_of_fields(here):
    rng = np.random.default_rng(0)
    write_sound(here / "a.wav", 5000)  # which is more than one part
    fields = {
        "sound": (load("a.wav"), (5000, 2)),
        "corners": (Grid(rng.normal(size=(4, 5, 6, 1)), align="corners"), (4, 5, 6, 1)),
        "points": (Points(rng.uniform((0, 0), (1, 2), (50, 2)), rng.normal(size=50)), (None, 256, 1)),
    }
    for name, (field, shape) in fields.items():
        network = save_drawn(f"{name}.uniphase", field)
        export_network(f"{name}.uniphase", f"{name}.py")
        found = rendered(here / f"{name}.py")
        assert found.shape[1:] == shape[1:]
        file = load_network(f"{name}.uniphase")
        exact = render(network, found.shape[:-1], extents=file.domain.extents, align=file.domain.align)
        np.testing.assert_allclose(found, exact, atol=1e-4)


def test_the_script_has_ten_lines():
    save_drawn("a.uniphase", load("coffee", size=16))
    export_network("a.uniphase", "a.py")
    tree = ast.parse(Path("a.py").read_text())
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert len(lines - {1}) == 10  # without the docstring
    assert os.path.getsize("a.py") < 2000


def test_the_name_of_a_file_is_no_code(here):
    name = '""";print("code");"""\\.uniphase'
    save_drawn(name, load("camera", size=8))
    export_network(name, "a.py")
    rendered(here / "a.py")  # prints nothing
    assert name in ast.get_docstring(ast.parse((here / "a.py").read_text()))
