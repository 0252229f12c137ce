"""Public models before and after `initialize_`, trained by Adam and by `UnitMuon`. Writes docs/models.md.

    python benchmarks/models.py           what is missing, then the page
    python benchmarks/models.py --page    the page alone, from the records

The models are written here from their published formulas, each with the learning rate that it is used with. Every other
pixel of the camera image (128 × 128, as on a chessboard) is fitted in 300 full-batch steps, the others are held back.
Records are appended to benchmarks/models.jsonl one by one; what is there is not run again.
"""

import argparse
import itertools
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

import uniphase as up
import uniphase.torch as upt
from uniphase.lab.tables import Table, spread

HERE = Path(__file__).resolve().parent
RECORDS, PAGE = HERE / "models.jsonl", HERE.parent / "docs" / "models.md"
SIZE, WIDTH, STEPS, SEEDS = 128, 128, 300, 3
# Output weights relative to those that give an untrained network the covariance of the signal.
SCALES = (0.01, 0.05, 0.2, 1.0, 2.0)
STARTS, OPTIMIZERS = ("its own", "initialize_"), ("Adam", "UnitMuon")


class Sine(nn.Module):
    def __init__(self, omega: float = 1.0):
        super().__init__()
        self.omega = omega

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.omega * x)


def uniform_(layer: nn.Linear, bound: float, bias: float | None = None) -> nn.Linear:
    """Draw weights and, if a bound is given, biases; otherwise those keep the law of PyTorch."""
    nn.init.uniform_(layer.weight, -bound, bound)
    if bias is not None:
        nn.init.uniform_(layer.bias, -bias, bias)
    return layer


def chain(layers: list[nn.Linear], omegas: list[float], *after: nn.Module) -> nn.Sequential:
    pairs = [part for layer, omega in zip(layers[:-1], omegas, strict=True) for part in (layer, Sine(omega))]
    return nn.Sequential(*pairs, layers[-1], *after)


def linears(width: int, hidden: int) -> list[nn.Linear]:
    sizes = [2, *[width] * (hidden + 1), 1]
    return [nn.Linear(n, m) for n, m in itertools.pairwise(sizes)]


def siren(width: int = WIDTH, hidden: int = 3, omega: float = 30.0) -> nn.Sequential:
    """The official SIREN."""
    layers = linears(width, hidden)
    uniform_(layers[0], 1 / 2)
    for layer in layers[1:]:
        uniform_(layer, math.sqrt(6 / width) / omega)
    return chain(layers, [omega] * (hidden + 1))


class Meta(nn.Module):
    """SIREN as its meta-learning code has it: matrices applied by `matmul`, biases added afterwards."""

    def __init__(self):
        super().__init__()
        plain = [part for part in siren() if isinstance(part, nn.Linear)]
        self.weights = nn.ParameterList([layer.weight.detach().clone() for layer in plain])
        self.biases = nn.ParameterList([layer.bias.detach().clone() for layer in plain])

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            x = torch.sin(30 * (x.matmul(weight.permute(-1, -2)) + bias))
        return x.matmul(last[0].permute(-1, -2)) + last[1]


def siren_pytorch(width: int) -> nn.Sequential:
    """siren-pytorch: ω is 30 in the first layer alone, and biases have the bound of the weights."""
    layers = linears(width, 4)
    uniform_(layers[0], 1 / 2, 1 / 2)
    for layer in layers[1:]:
        uniform_(layer, math.sqrt(6 / width), math.sqrt(6 / width))
    return chain(layers, [30.0, *[1.0] * 4])


def physics_nemo() -> nn.Sequential:
    """SIREN whose output layer is not divided by ω."""
    model = siren()
    uniform_([part for part in model if isinstance(part, nn.Linear)][-1], math.sqrt(6 / WIDTH))
    return model


def all_first_layers() -> nn.Sequential:
    """A frequent mistake: the law of the first layer in all of them."""
    layers = linears(WIDTH, 3)
    for layer in layers:
        uniform_(layer, 1 / layer.in_features)
    return chain(layers, [30.0] * 4)


def plain_sines(glorot: bool) -> nn.Sequential:
    """Sines instead of another activation, with the usual law of that framework and no ω."""
    layers = linears(WIDTH, 3)
    for layer in layers if glorot else ():
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    return chain(layers, [1.0] * 4)


