"""What the documentation says is there, is there; what it shows, runs."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import nibabel
import numpy as np
import optax
import pytest
import soundfile
from PIL import Image

import uniphase
from helpers.videos import write_clip

ROOT = Path(__file__).parents[1]
PAPER = (ROOT / "docs" / "paper.md").read_text()
PAGES = [
    "README.md",
    "docs/index.md",
    "docs/signals.md",
    "docs/initialization.md",
    "docs/derivatives.md",
    "docs/fitting.md",
    "docs/samples.md",
    "docs/doctor.md",
    "docs/torch.md",
    "docs/exports.md",
]
WITHOUT_TORCH = importlib.util.find_spec("torch") is None


def code_blocks(text: str) -> list[str]:
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in blocks]


@pytest.mark.parametrize("symbol", sorted(set(re.findall(r"`(uniphase\.[\w.]+)`", PAPER))))
def test_symbols_of_the_paper_map_exist(symbol):
    module, name = symbol.rsplit(".", 1)
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("test", sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAPER))))
def test_tests_of_the_paper_map_exist(test):
    path, name = test.split("::")
    functions = {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name in functions


def test_every_row_of_the_paper_map_names_code_and_tests():
    rows = [
        line for line in PAPER.splitlines() if line.startswith("| ") and not line.startswith(("| in the", "| what"))
    ]
    assert len(rows) > 20
    for row in rows:
        assert re.search(r"`uniphase\.\w+", row), row
        assert re.search(r"`tests/[\w/]+\.py::", row), row


@pytest.mark.parametrize("page", PAGES)
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    blocks = code_blocks((ROOT / page).read_text())
    assert blocks
    if WITHOUT_TORCH:
        blocks = [block for block in blocks if "import torch" not in block]
    monkeypatch.chdir(tmp_path)
    with jax.numpy_dtype_promotion("standard"):  # as users have it; Optax needs it
        for block in blocks:
            exec(compile(re.sub(r"steps=\d+", "steps=3", block), page, "exec"), {})


def test_the_ten_lines_that_read_a_file_are_the_tested_ones():
    from helpers.ten_lines import TEN_LINES

    assert TEN_LINES.strip() in (ROOT / "docs" / "fitting.md").read_text()


@pytest.mark.parametrize(
    "page",
    [
        *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
        *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "results/report.md"),
    ],
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        if not target.startswith("https://"):
            assert (ROOT / page).parent.joinpath(target).exists(), target


def test_the_page_of_schemes_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    page = importlib.import_module("make_schemes").page()
    assert (ROOT / "docs" / "schemes.md").read_text() == page, "run `make docs`"


def test_the_page_of_the_doctor_is_up_to_date(monkeypatch):
    """To the words of every verdict; digits may round differently on another machine."""
    if not Path(os.environ.get("UNIPHASE_DATA", ""), "gt_bach.wav").exists():
        pytest.skip("gt_bach.wav is not in the directory UNIPHASE_DATA")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    script = importlib.import_module("make_doctor")

    def without_digits(text: str) -> str:
        return " ".join(re.sub(r"[\d.,e+-]*\d", "#", text).split())

    page = script.page(script.reports())
    assert without_digits((ROOT / "docs" / "doctor.md").read_text()) == without_digits(page), "run `make docs`"


def run_examples(name: str, documented, scope: dict) -> None:
    documentation = inspect.getdoc(documented) or ""
    assert documentation.strip(), f"{name} has no docstring"
    with jax.numpy_dtype_promotion("standard"):
        for block in code_blocks(documentation):
            exec(compile(block, name, "exec"), scope)


@pytest.mark.parametrize("name", [name for name in uniphase.__all__ if callable(getattr(uniphase, name))])
def test_public_names_are_documented_by_examples_that_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 255, (192, 256, 3), dtype=np.uint8)
    Image.fromarray(pixels).save("photo.jpg")
    soundfile.write("speech.flac", np.linspace(-1, 1, 500), 8000)
    write_clip(Path("clip.mp4"))
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 4, 6)), np.diag([4.0, 4.0, 3.0, 1.0])), "brain.nii.gz")
    Path("stations.csv").write_text("lon,lat,temperature\n7.5,47.6,11.2\n8.5,47.4,10.1\n")
    field = uniphase.load("camera", size=16)
    moments = uniphase.estimate_moments(field)
    network = uniphase.CoordinateMLP(uniphase.uniform_phase(moments, width=8, depth=4), key=jax.random.key(0))
    positions = jnp.asarray(field.coordinates(), jnp.float32)
    scope = {
        **{public: getattr(uniphase, public) for public in uniphase.__all__},
        **{"np": np, "jax": jax, "jnp": jnp, "optax": optax, "math": sys.modules["math"]},
        **{"field": field, "network": network, "positions": positions, "x": positions[0]},
    }
    run_examples(name, getattr(uniphase, name), scope)


def test_public_names_of_the_torch_side_as_well(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    from helpers.torch_models import Sine

    side = importlib.import_module("uniphase.torch")
    monkeypatch.chdir(tmp_path)
    for name in side.__all__:
        modules = [torch.nn.Linear(2, 8), Sine(30.0), torch.nn.Linear(8, 8), Sine(), torch.nn.Linear(8, 1)]
        scope = {
            **{public: getattr(uniphase, public) for public in uniphase.__all__},
            **{public: getattr(side, public) for public in side.__all__},
            **{"torch": torch, "field": uniphase.load("camera", size=16), "model": torch.nn.Sequential(*modules)},
        }
        run_examples(name, getattr(side, name), scope)


# What SLURM does with a job, on one machine: it keeps a copy of the script, runs it, and ends it on demand.
QUEUE = {
    "sbatch": """cp "$1" job.sh; setsid sh job.sh > job.log 2>&1 & echo "Submitted batch job $!" """,
    "scancel": """for job in "$@"; do kill -- "-$job"; done""",
}


def test_the_slurm_script_runs_an_experiment_by_jobs(tmp_path):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    for name, command in QUEUE.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    options = ["--jobs", "1", "--store", "lab", "--walltime", "00:10:00", "--interface", "lo", "--only", "camera/gray"]
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "slurm.py", "moments", *options],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "moments: 1 runs computed; `uniphase report --store lab` shows them\n", done.stderr
    assert len(list((tmp_path / "lab" / "records").glob("*.json"))) == 1
    job = (tmp_path / "job.sh").read_text()
    assert "#SBATCH --gres=gpu:1" in job
    assert "#SBATCH -t 00:10:00" in job
