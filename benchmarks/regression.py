"""Is it slower than it was? `python benchmarks/regression.py OTHER_CHECKOUT [--only NAME ...]` compares two checkouts.

The work is that of `make bench`. For each kind of work, the uniphase of this checkout and that of the other one run in
processes of their own and take turns, so that a slow minute of the machine affects both alike. Printed are the ratios
of the medians and of the minima, this checkout over the other.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
# Contender, arguments of Size, how often it runs in a turn.
WORKS: dict[str, tuple[str, tuple[int, ...], int]] = {
    "wide": ("uniphase_adam", (256, 11), 3),
    "narrow": ("uniphase_adam", (16, 11), 100),
    "muon": ("uniphase_muon", (256, 11), 3),
    "many": ("uniphase_together", (16, 11), 5),
    "render": ("uniphase_render", (256, 4, 2048), 1),
    "laplacian": ("uniphase_laplacian", (256, 4), 1),
    "moments": ("uniphase_moments", (1, 1), 1),
}
# Measured in a new process each time: the megabytes of a step, or the seconds that a program prints.
MEMORY = ("uniphase_memory", (64, 4, 1024), 1)
PROGRAMS = {
    "import": "import time; t = time.perf_counter(); import uniphase; print(time.perf_counter() - t)",
    "help": (
        "import contextlib, io, time; t = time.perf_counter()\n"
        "from uniphase.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n    main(['--help'])\n"
        "print(time.perf_counter() - t)"
    ),
    "cold fit": (
        "import jax, uniphase as up\n"
        "field = up.load('camera')\n"
        "moments = up.estimate_moments(field)\n"
        "blueprint = up.uniform_phase(moments, width=256, depth=3)\n"
        "network = up.CoordinateMLP(blueprint, key=jax.random.key(0))\n"
        "times = [up.fit(network, field, moments=moments, steps=10).seconds for _ in range(2)]\n"
        "print(times[0] - times[1])"
    ),
}
PAGE = """# One commit against another

Written by `python benchmarks/regression.py CHECKOUT -o benchmarks/regression.md`: the work of `make bench` at commit
{0}, relative to commit {1}. Both take turns, {2} rounds each; below 1 the first is faster, or for memory smaller.

| work | ratio of medians | ratio of minima |
|---|---|---|
{3}
"""
WORKER = """
import json, sys
sys.path[:0] = [sys.argv[1] + "/src", sys.argv[1] + "/benchmarks"]
import contenders
run = getattr(contenders, sys.argv[2])(contenders.Size(*json.loads(sys.argv[3])))
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(run(int(line))[0]), flush=True)
"""


class Worker:
    """A contender of a checkout, in a process that waits for its turn."""

    def __init__(self, checkout: Path, contender: str, size: tuple[int, ...]):
        command = [sys.executable, "-c", WORKER, str(checkout), contender, json.dumps(size)]
        self.process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n", f"{checkout}: {contender} does not start"

    def run(self, count: int) -> float:
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def in_turns(checkouts: list[Path], work: tuple[str, tuple[int, ...], int], rounds: int) -> list[list[float]]:
    contender, size, count = work
    workers = [Worker(checkout, contender, size) for checkout in checkouts]
    for worker in workers:
        worker.run(count)  # compiled
    times: list[list[float]] = [[] for _ in workers]
    for _ in range(rounds):
        for worker, row in zip(workers, times, strict=True):
            row.append(1e3 * worker.run(count) / count)
    for worker in workers:
        worker.close()
    return times


def fresh(checkouts: list[Path], name: str, rounds: int) -> list[list[float]]:
    values: list[list[float]] = [[] for _ in checkouts]
    for _ in range(rounds):
        for checkout, row in zip(checkouts, values, strict=True):
            if name == "memory":
                worker = Worker(checkout, *MEMORY[:2])
                row.append(worker.run(MEMORY[2]) / 1e6)
                worker.close()
            else:
                program = f"import sys; sys.path.insert(0, {str(checkout / 'src')!r})\n{PROGRAMS[name]}"
                done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
                row.append(1e3 * float(done.stdout))
    return values


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    names = [*WORKS, "memory", *PROGRAMS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="another checkout, with src/ and benchmarks/")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", "--output", type=Path, help="write the table to this Markdown file as well")
    arguments = parser.parse_args()
    checkouts = [HERE, arguments.other.resolve()]
    print(f"{'work':<10} {'this':>10} {'other':>10}  ratio of medians  of minima")
    rows = []
    for name in arguments.only:
        measured = in_turns(checkouts, WORKS[name], arguments.rounds) if name in WORKS else None
        ours, theirs = measured or fresh(checkouts, name, max(3, arguments.rounds // 2))
        medians = statistics.median(ours), statistics.median(theirs)
        ratios = f"{medians[0] / medians[1]:>16.3f}  {min(ours) / min(theirs):>9.3f}"
        print(f"{name:<10} {medians[0]:>10.4g} {medians[1]:>10.4g}  {ratios}", flush=True)
        rows.append(f"| {name} | {medians[0] / medians[1]:.3f} | {min(ours) / min(theirs):.3f} |")
    if arguments.output is not None:
        commits = [_commit(checkout) for checkout in checkouts]
        arguments.output.write_text(PAGE.format(*commits, arguments.rounds, "\n".join(rows)))


if __name__ == "__main__":
    main()
