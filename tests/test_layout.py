"""The rules of the layout: which room may know which, and that each has its tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "uniphase"

# The path of the data. A module imports only modules that stand before it.
ORDER = [
    "fields",
    "pixels",
    "files",
    "datasets",
    "splines",
    "metrics",
    "moments",
    "laws",
    "blueprints",
    "schemes",
    "recipes",
    "network_files",
    "chains",
    "likeness",
    "verdicts",
    "doctor",
    "torch.batches",
    "torch.networks",
    "torch.reading",
    "torch.diagnostics",
    "torch.initialization",
    "torch.optimizers",
    "torch.checkpoints",
    "sine",
    "networks",
    "backprop",
    "derivatives",
    "diagnostics",
    "render",
    "checkpoints",
    "optimizers",
    "samples",
    "mup",
    "protocol",
    "training",
    "figures",
    "workflows.subjects",
    "workflows.outputs",
    "workflows.fitting",
    "workflows.rendering",
    "workflows.comparing",
    "workflows.examining",
    "experiments",
    "terminal",
    "cli",
]
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if path.stem != "__init__" and path.parent.name != "experiments"
)
EXPERIMENTS = sorted(path.stem for path in (PACKAGE / "experiments").glob("*.py"))
# Shared with frameworks other than JAX, part of another framework, or wanted before JAX has to be loaded.
WITHOUT_JAX = [*ORDER[: ORDER.index("sine")], "terminal", "cli"]
JAX = {"jax", "jaxlib", "equinox", "optax"}


def source_of(module: str) -> str:
    return PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text()


def imports(source: str, *, folder: str = "", top_level_only: bool = False) -> set[str]:
    """What a module imports: `.name` for a room of the package, the name of the distribution's package otherwise."""
    tree = ast.parse(source)
    nodes = tree.body if top_level_only else ast.walk(tree)
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            prefix = f".{folder}." if folder and node.level == 1 else "."
            names |= {prefix + name for name in ([node.module] if node.module else [a.name for a in node.names])}
    return names


def violations(module: str, source: str) -> list[str]:
    folder = module.rpartition(".")[0]
    found = imports(source, folder=folder)
    later = {f".{name}" for name in ORDER[ORDER.index(module) :]}
    broken = [f"{module} imports {name}, which comes after it" for name in sorted(found & later)]
    if module in WITHOUT_JAX and found & JAX:
        broken.append(f"{module} imports {sorted(found & JAX)}, but must work without JAX")
    if folder != "torch" and any(name.lstrip(".").split(".")[0] == "torch" for name in found):
        broken.append(f"{module} imports torch")
    if "matplotlib" in found and (module != "figures" or "matplotlib" in imports(source, top_level_only=True)):
        broken.append(f"{module} imports matplotlib")
    if "uniphase" in found:
        broken.append(f"{module} imports the package by its own name")
    return broken


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    assert violations(module, source_of(module)) == []


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("moments", "from .schemes import sm20", "moments imports .schemes, which comes after it"),
        ("moments", "from . import cli", "moments imports .cli, which comes after it"),
        ("laws", "def f():\n    import jax.numpy as jnp", "laws imports ['jax'], but must work without JAX"),
        ("networks", "import torch", "networks imports torch"),
        ("networks", "from .torch.networks import Layer", "networks imports torch"),
        ("torch.reading", "import optax", "torch.reading imports ['optax'], but must work without JAX"),
        ("torch.reading", "from ..networks import Layer", "torch.reading imports .networks, which comes after it"),
        (
            "torch.reading",
            "from .checkpoints import a",
            "torch.reading imports .torch.checkpoints, which comes after it",
        ),
        ("networks", "def f():\n    import matplotlib", "networks imports matplotlib"),
        ("figures", "import matplotlib.pyplot", "figures imports matplotlib"),
        ("cli", "from uniphase import load", "cli imports the package by its own name"),
    ],
)
def test_the_rules_can_be_broken(module, source, message):
    assert violations(module, source) == [message]


