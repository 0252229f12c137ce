"""What the doctor's findings do to training: the tables of docs/doctor.md. `python benchmarks/doctor.py` runs what is
missing; `make docs` writes the page.

Records are appended to benchmarks/doctor.jsonl one by one; what is there is not run again, so the program can be
stopped at any time. Every training has 300 full-batch steps of Adam on half the samples of a signal; the other half is
held back. There are three kinds:

- `fault`: one thing about a uniform-phase network is changed, by a factor or so, and nothing else. For the camera image
    at 64 × 64, as the next.
- `model`: a class of networks as it is published, and after what the doctor recommends for it.
- `sound`: the same for SIREN and three recordings, in two units of time: what its ω is right for is a matter of units.

What the doctor says of each before training is recorded as well, in lines of the kind `verdict`. After a change of the
doctor, delete these lines and run it again.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import uniphase as up
import uniphase.torch as upt

RECORDS = Path(__file__).resolve().parent / "doctor.jsonl"
SEEDS, STEPS, WIDTH, DEPTH = range(3), 300, 32, 2
FAULT_RATE, SIREN_RATE = 1e-3, 1e-4
SOUND_SAMPLES, SOUND_WIDTH = 8192, 64


class Task(NamedTuple):
    """A training.

    - `kind`, `name`, `variant`, `seed`: what is trained.
    - `make`: gives the network, from the training half of the signal.
    - `rate`: of Adam.
    - `signal`: what the network is for.
    """

    kind: str
    name: str
    variant: str
    seed: int
    make: Callable[[up.Points], nn.Module]
    rate: float
    signal: Callable[[], up.Field] = lambda: up.load("camera", size=64)

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.kind, self.name, self.variant, self.seed


class Layered(nn.Module):
    """Linear layers with one activation, of ω times its argument; the first may be sines and cosines of fixed waves."""

    def __init__(
        self,
        activation: Callable[[Tensor], Tensor],
        omegas: tuple[float, float],
        features: float = 0.0,
        *,
        in_size: int = 2,
        width: int = WIDTH,
    ):
        super().__init__()
        self.activation, self.omegas = activation, omegas
        self.waves: Tensor | None
        self.register_buffer("waves", torch.randn(width // 2, in_size) * features if features else None)
        sizes = [width if features else in_size, *[width] * (DEPTH + 1), 1]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])

    def forward(self, x: Tensor) -> Tensor:
        if self.waves is not None:
            z = 2 * math.pi * x @ self.waves.T
            x = torch.cat([torch.sin(z), torch.cos(z)], dim=-1)
        for i, layer in enumerate(self.layers[:-1]):
            x = self.activation(self.omegas[min(i, 1)] * layer(x))
        return self.layers[-1](x)

    @property
    def linears(self) -> list[nn.Linear]:
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]


def _uniform(
    model: Layered, bounds: Callable[[int, int], float], biases: Callable[[int, int], float | None]
) -> Layered:
    """Draw every weight and bias from U(±bound), with bounds by the number of the layer and its inputs."""
    for i, layer in enumerate(model.linears):
        nn.init.uniform_(layer.weight, -bounds(i, layer.in_features), bounds(i, layer.in_features))
        bound = biases(i, layer.in_features)
        if bound is not None:
            nn.init.uniform_(layer.bias, -bound, bound)
    return model


def _siren(omega: float, hidden: float, **sizes: int) -> Layered:
    """As in SIREN's notebook: U(±1/n) first, then U(±√(6/n)/ω), with the biases of PyTorch."""
    model = Layered(torch.sin, (omega, hidden), **sizes)
    return _uniform(model, lambda i, n: 1 / n if i == 0 else math.sqrt(6 / n) / hidden, lambda i, n: None)


def _siren_pytorch() -> Layered:
    """U(±√(6/n)/ω) for hidden weights and for biases, ω = 30 in the first layer and 1 in the others."""
    model = Layered(torch.sin, (30.0, 1.0))
    bound = lambda i, n: 1 / n if i == 0 else math.sqrt(6 / n)  # noqa: E731
    return _uniform(model, bound, bound)


def _all_alike() -> Layered:
    """U(±√(6/n)/ω) for all layers, the first among them."""
    return _uniform(Layered(torch.sin, (30.0, 30.0)), lambda i, n: math.sqrt(6 / n) / 30, lambda i, n: None)


