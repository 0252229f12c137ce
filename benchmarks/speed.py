"""How fast is it? `make bench`, or `python benchmarks/speed.py [WORK ...]`; writes benchmarks/speed.json and README.md.

Every contender runs in a process of its own and waits for its turn. Before anything is timed, contenders show that they
compute the same: the losses of the first 20 steps, or the pixels, must agree, or the program fails. Then they take
turns, so that a slow minute of the machine hits them all alike. What counts is the ratio of two medians within one run.
Work that is named is timed again, the rest is kept as it was.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import contenders
import numpy as np
from contenders import Size

import uniphase as up
from uniphase.signals.paths import atomic_path

RECORDS = Path(__file__).with_name("speed.json")
PAGE = Path(__file__).with_name("README.md")
ROUNDS = 7
STEPS_COMPARED, LOSS_TOLERANCE = 20, 1e-4
PACKAGES = ("jax", "equinox", "optax", "torch", "siren-pytorch", "numpy", "scipy")


@dataclass(frozen=True)
class Work:
    """Something to be done by several contenders.

    - `count`: how often it is done in a turn.
    - `compared`: how often it is done before, for the results that must agree to `tolerance`; 0 compares nothing.
    - `unit`: what a contender measures.
    - `fresh`: whether every turn wants a new process.
    """

    title: str
    size: Size
    contenders: tuple[str, ...]
    count: int
    compared: int = STEPS_COMPARED
    tolerance: float = LOSS_TOLERANCE
    unit: str = "ms"
    fresh: bool = False


STEPS = ("uniphase_adam", "plain_equinox", "torch_eager", "torch_compile", "siren_pytorch",
         "products_numpy", "products_torch", "products_jax", "sines_jax")  # fmt: skip
WORKS = {
    "wide": Work("A step: N=256, L=11, 16,384 points, full batch, Adam", Size(256, 11), STEPS, 3),
    "narrow": Work("The same with N=16", Size(16, 11), STEPS, 60),
    "muon": Work("A step with Muon: N=256, L=11", Size(256, 11), ("uniphase_adam", "uniphase_muon"), 5, compared=0),
    "torch": Work("A step of PyTorch: N=256, L=4, 16,384 points, full batch, Adam", Size(256, 4),
                  ("uniphase_torch_fit", "torch_eager", "uniphase_adam"), 5),
    "torch muon": Work("A step of PyTorch with Muon: N=256, L=4", Size(256, 4),
                       ("uniphase_torch_muon", "uniphase_torch_fit", "uniphase_muon"), 5, compared=0),
    "many": Work("A step of 21 networks, one per rate: N=16, L=11", Size(16, 11),
                 ("uniphase_together", "uniphase_one_by_one"), 40, compared=1),
    # float32 phases grow through five layers: pixels agree to some 1e-4 of their range
    "render": Work("Rendering 2048×2048: N=256, L=4", Size(256, 4, 2048), ("uniphase_render", "torch_render"), 1,
                   compared=1, tolerance=1e-3),
    "laplacian": Work("A step of a Laplacian loss: N=256, L=4, 16,384 points, Adam", Size(256, 4),
                      ("uniphase_laplacian", "plain_laplacian", "torch_laplacian"), 1, compared=5),
    "memory": Work("Memory of a full-batch step: N=64, L=4, a megapixel", Size(64, 4, 1024),
                   ("uniphase_memory", "torch_memory"), 1, compared=0, unit="MB", fresh=True),
    "moments": Work("Moments of 4096×4096 RGB, from the file", Size(1, 1), ("uniphase_moments", "scipy_sobel"), 1,
                    compared=0),
}  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """A goal: the median of one contender is at most this multiple of that of another."""

    work: str
    contender: str
    against: str
    at_most: float


GOALS = (
    Goal("wide", "uniphase_adam", "products_numpy", 1.15),
    Goal("wide", "uniphase_adam", "products_torch", 1.15),
    Goal("wide", "uniphase_adam", "products_jax", 1.15),
    Goal("wide", "uniphase_adam", "torch_eager", 0.85),
    Goal("wide", "uniphase_adam", "torch_compile", 0.90),
    Goal("wide", "uniphase_adam", "plain_equinox", 0.40),
    Goal("narrow", "uniphase_adam", "torch_eager", 0.60),
    Goal("narrow", "uniphase_adam", "plain_equinox", 0.20),
    Goal("many", "uniphase_together", "uniphase_one_by_one", 0.50),
    Goal("muon", "uniphase_muon", "uniphase_adam", 1.10),
    Goal("torch", "uniphase_torch_fit", "torch_eager", 1.10),
    Goal("torch muon", "uniphase_torch_muon", "uniphase_torch_fit", 1.15),
    Goal("render", "uniphase_render", "torch_render", 0.80),
    Goal("laplacian", "uniphase_laplacian", "torch_laplacian", 0.50),
    Goal("memory", "uniphase_memory", "torch_memory", 0.25),
    Goal("moments", "uniphase_moments", "scipy_sobel", 1.2),
)
SECONDS_WANTED = {"cold compilation of the default fit": 5.0, "import uniphase": 0.25, "uniphase --help": 0.5}


# Contenders in processes that wait for their turn.


def serve(name: str, size: Size, connection: Connection) -> None:
    try:
        run = getattr(contenders, name)(size)
        connection.send(None)
    except ImportError as error:
        connection.send(f"not installed: {error.name}")
        return
    while (count := connection.recv()) is not None:
        connection.send(run(count))


class Contender:
    def __init__(self, name: str, size: Size):
        context = multiprocessing.get_context("spawn")  # a fork would share the thread pools
        self.name = name
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(name, size, other), daemon=True)
        self.process.start()
        other.close()
        self.missing: str | None = self.connection.recv()

    def run(self, count: int) -> tuple[float, list[float]]:
        self.connection.send(count)
        return self.connection.recv()

    def close(self) -> None:
        if self.missing is None:
            self.connection.send(None)
        self.process.join()


def measure(name: str, work: Work, rounds: int) -> dict[str, Any]:
    """The times of every contender, and the reason for those that could not take part."""
    if work.fresh:
        return measure_fresh(work, rounds)
    field = [Contender(contender, work.size) for contender in work.contenders]
    missing = {c.name: c.missing for c in field if c.missing}
    field = [c for c in field if not c.missing]
    if work.compared:
        whole = [c for c in field if not c.name.startswith(("products", "sines"))]
        compare(name, work, {c.name: c.run(work.compared)[1] for c in whole})
    times: dict[str, list[float]] = {c.name: [] for c in field}
    for c in field:
        c.run(1)  # compiled for this count as well, and the pools awake
    for i in range(rounds):
        for c in field:
            times[c.name].append(1e3 * c.run(work.count)[0] / work.count)
            print(f"\r{name}: round {i + 1} of {rounds}, {c.name} {times[c.name][-1]:.4g} ms" + 20 * " ", end="")
    print()
    for c in field:
        c.close()
    return {"times": times, "missing": missing}


def measure_fresh(work: Work, rounds: int) -> dict[str, Any]:
    values: dict[str, list[float]] = {name: [] for name in work.contenders}
    missing = {}
    for _ in range(rounds):
        for name in work.contenders:
            contender = Contender(name, work.size)
            if contender.missing:
                missing[name] = contender.missing
            else:
                values[name].append(contender.run(work.count)[0] / 1e6)
            contender.close()
    return {"times": {name: v for name, v in values.items() if v}, "missing": missing}


def compare(name: str, work: Work, results: dict[str, list[float]]) -> None:
    """The program fails unless all contenders give the same."""
    reference, *others = results
    expected = np.asarray(results[reference])
    scale = np.abs(expected) if work.size.side != 2048 else np.abs(expected).max()
    for other in others:
        difference = float((np.abs(np.asarray(results[other]) - expected) / scale).max())
        if not difference <= work.tolerance:
            sys.exit(f"{name}: {other} and {reference} differ by {difference:.2e}, more than {work.tolerance}")
        print(f"{name}: {other} and {reference} agree to {difference:.1e}")


# What grows with the signal, and what comes before the first step.


def growth() -> dict[str, list[dict[str, float]]]:
    """Milliseconds of a step for 2¹² to 2²⁰ points, and seconds of 10 to 320 steps."""
    import jax

    moments = up.estimate_moments(up.load("camera", size=64))
    network = up.CoordinateMLP(up.uniform_phase(moments, width=64, depth=4), key=jax.random.key(0))

    def seconds(side: int, steps: int) -> float:
        field = up.Grid(np.random.default_rng(0).random((side, side, 1), dtype=np.float32))
        recipe = up.paper_recipe(field)
        up.fit(network, field, recipe=recipe, moments=moments, steps=1)
        return min(up.fit(network, field, recipe=recipe, moments=moments, steps=steps).seconds for _ in range(3))

    points = []
    for side in (64, 128, 256, 512, 1024):
        steps = max(4, 2**21 // side**2)
        step = seconds(side, steps) / steps
        points.append({"points": side**2, "ms": 1e3 * step, "ns per point": 1e9 * step / side**2})
        print(f"growth: {side**2} points, {1e3 * step:.4g} ms a step")
    steps = []
    for count in (10, 20, 40, 80, 160, 320):
        total = seconds(128, count)
        steps.append({"steps": count, "seconds": total, "ms per step": 1e3 * total / count})
    return {"points": points, "steps": steps}


COLD = """
import time, jax, uniphase as up
field = up.load("camera")
width, depth = up.default_size(field)
moments = up.estimate_moments(field)
network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=depth), key=jax.random.key(0))
times = [up.fit(network, field, moments=moments, steps=10).seconds for _ in range(2)]
print(times[0] - times[1])
"""


def startup(rounds: int) -> dict[str, list[float]]:
    """Seconds: of compiling the default fit in a new process, of the import, of the help."""

    def seconds(*command: str) -> float:
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - begun

    python, script = sys.executable, str(Path(sys.executable).with_name("uniphase"))
    found: dict[str, list[float]] = {name: [] for name in SECONDS_WANTED}
    seconds(script, "--help")  # bytecode is compiled
    for _ in range(rounds):
        cold = subprocess.run([python, "-c", COLD], check=True, capture_output=True, text=True).stdout
        found["cold compilation of the default fit"].append(float(cold))
        found["import uniphase"].append(seconds(python, "-c", "import uniphase") - seconds(python, "-c", "pass"))
        found["uniphase --help"].append(seconds(script, "--help"))
    return found


# The page.


def machine() -> dict[str, Any]:
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), "")
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "cpu": model or "unknown",
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        "versions": versions,
    }


def label(contender: str) -> str:
    words = {"torch": "PyTorch", "numpy": "NumPy", "jax": "JAX", "scipy": "SciPy", "equinox": "Equinox"}
    if contender == "siren_pytorch":
        return "siren-pytorch"
    return " ".join(words.get(word, word) for word in contender.split("_")).replace("compile", "`compile`")


def number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def page(record: dict[str, Any]) -> str:
    lines = [
        "# How fast it is",
        "",
        "Written by `make bench` (benchmarks/speed.py); the times are in speed.json. Contenders are processes that",
        "take turns, from the same weights on the same data; their losses over the first 20 steps, or their pixels,",
        "were compared before anything was timed. A time means little on a shared machine; a ratio of medians within",
        "one run means something. The products are those of the hidden layers alone, each in the fastest of several",
        "layouts, with nothing between them: the limit of the library for this step.",
        "",
        "The column *products* is the same ratio for the fastest products alone: about the least to be hoped for.",
        "",
        "| work | contender | against | ratio | products | wanted | |",
        "|---|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        times = record["works"].get(goal.work, {}).get("times", {})
        title = f"| {WORKS[goal.work].title} | {label(goal.contender)} | {label(goal.against)} |"
        if goal.contender not in times or goal.against not in times:
            lines.append(f"{title} not run | | {goal.at_most} | |")
            continue
        medians = {contender: statistics.median(values) for contender, values in times.items()}
        ratio = medians[goal.contender] / medians[goal.against]
        products = [median for contender, median in medians.items() if contender.startswith("products")]
        limit = f"{min(products) / medians[goal.against]:.2f}" if products else ""
        verdict = "met" if ratio <= goal.at_most else "**not met**"
        lines.append(f"{title} {ratio:.2f} | {limit} | {goal.at_most} | {verdict} |")
    for name, found in record.get("startup", {}).items():
        wanted = SECONDS_WANTED[name]
        median = statistics.median(found)
        verdict = "met" if median <= wanted else "**not met**"
        lines.append(f"| {name} | | | {median:.2f} s | | {wanted} s | {verdict} |")
    lines += ["", *reasons(record["works"]), "## All contenders", ""]
    for name, work in WORKS.items():
        if name in record["works"]:
            lines += table(work, record["works"][name])
    if "growth" in record:
        lines += growth_tables(record["growth"])
    lines += ["## Machines", "", "| work | date | CPU | cores | Python | versions |", "|---|---|---|---|---|---|"]
    machines: dict[str, list[str]] = {}
    for name, where in record["machines"].items():
        versions = ", ".join(f"{package} {number}" for package, number in where["versions"].items())
        cells = f"| {where['date']} | {where['cpu']} | {where['cores']} | {where['python']} | {versions} |"
        machines.setdefault(cells, []).append(name)
    lines += [f"| {', '.join(names)} {cells}" for cells, names in machines.items()]
    return "\n".join(lines) + "\n"


def reasons(works: dict[str, Any]) -> list[str]:
    """Where the time of a narrow step goes, from the same times."""
    if "many" not in works or "narrow" not in works:
        return []
    narrow = {name: statistics.median(values) for name, values in works["narrow"]["times"].items()}
    together = statistics.median(works["many"]["times"]["uniphase_together"]) / 21
    products = min(median for name, median in narrow.items() if name.startswith("products"))
    alone = number(narrow["uniphase_adam"])
    return [
        f"A narrow step takes {alone} ms by itself and {number(together)} ms as one of 21 in a",
        f"program. The fastest products alone take {number(products)} ms of it, and sines and cosines alone",
        f"{number(narrow['sines_jax'])} ms, both on two threads: one narrow network keeps the cores busy, and batching",
        "has little to save.",
        "",
    ]


def table(work: Work, found: dict[str, Any]) -> list[str]:
    times = found["times"]
    first = statistics.median(next(iter(times.values())))
    lines = [f"**{work.title}**", "", f"| | minimum, {work.unit} | median, {work.unit} | median, relative | turns |"]
    lines.append("|---|---|---|---|---|")
    for contender, values in times.items():
        median = statistics.median(values)
        lines.append(
            f"| {label(contender)} | {number(min(values))} | {number(median)} | {median / first:.2f} | {len(values)} |"
        )
    lines += [f"| {label(contender)} | {reason} | | | |" for contender, reason in found["missing"].items()]
    return [*lines, ""]


def growth_tables(found: dict[str, list[dict[str, float]]]) -> list[str]:
    lines = ["**Growth** (uniphase, N=64, L=4, full batch, Adam; the best of 3)", ""]
    for rows in found.values():
        lines += ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
        lines += ["| " + " | ".join(number(value) for value in row.values()) + " |" for row in rows]
        lines.append("")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = (*WORKS, "growth", "startup")
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"one of {', '.join(names)}; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each contender, {ROUNDS} by default")
    parser.add_argument("--page", action="store_true", help="only write the page again, from speed.json")
    arguments = parser.parse_args()
    if unknown := set(arguments.works) - set(names):
        parser.error(f"unknown work {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    record = json.loads(RECORDS.read_text()) if RECORDS.exists() else {"works": {}, "machines": {}}
    for name in () if arguments.page else arguments.works or names:
        if name in WORKS:
            record["works"][name] = measure(name, WORKS[name], arguments.rounds)
        else:
            record[name] = growth() if name == "growth" else startup(arguments.rounds)
        record["machines"][name] = machine()
        with atomic_path(RECORDS) as path:
            path.write_text(json.dumps(record, indent=1) + "\n")
    with atomic_path(PAGE) as path:
        path.write_text(page(record))
    print(page(record))


if __name__ == "__main__":
    main()
