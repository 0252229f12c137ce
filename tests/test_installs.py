"""The package works with no more than `pip install uniphase` or one of its extras brings.

An environment here is a directory of links to the distributions that pyproject.toml asks for, and to all that they ask
for in turn. A Python that looks nowhere else (`-S`) runs in it. So it takes no network, and a requirement that
pyproject.toml forgot is missing.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HEAVY = [
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "matplotlib",
    "rich",
    "cyclopts",
    "duckdb",
    "distributed",
    "av",
    "nibabel",
    "zarr",
    "onnx",
]


def asked_by_the_project(extras: Iterable[str]) -> list[Requirement]:
    """What pyproject.toml asks for, with the extras that an extra contains."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    requirements = [Requirement(text) for text in texts]
    inner = [asked_by_the_project(r.extras) for r in requirements if r.name == "uniphase"]
    return [r for r in requirements if r.name != "uniphase"] + [r for group in inner for r in group]


def closure(requirements: Iterable[Requirement]) -> set[str]:
    """The names of the distributions that are asked for, and of those that these need."""
    known: dict[str, set[str]] = {}
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), {"", *requirement.extras}
        if extras <= known.get(name, set()):
            continue
        known[name] = extras | known.get(name, set())
        try:
            needed = map(Requirement, distribution(name).requires or [])
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        waiting += [r for r in needed if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in known[name])]
    return set(known)


def entries(name: str) -> set[Path]:
    """The files and folders that a distribution has directly in site-packages."""
    files = distribution(name).files or []
    tops = {file.parts[0] for file in files} - {"..", "__pycache__"}
    return {Path(str(distribution(name).locate_file(top))) for top in tops}


def link_environment(path: Path, names: Iterable[str]) -> Path:
    """A directory with the modules of some distributions, and with this package and its metadata."""
    path.mkdir()
    metadata = {entry for entry in entries("uniphase") if entry.suffix == ".dist-info"}
    for entry in metadata.union({ROOT / "src" / "uniphase"}, *map(entries, names)):
        (path / entry.name).symlink_to(entry)
    return path


def environment(path: Path, *extras: str, tools: Iterable[str] = ()) -> Path:
    """The directory that `pip install "uniphase[extras]"` and some tools would fill."""
    return link_environment(path, closure([*asked_by_the_project(extras), *map(Requirement, tools)]))


def run(path: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment."""
    variables = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600
    )


def importable(path: Path) -> list[str]:
    """Those of the heavy modules that an environment has."""
    program = f"import importlib.util; print(*[name for name in {HEAVY} if importlib.util.find_spec(name)])"
    done = run(path, program)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_core_has_signals_moments_schemes_and_files(tmp_path):
    core = environment(tmp_path / "core")
    assert importable(core) == []
    done = run(
        core,
        "import uniphase as up\n"
        "from uniphase.storage.network_file import read_header\n"
        "print(up.uniform_phase(up.estimate_moments(up.load('camera', size=32)), width=8, depth=2))\n"
        "up.CoordinateMLP",
    )
    assert done.stdout.startswith("uniform-phase: 2 → 1"), done.stderr
    assert done.stderr.endswith('ImportError: uniphase.CoordinateMLP needs JAX; pip install "uniphase[jax]"\n')


SOME = ["test_against_jax.py", "test_files.py", "test_render.py", "test_fit.py::test_a_signal_alone_gets_a_network"]


@pytest.mark.parametrize("tests", [SOME, pytest.param([""], marks=pytest.mark.slow)], ids=["some", "all"])
def test_pytorch_works_with_its_extra_alone(tmp_path, tests):
    """The tests of the PyTorch side, without those that compare with JAX, that compile, or that draw many samples."""
    pytest.importorskip("torch", reason="the extra torch is not installed")
    alone = environment(tmp_path / "alone", "torch", tools=["pytest", "siren-pytorch"])
    assert importable(alone) == []
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "-k",
        "not compile",
        "--ignore",
        "tests/torch/reading",
        "-o",
        "addopts=--import-mode=importlib",
    ]
    arguments = [*options, "-rs", *(f"tests/torch/{name}" for name in tests)]
    done = run(alone, f"import pytest, sys; sys.exit(pytest.main({arguments}))")
    assert done.returncode == 0, done.stdout + done.stderr
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line.partition(": ")[2] for line in skipped] == ["the extra jax is not installed"]


def test_the_check_can_fail(tmp_path):
    """What was asked for is there; what was not asked for is missing."""
    assert importable(environment(tmp_path / "all", "all")) == HEAVY
    forgetful = link_environment(
        tmp_path / "forgetful", closure(r for r in asked_by_the_project([]) if r.name != "safetensors")
    )
    done = run(forgetful, "import uniphase.signals.fields; print('so far'); import uniphase.storage.network_file")
    assert done.stdout == "so far\n"
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'safetensors'\n")


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("jax", "numpy", "scipy", "torch", *HEAVY)
    check = f"import sys, uniphase; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_extras_are_those_of_the_documentation():
    extras = PROJECT["optional-dependencies"]
    assert list(extras) == [
        "jax",
        "torch",
        "cli",
        "tables",
        "video",
        "scans",
        "zarr",
        "export",
        "lab",
        "distributed",
        "all",
        "dev",
        "docs",
    ]
    everything = {r.name for r in asked_by_the_project(["all"])}
    assert everything == {
        r.name for extra in extras if extra not in ("dev", "docs") for r in asked_by_the_project([extra])
    }