def _glorot(activation: Callable[[Tensor], Tensor]) -> Layered:
    """Glorot's normal distribution, and biases of zero, as in DeepXDE."""
    model = Layered(activation, (1.0, 1.0))
    for layer in model.linears:
        nn.init.xavier_normal_(layer.weight)
        nn.init.zeros_(layer.bias)
    return model


MODELS: dict[str, tuple[Callable[[], Layered], float]] = {
    "SIREN, official notebook (ω = 30)": (lambda: _siren(30.0, 30.0), SIREN_RATE),
    "SIREN as in COIN (ω = 30)": (lambda: _siren(30.0, 30.0), 2e-4),
    "SIREN as in WIRE's comparison (ω = 10)": (lambda: _siren(10.0, 10.0), 1e-3),
    "siren-pytorch (ω = 30, then 1)": (_siren_pytorch, 1e-4),
    "SIREN, first layer like the others": (_all_alike, 1e-4),
    "sine, Glorot, as in DeepXDE": (lambda: _glorot(torch.sin), 1e-3),
    "sine, PyTorch's default, as in Wisp": (lambda: Layered(torch.sin, (1.0, 1.0)), 1e-3),
    "tanh, Glorot, as in PINNs": (lambda: _glorot(torch.tanh), 1e-3),
    "ReLU, PyTorch's default": (lambda: Layered(torch.relu, (1.0, 1.0)), 1e-3),
    "Fourier features and ReLU (σ = 10)": (lambda: Layered(torch.relu, (1.0, 1.0), features=10.0), 1e-3),
}


def follow(model: nn.Module, field: up.Field) -> nn.Module:
    """The model after what the doctor recommends for it, or as it is if that is nothing."""
    recommended = upt.diagnose(model, field).fix
    if recommended is None:
        return model
    scope: dict[str, Any] = {"uniphase": up, "model": model, "field": field, "moments": up.estimate_moments(field)}
    exec("import uniphase.torch\n" + recommended, scope)
    return scope["model"]


def healthy(field: up.Field) -> upt.CoordinateMLP:
    """A uniform-phase network that starts near the mean."""
    return upt.CoordinateMLP(up.uniform_phase(up.estimate_moments(field), width=WIDTH, depth=DEPTH, output_scale=0.05))


def _scaled(layers: slice, factor: float, bias: float = 1.0) -> Callable[[up.Field], nn.Module]:
    def make(field: up.Field) -> nn.Module:
        network = healthy(field)
        with torch.no_grad():
            for layer in list(network.layers)[layers]:
                for name, by in (("weight", factor), ("bias", bias)):
                    array = getattr(layer, name)
                    if array is not None:
                        array.mul_(by)
        return network

    return make


def _offset(deviations: float) -> Callable[[up.Field], nn.Module]:
    def make(field: up.Field) -> nn.Module:
        network = healthy(field)
        with torch.no_grad():
            getattr(network.layers[-1], "bias").add_(deviations * float(field.values.std()))  # noqa: B009
        return network

    return make


FAULTS: dict[str, dict[str, Callable[[up.Field], nn.Module]]] = {
    "none": {"": _scaled(slice(0, 0), 1.0)},
    "output weights": {f"{20 * f:g}×": _scaled(slice(-1, None), 20 * f) for f in (1, 5, 0.001, 2)},
    "biases": {f"{f:g}×": _scaled(slice(0, -1), 1.0, f) for f in (0.0,)},
    "input weights": {f"{f:g}×": _scaled(slice(0, 1), f) for f in (0.25, 4, 0.1, 0.5, 2)},
    "hidden weights": {f"{f:g}×": _scaled(slice(1, -1), f) for f in (0.5, 2, 0.25)},
    "output bias": {f"{k:g} standard deviations": _offset(k) for k in (5,)},
}


def _recording(name: str, units: float) -> up.Points:
    """A part of a recording, with a second as so many units of time."""
    import signals

    make, first = {
        "Bach's cello": (lambda: (up.load("bach"), None), 100_000),
        "house music": (lambda: signals.packaged_sound("house_lo.wav"), 20_000),
        "speech": (lambda: signals.speech("She had your dark suit in greasy wash water all year.", "en-us"), 10_000),
    }[name]
    field, _ = make()
    times = units / field.rate * (np.arange(SOUND_SAMPLES) - SOUND_SAMPLES / 2)
    return up.Points(times[:, None], field.flat_values()[first : first + SOUND_SAMPLES])


