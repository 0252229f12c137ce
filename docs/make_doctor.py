"""Write docs/doctor.md and docs/doctor.png from the doctor's own reports: `make docs`."""

import sys
from pathlib import Path

import jax

import uniphase as up
from uniphase.plots.diagnosis import write_diagnosis

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
import doctor  # noqa: E402  # pyright: ignore[reportMissingImports]

TOP = """# The doctor

<!-- Written by docs/make_doctor.py; change it there and run `make docs`. -->

`uniphase.diagnose` examines a network before training and reports, for your signal, what is right and what is wrong
with its initialization.

```python
import jax
import uniphase as up

field = up.load("camera", size=64)
network = up.CoordinateMLP(up.sm20((2, 1), width=32, depth=3, omega=30.0), key=jax.random.key(0))
report = up.diagnose(network, field)
print(report)  # the table and the verdicts; report.to_dict() for programs
report.healthy  # False
```

It accepts what `uniphase.initialize` does: modules of Equinox and Flax nnx, plain functions, and pairs
`(apply, params)` of Flax linen and Haiku ([how](initialization.md#in-flax-haiku-and-equinox)). The model's own
program is followed, and what was read is compared with it layer by layer. For a model that cannot be read, list its
layers:

```python
import jax.numpy as jnp
import numpy as np
import uniphase as up

rng = np.random.default_rng(0)
w, b, v = rng.normal(size=(64, 2)), rng.uniform(-1, 1, 64), rng.normal(size=(1, 64)) / 8


def model(x):
    return v @ jnp.sin(10 * (w @ x + b))


field = up.load("camera", size=64)
print(up.diagnose(model, field))
layers = {"inner": (w, b, "sine", 10.0), "outer": (v, None, "linear", 1.0)}
print(up.diagnose(model, field, layers=layers))  # the same
```

In PyTorch, `uniphase.torch.diagnose(model, field)` accepts the same models as `uniphase.torch.initialize_`. What it
recommends can be run as it stands: `initialize_` for a model of sines, and for others a network of sines of the same
size:

```python
import torch
import uniphase as up
import uniphase.torch as upt


class Sine(torch.nn.Module):
    def forward(self, x):
        return torch.sin(30 * x)


model = torch.nn.Sequential(torch.nn.Linear(2, 64), Sine(), torch.nn.Linear(64, 64), Sine(), torch.nn.Linear(64, 1))
field = up.load("camera", size=64)
report = upt.diagnose(model, field)
print(report)
moments = up.estimate_moments(field)
exec(report.fix, {"uniphase": up, "model": model, "moments": moments})  # uniphase.torch.initialize_(model, moments)
```

On the command
line, `uniphase diagnose photo.jpg --scheme sm20` examines a new network and `uniphase diagnose photo.jpg --network
photo.uniphase` one from a file; `-o report.png` draws the report, and `--json` prints it for programs.

## What is measured, and what is normal

All numbers are averages over up to 1,024 samples of the field. In the table:

- **std of z**: the preactivations ω(Wx + b).
- **|E eⁱᶻ|**, **|E e²ⁱᶻ|**: how far the phases of the neurons at a position are from uniform: 0 if they are
  uniform, 1 if all are equal.
- **s² of layer**, **s² from first**: the mean squared singular value of the Jacobian of the layer, and of all layers
  from the output of the first to this one. Between hidden layers of uniform-phase networks both are 1 on average.
- **‖∂W‖**, **‖∂b‖**: norms of the gradients of the mean squared error.

The theory predicts averages over random networks, and a single network deviates from them by chance. To find out by
how much, 24 uniform-phase networks of the same depth and width (256 at most) are drawn and measured on the same
field. A finding is *ok* if it lies within five standard deviations of these references, or differs by less than a
factor of 1.5. It is *bad* only from where training loses 2 dB on pixels that it did not see (below): frequencies or
slopes 4 times too low or 3 times too high, an output 2.5 times too wide or 4 standard deviations off, Jacobians that
grow 10 times or gradients that grow 4 times. Outputs that start small are never a fault, and bunched phases and
shrinking layers are at most a warning. The ranges are in `report.findings`, and drawn as gray bars in the figure; for
phases they follow from theory, without references.

One result may be surprising: the output of a correctly initialized network varies less over the domain than the
data. Averaged over random networks, its covariance equals that of the data; but in a deep network the outputs at
two distant positions are correlated (in the limit of infinite width, by ρ = 0 after the input layer and exp(ρ - 1)
after each hidden layer), so part of the variance is an offset common to the whole domain. Slopes relative to the
remaining spread are larger than the data's by the same factor. Both ratios are therefore ok at 1, at the values of
the references, and in between.

A network that leaves less than a quarter of the signal's variance is taken for trained. Its report says how well it
fits, and does not judge its weights as an initialization.
"""

TRAININGS = """## What the findings do to training

Printed from the records of `benchmarks/doctor.py`: {steps} full-batch steps of Adam on half the pixels of the camera
image at 64 × 64, by networks of {width} neurons and {depth} hidden layers; PSNR in dB on the other half, which is held
back, averaged over {seeds}. First, networks with one fault each (a rate of 0.001):

{faults}

Then ten classes of networks, by their published formulas and with their own learning rates, as they are and after what
the doctor recommends for them. Findings are those of the first seed:

{models}

Last, SIREN with ω = 30 and its rate of 0.0001, {sound_width} neurons wide, for {sound_samples} samples of recordings,
half of them held back; SNR in dB. What ω is right for depends on the units: in the first row of each, a second is 10
units of time, and in the second 100.

{sounds}

The fitted half tells whether a network can learn the recording. The other half does so only for the cello, which is
sampled far above its own frequencies: in the gaps that a random half leaves, the other two are not determined by what
is left, and a network that is too slow for the signal is no worse there than one that fits it.
"""

