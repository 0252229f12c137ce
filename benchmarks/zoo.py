"""Every structure that the PyTorch side reads, as it is written and after `initialize_`: a table of docs/models.md.

    python benchmarks/zoo.py

The structures are those of the tests (tests/helpers/zoo.py). It takes some minutes.
"""

import re
import statistics
import sys
from pathlib import Path

import torch

from uniphase.lab.tables import Table, spread

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "models.md"
SEEDS = range(3)

sys.path.insert(0, str(HERE.parent / "tests"))
from helpers import zoo, zoo_training  # noqa: E402  # pyright: ignore[reportMissingImports]


def table() -> Table:
    rows = []
    for name, entry in zoo.EVERY.items():
        found = [[zoo_training.train(entry, seed, initialized=after) for seed in SEEDS] for after in (False, True)]
        cells = []
        for part in (0, 1):
            before, after = ([psnrs[part] for psnrs in start] for start in found)
            change = statistics.fmean(after) - statistics.fmean(before)
            cells += [spread(before, ".1f"), spread(after, ".1f"), f"{change:+.1f}"]
        rows.append((name, *cells))
        print(*rows[-1], flush=True)
    header = ("structure", "fitted", "after `initialize_`", "change", "held back", "after", "change")
    title = f"PSNR in dB after {zoo_training.STEPS} steps of Adam at {zoo_training.RATE:g}; {len(SEEDS)} seeds"
    return Table("zoo", title, header, tuple(rows))


if __name__ == "__main__":
    torch.set_num_threads(1)
    made, marks = table(), re.compile(r"(<!-- zoo -->\n).*?(<!-- end -->)", re.DOTALL)
    page, count = marks.subn(lambda match: f"{match[1]}{made.markdown()}{match[2]}", PAGE.read_text())
    assert count == 1, "docs/models.md has no marks for the table zoo"
    PAGE.write_text(page)