SOUNDS = ("Bach's cello", "house music", "speech")
# Units of time a second: in the first the frequencies of SIREN's first layer are too low, in the second nearly right.
UNITS = (10.0, 100.0)


def _sound_siren() -> Layered:
    return _siren(30.0, 30.0, in_size=1, width=SOUND_WIDTH)


def tasks() -> Iterator[Task]:
    """Everything to train."""
    for seed in SEEDS:  # so that there is something of everything first
        for name, variants in FAULTS.items():
            for variant, make in variants.items():
                yield Task("fault", name, variant, seed, make, FAULT_RATE)
        for name, (make, rate) in MODELS.items():
            yield Task("model", name, "as it is", seed, lambda field, make=make: make(), rate)
            yield Task("model", name, "as recommended", seed, lambda field, make=make: follow(make(), field), rate)
        for sound, units in itertools.product(SOUNDS, UNITS):
            name, signal = f"{sound}, {units:g} units a second", functools.partial(_recording, sound, units)
            yield Task("sound", name, "as it is", seed, lambda field: _sound_siren(), SIREN_RATE, signal)
            followed = lambda field: follow(_sound_siren(), field)  # noqa: E731
            yield Task("sound", name, "as recommended", seed, followed, SIREN_RATE, signal)


@functools.lru_cache(maxsize=4)
def halves(signal: Callable[[], up.Field]) -> tuple[up.Points, up.Points]:
    """A signal in two halves of random samples, to be trained on and held back."""
    field = signal()
    order = np.random.default_rng(0).permutation(field.samples)
    positions, values = field.coordinates().astype(np.float32), field.values.reshape(-1, 1).astype(np.float32)
    return tuple(up.Points(positions[part], values[part]) for part in np.array_split(order, 2))  # pyright: ignore


def train(model: nn.Module, train_half: up.Points, held_back: up.Points, rate: float) -> dict[str, float]:
    """The quality on both halves after training, in dB."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    x, y = _tensor(train_half.positions), _tensor(train_half.values)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
    return {"train": _decibels(model, train_half), "held out": _decibels(model, held_back)}


@torch.no_grad()
def _decibels(model: nn.Module, half: up.Points) -> float:
    """The PSNR of an image, whose gray values lie between 0 and 1, and the SNR of a sound."""
    unit = 1.0 if half.in_size == 2 else float(half.values.var())
    return 10 * math.log10(unit / float((model(_tensor(half.positions)) - _tensor(half.values)).square().mean()))


def _tensor(array: np.ndarray) -> Tensor:
    return torch.tensor(array, dtype=torch.float32)


def verdict(task: Task, field: up.Points) -> dict[str, Any]:
    """What the doctor finds wrong before the training."""
    report = upt.diagnose(_made(task, field), field)
    found = {each.item: each.severity for each in report.findings if each.severity != "ok"}
    return {"found": found, "fix": report.fix}


def load_records() -> list[dict[str, Any]]:
    """What was measured so far."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def main() -> None:
    """Run what is missing."""
    torch.set_num_threads(1)
    done = {(record["kind"], record["name"], record["variant"], record["seed"]) for record in load_records()}
    for task in tasks():
        jobs: dict[Any, Callable[[], dict[str, Any]]] = {task.key: lambda task=task: _trained(task)}
        if task.seed == 0:
            jobs[("verdict", *task.key[1:])] = lambda task=task: verdict(task, halves(task.signal)[0])
        for key, job in jobs.items():
            if key not in done:
                record = dict(zip(("kind", "name", "variant", "seed"), key, strict=True)) | job()
                with RECORDS.open("a") as file:
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                print(json.dumps(record, ensure_ascii=False), flush=True)


def _trained(task: Task) -> dict[str, float]:
    train_half, held_back = halves(task.signal)
    return train(_made(task, train_half), train_half, held_back, task.rate)


def _made(task: Task, field: up.Points) -> nn.Module:
    torch.manual_seed(task.seed)
    return task.make(field)


if __name__ == "__main__":
    main()