class Residual(nn.Module):
    """Sine layers with residual connections, as in models for scientific visualization."""

    def __init__(self, width: int = WIDTH):
        super().__init__()
        self.first, self.last = (
            uniform_(nn.Linear(2, width), 1 / 2),
            uniform_(nn.Linear(width, 1), math.sqrt(6 / width) / 30),
        )
        self.blocks = nn.ModuleList([uniform_(nn.Linear(width, width), math.sqrt(6 / width) / 30) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        x = torch.sin(30 * self.first(x))
        for block in self.blocks:
            x = x + torch.sin(30 * block(x))
        return self.last(x)


class Around(nn.Module):
    """SIREN with positions in [0, 1] and values around a half, as in compression."""

    def __init__(self):
        super().__init__()
        self.net = siren(width=49, hidden=4)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) * 0.5 + 0.5


@dataclass(frozen=True)
class Model:
    """A public model: how it is made, and the learning rate of Adam that it comes with."""

    name: str
    make: Callable[[], nn.Module]
    rate: float


MODELS = (
    Model("SIREN, official notebook", siren, 1e-4),
    Model("SIREN, meta-learning code", Meta, 1e-4),
    Model("SIREN of an INR library, rate 5e-4", siren, 5e-4),
    Model("SIREN at rate 1e-3", siren, 1e-3),
    Model("SIREN for compression, narrow and deep", Around, 2e-4),
    Model("SIREN, ω = 5 (too low)", lambda: siren(omega=5.0), 1e-4),
    Model("SIREN, ω = 300 (too high)", lambda: siren(omega=300.0), 1e-4),
    Model("siren-pytorch, width 128", lambda: siren_pytorch(128), 1e-4),
    Model("siren-pytorch, width 64", lambda: siren_pytorch(64), 1e-4),
    Model("output not divided by ω", physics_nemo, 1e-4),
    Model("law of the first layer everywhere", all_first_layers, 1e-4),
    Model("residual sine blocks", Residual, 1e-4),
    Model("sines by Glorot's law, no ω", lambda: plain_sines(glorot=True), 1e-3),
    Model("sines by PyTorch's law, no ω", lambda: plain_sines(glorot=False), 1e-3),
)


def halves() -> list[list[Tensor]]:
    """The positions and values of the black and of the white squares of a chessboard over the image."""
    field = up.load("camera", size=SIZE)
    black = (np.indices(field.shape).sum(axis=0) % 2 == 0).ravel()
    return [
        [torch.tensor(rows[chosen], dtype=torch.float32) for rows in (field.coordinates(), field.flat_values())]
        for chosen in (black, ~black)
    ]


def measure(model: Model, start: str, optimizer: str, seed: int) -> dict[str, float]:
    """Train as the model's own script would, and measure both halves."""
    (x, y), (unseen_x, unseen_y) = halves()
    torch.manual_seed(seed)
    network = model.make()
    known = up.Points(x.numpy(), y.numpy())
    moments = up.estimate_moments(known)
    if start != "its own":
        _, _, scale = start.partition(", output scale ")
        options: dict[str, Any] = {"output_scale": float(scale)} if scale else {}
        upt.initialize_(network, moments, generator=torch.Generator().manual_seed(seed), **options)
    if optimizer == "Adam":
        chosen, falls = torch.optim.Adam(network.parameters(), lr=model.rate), 1.0
    else:
        chosen, falls = upt.UnitMuon(network, known, moments), 0.01
    schedule = torch.optim.lr_scheduler.LinearLR(chosen, 1.0, falls, STEPS)
    for _ in range(STEPS):
        loss = (network(x) - y).square().mean()
        chosen.zero_grad()
        loss.backward()
        chosen.step()
        schedule.step()
    with torch.no_grad():
        errors = [float((network(a) - b).square().mean()) for a, b in ((x, y), (unseen_x, unseen_y))]
    return {
        name: round(-10 * math.log10(error), 3) for name, error in zip(("fitted", "held_back"), errors, strict=True)
    }


def tasks() -> Iterator[tuple[Model, str, str, int]]:
    for optimizer in OPTIMIZERS:
        for seed in range(SEEDS):
            yield from ((MODELS[0], scaled(scale), optimizer, seed) for scale in SCALES)
            yield from ((model, start, optimizer, seed) for model in models_for(optimizer) for start in STARTS)


def models_for(optimizer: str) -> list[Model]:
    """All models; `UnitMuon` has its own rate, so those that differ in it alone are one."""
    return (
        list(MODELS) if optimizer == "Adam" else list({model.make: model for model in reversed(MODELS)}.values())[::-1]
    )


def scaled(scale: float) -> str:
    return f"initialize_, output scale {scale:g}"


def load_records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def run(optimizers: list[str]) -> None:
    done = {(r["model"], r["start"], r["optimizer"], r["seed"]) for r in load_records()}
    for model, start, optimizer, seed in tasks():
        key = (model.name, start, optimizer, seed)
        if key not in done and optimizer in optimizers:
            record = dict(zip(("model", "start", "optimizer", "seed"), key, strict=True)) | measure(model, *key[1:])
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(*key, record["fitted"], record["held_back"], flush=True)


def table(records: list[dict[str, Any]], optimizer: str) -> Table:
    rows, worst = [], {"fitted": math.inf, "held_back": math.inf}
    for model in models_for(optimizer):
        by_start = {
            start: [r for r in records if (r["model"], r["start"], r["optimizer"]) == (model.name, start, optimizer)]
            for start in STARTS
        }
        if not all(by_start.values()):
            continue
        cells, changes = [], []
        for part in worst:
            numbers = [[record[part] for record in found] for found in by_start.values()]
            change = statistics.fmean(numbers[1]) - statistics.fmean(numbers[0])
            worst[part] = min(worst[part], change)
            cells += [spread(each, ".1f") for each in numbers]
            changes.append(f"{change:+.1f}")
        rate = f"{model.rate:g}" if optimizer == "Adam" else "—"
        seeds = str(min(map(len, by_start.values())))
        rows.append((model.name, rate, cells[0], cells[1], changes[0], cells[2], cells[3], changes[1], seeds))
    header = (
        "model",
        "rate",
        "fitted, its own",
        "after `initialize_`",
        "change",
        "held back, its own",
        "after",
        "change",
        "seeds",
    )
    note = f"Least changes: {worst['fitted']:+.2f} dB of the fitted half, {worst['held_back']:+.2f} dB of the other."
    title = f"PSNR in dB after {STEPS} steps of {optimizer}; mean and standard deviation over the seeds"
    return Table(optimizer.lower(), title, header, tuple(rows), (note,) if rows else ())


def draw(records: list[dict[str, Any]]) -> None:
    """docs/models.png: what the scale of the output weights does to the first of the models."""
    figure, axes = plt.subplots(1, len(OPTIMIZERS), figsize=(9, 3.4), layout="constrained")
    for axis, optimizer in zip(axes, OPTIMIZERS, strict=True):
        of_first = [r for r in records if (r["model"], r["optimizer"]) == (MODELS[0].name, optimizer)]
        for part, words in (("fitted", "fitted half"), ("held_back", "held back")):
            by_scale = [[r[part] for r in of_first if r["start"] == scaled(scale)] for scale in SCALES]
            means = {scale: statistics.fmean(each) for scale, each in zip(SCALES, by_scale, strict=True) if each}
            (line,) = axis.plot(list(means), list(means.values()), "o-", label=words)
            own = [r[part] for r in of_first if r["start"] == "its own"]
            if own:
                axis.axhline(statistics.fmean(own), color=line.get_color(), linestyle=":", linewidth=1)
        axis.set(
            xscale="log", xlim=(0.008, 2.5), xlabel="output weights / matched ones", ylabel="PSNR, dB", title=optimizer
        )
        axis.legend(fontsize=8)
    figure.savefig(PAGE.with_suffix(".png"), dpi=90)


def write_page() -> None:
    """Write the tables between the page's marks `<!-- NAME -->` and `<!-- end -->`."""
    page, records = PAGE.read_text(), load_records()
    for made in (table(records, optimizer) for optimizer in OPTIMIZERS):
        pattern = rf"(<!-- {made.name} -->\n).*?(<!-- end -->)"
        page, count = re.subn(pattern, lambda m, t=made: f"{m[1]}{t.markdown()}{m[2]}", page, flags=re.DOTALL)
        assert count == 1, f"docs/models.md has no marks for the table {made.name}"
    PAGE.write_text(page)
    draw(records)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the page from what is stored, and run nothing")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, nargs="*", default=OPTIMIZERS, help="run these alone")
    options = parser.parse_args()
    if not options.page:
        run(options.optimizer)
    write_page()