def experiment_violations(module: str, source: str) -> list[str]:
    """What the laboratory must not do: it stands on the public names of all rooms, and draws in one place."""
    broken = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
            broken += [f"{module} imports {name}, which is not public" for name in names if name.startswith("_")]
            broken += [f"{module} imports .{node.module}"] if node.module in ("cli", "experiments", None) else []
    # Types are imported under `if TYPE_CHECKING` anywhere.
    tree = ast.parse(source)
    drawing = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = {name for node in drawing for name in imports(ast.unparse(node))} | imports(source, top_level_only=True)
    if "matplotlib" in found and (module != "pictures" or "matplotlib" in imports(source, top_level_only=True)):
        broken.append(f"{module} imports matplotlib")
    if "torch" in found:
        broken.append(f"{module} imports torch")
    return broken


@pytest.mark.parametrize("module", EXPERIMENTS)
def test_experiments_use_public_names(module):
    assert experiment_violations(module, (PACKAGE / "experiments" / f"{module}.py").read_text()) == []


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("audio", "from ..training import _steps", "audio imports _steps, which is not public"),
        ("audio", "def f():\n    from ..cli import main", "audio imports .cli"),
        ("audio", "def f():\n    import matplotlib", "audio imports matplotlib"),
        ("pictures", "import matplotlib", "pictures imports matplotlib"),
    ],
)
def test_the_rules_of_experiments_can_be_broken(module, source, message):
    assert experiment_violations(module, source) == [message]


def test_nothing_imports_experiments_but_the_command_line_when_it_needs_them():
    importers = {module for module in MODULES if ".experiments" in str(imports(source_of(module)))}
    assert importers == {"cli", "terminal"}
    for module in importers:
        assert ".experiments" not in str(imports(source_of(module), top_level_only=True))


def path_of_tests(module: str) -> Path:
    """The tests mirror the tree, but for `torch`: a folder of that name would hide PyTorch from them."""
    *folder, name = module.split(".")
    if folder == ["torch"]:
        return ROOT / "tests" / f"test_torch_{name}.py"
    return ROOT.joinpath("tests", *folder, f"test_{name}.py")


def test_every_module_has_its_place_and_its_tests():
    assert sorted(ORDER) == sorted([*MODULES, "experiments"])
    experiments = [f"experiments.{name}" for name in EXPERIMENTS if name != "__init__"]
    assert [name for name in [*MODULES, *experiments] if not path_of_tests(name).exists()] == []


def test_importing_the_package_loads_nothing_heavy():
    check = "import sys, uniphase; print([m for m in ('jax', 'numpy', 'scipy', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "[]\n"


def test_the_framework_free_half_runs_without_jax():
    check = (
        "import sys; sys.modules['jax'] = sys.modules['jaxlib'] = None\n"
        "import uniphase as up\n"
        "print(up.uniform_phase(up.estimate_moments(up.load('camera', size=32)), width=8, depth=2))\n"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.startswith("uniform-phase: 2 → 1"), done.stderr


def without_jax(statements: str) -> subprocess.CompletedProcess[str]:
    """Run a program to which JAX and all that builds on it are not there."""
    blocked = "import sys; sys.modules.update(dict.fromkeys(['jax', 'jaxlib', 'equinox', 'optax']))\n"
    return subprocess.run([sys.executable, "-c", blocked + statements], capture_output=True, text=True)


def test_the_torch_side_runs_without_jax(tmp_path):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    done = without_jax(
        "import torch, uniphase as up, uniphase.torch as upt\n"
        "torch.set_num_threads(1)\n"
        "field = up.load('camera', size=16)\n"
        "moments = up.estimate_moments(field)\n"
        "blueprint = up.uniform_phase(moments, width=8, depth=2)\n"
        "network = upt.initialize_(upt.CoordinateMLP(blueprint), moments)\n"
        "upt.UnitMuon(network, field, moments)\n"
        f"upt.save_network({str(tmp_path / 'a.uniphase')!r}, up.Saved.of(network, blueprint, field))\n"
        f"print(upt.load_network({str(tmp_path / 'a.uniphase')!r}).blueprint == blueprint)\n"
    )
    assert done.stdout == "True\n", done.stderr


def test_without_jax_the_other_side_does_not_run():
    """The check above can fail."""
    assert "import of equinox halted" in without_jax("import uniphase; uniphase.CoordinateMLP").stderr


def test_public_names_are_those_of_the_stub():
    import uniphase

    for name in uniphase.__all__:
        assert getattr(uniphase, name) is not None