SECTIONS = [
    (
        "## A uniform-phase network on a photo",
        "Matched to the camera image at 128 × 128: no problems.",
        lambda photo, sound: (up.uniform_phase(up.estimate_moments(photo), width=64, depth=4), photo),
    ),
    (
        "## SIREN with ω₀ = 30 on the same photo",
        "The ω₀ that its authors chose for images suits this one. But the hidden layers (ω_h = 1) amplify: if\n"
        "preactivations have variance 1, the theory of CVP26 gives a factor of 1 + e⁻² = 1.135 per layer, and more as\n"
        "their variance settles below 1.",
        lambda photo, sound: (up.sm20((2, 1), width=64, depth=4, omega=30.0), photo),
    ),
    (
        "## SIREN with ω₀ = ω_h = 30 on sound",
        "Bach on [-100, 100]. With ω_h = 30 the biases are multiplied by 30 as well, which spreads the\n"
        "phases, so the hidden layers preserve scales. The input and output layers are not adapted to the signal.",
        lambda photo, sound: (up.sm20((1, 1), width=64, depth=4, omega=30.0, hidden_omega=30.0), sound),
    ),
    (
        "## A ReLU network on the photo",
        "He initialization keeps Jacobians and gradients stable, but nothing in it has the scale of the image.",
        lambda photo, sound: (up.relu((2, 1), width=64, depth=4), photo),
    ),
]


def trainings() -> str:
    """The tables of what was trained."""
    held: dict[tuple[str, str, str], list[float]] = {}
    fitted: dict[tuple[str, str, str], list[float]] = {}
    verdicts: dict[tuple[str, str], str] = {}
    for record in doctor.load_records():
        if record["kind"] == "verdict":
            found = ", ".join(f"{item} ({severity})" for item, severity in record["found"].items())
            verdicts[record["name"], record["variant"]] = found or "nothing"
        else:
            key = (record["kind"], record["name"], record["variant"])
            held.setdefault(key, []).append(record["held out"])
            fitted.setdefault(key, []).append(record["train"])
    best = _mean(held["fault", "none", ""])
    faults = ["| fault | findings | held out | change |", "|---|---|---|---|", f"| none | nothing | {best:.1f} | |"]
    models = ["| network | findings | as it is | as recommended | change |", "|---|---|---|---|---|"]
    sounds = [
        "| recording | findings | fitted | as recommended | held out | as recommended |",
        "|---|---|---|---|---|---|",
    ]
    for (kind, name, variant), values in sorted(held.items(), key=lambda entry: entry[0]):
        words, mean = verdicts.get((name, variant), "not run"), _mean(values)
        if kind == "fault" and variant:
            faults.append(f"| {name} {variant} | {words} | {mean:.1f} | {mean - best:+.1f} |")
        if kind == "model" and variant == "as it is":
            after = held.get((kind, name, "as recommended"))
            cells = ("not run", "") if after is None else (f"{_mean(after):.1f}", f"{_mean(after) - mean:+.1f}")
            models.append(f"| {name} | {words} | {mean:.1f} | {cells[0]} | {cells[1]} |")
        if kind == "sound" and variant == "as it is":
            keys = (kind, name, variant), (kind, name, "as recommended")
            cells = [f"{_mean(found[key]):.1f}" for found in (fitted, held) for key in keys]
            sounds.append(f"| {' | '.join((name, words, *cells))} |")
    counts = {len(values) for values in held.values()}
    seeds = f"{min(counts)} to {max(counts)} seeds" if len(counts) > 1 else f"{max(counts)} seeds"
    sizes = {"steps": doctor.STEPS, "width": doctor.WIDTH, "depth": doctor.DEPTH, "seeds": seeds}
    sizes |= {"sound_width": doctor.SOUND_WIDTH, "sound_samples": f"{doctor.SOUND_SAMPLES:,}"}
    tables = {"faults": faults, "models": models, "sounds": sounds}
    return TRAININGS.format(**{name: "\n".join(rows) for name, rows in tables.items()}, **sizes)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def reports() -> list[up.Report]:
    """The four reports of the page."""
    signals = up.load("camera", size=128), up.load("bach")
    found = []
    for _, _, case in SECTIONS:
        blueprint, field = case(*signals)
        found.append(up.diagnose(up.CoordinateMLP(blueprint, key=jax.random.key(0)), field))
    return found


def page(found: list[up.Report]) -> str:
    """The page as it should be."""
    parts = [TOP, trainings()]
    for number, ((title, words, _), report) in enumerate(zip(SECTIONS, found, strict=True)):
        parts.append(f"{title}\n\n{words}\n\n```\n{report}\n```\n")
        if number == 1:
            parts.append("![Phases, Jacobians, gradients and findings of this network](doctor.png)\n")
    return "\n".join(parts)


if __name__ == "__main__":
    found = reports()
    (HERE / "doctor.md").write_text(page(found), encoding="utf-8")
    write_diagnosis(HERE / "doctor.png", found[1], "SIREN with ω₀ = 30 for the camera image")
