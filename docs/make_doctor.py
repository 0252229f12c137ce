"""Write docs/doctor.md and docs/doctor.png from the doctor's own reports: `make docs`."""

from pathlib import Path

import jax

import uniphase as up
from uniphase.plots.diagnosis import write_diagnosis

HERE = Path(__file__).parent

TOP = """# The doctor

<!-- Written by docs/make_doctor.py; change it there and run `make docs`. -->

`uniphase.diagnose` looks at a network before it is trained and says, for your signal, what will go well and what will
not.

```python
import jax
import uniphase as up

field = up.load("camera", size=64)
network = up.CoordinateMLP(up.sm20((2, 1), width=32, depth=3, omega=30.0), key=jax.random.key(0))
report = up.diagnose(network, field)
print(report)  # the table and the verdicts; report.to_dict() for programs
report.healthy  # False
```

It reads a `CoordinateMLP`, an `eqx.nn.MLP` and an `eqx.nn.Sequential` of linear layers and activations as they are;
an ω inside an activation (`lambda z: jnp.sin(30 * z)`) is found by its values. For any other function, say what its
layers are:

```python
import jax.numpy as jnp
import numpy as np
import uniphase as up

rng = np.random.default_rng(0)
w, b, v = rng.normal(size=(64, 2)), rng.uniform(-1, 1, 64), rng.normal(size=(1, 64)) / 8


def model(x):
    return v @ jnp.sin(10 * (w @ x + b))


layers = {"inner": (w, b, "sine", 10.0), "outer": (v, None, "linear", 1.0)}
print(up.diagnose(model, up.load("camera", size=64), layers=layers))
```

In PyTorch, `uniphase.torch.diagnose(model, field)` reads models as `uniphase.torch.initialize_` does, which is also the
call that it recommends:

```python
import torch
import uniphase as up
import uniphase.torch as upt


class Sine(torch.nn.Module):
    def forward(self, x):
        return torch.sin(30 * x)


model = torch.nn.Sequential(torch.nn.Linear(2, 64), Sine(), torch.nn.Linear(64, 64), Sine(), torch.nn.Linear(64, 1))
field = up.load("camera", size=64)
print(upt.diagnose(model, field))
upt.initialize_(model, up.estimate_moments(field))  # what it recommends
```

The reading is checked: the layers must give the values of the model at some positions, or you are told so. From the
command line, `uniphase diagnose photo.jpg --scheme sm20` examines a new network and `uniphase diagnose photo.jpg
--network photo.uniphase` one from a file; `-o report.png` draws the report, `--json` prints it for programs.

## What is measured, and what is normal

All numbers are averages over up to 1,024 samples of the field. In the table:

- **std of z**: the preactivations ω(Wx + b).
- **|E eⁱᶻ|**, **|E e²ⁱᶻ|**: how far phases are from uniform, over the neurons at a position: 0 for uniform, 1 for all
  equal.
- **s² of layer**, **s² from first**: the mean squared singular value of the Jacobian of the layer, and of all layers
  from the output of the first to this one. Between hidden layers of uniform-phase networks both are 1 on average.
- **‖∂W‖**, **‖∂b‖**: norms of the gradients of the mean squared error.

The theory gives averages over the random draw of a network, and one network deviates from them by chance. How much is
not guessed: 24 uniform-phase networks of the same depth and of the same width (256 at most) are drawn and measured on
the same field. A finding is *ok* within five standard deviations of theirs, and where it differs by less than a
factor of 1.5, which makes no difference in training; it is *bad* beyond a factor of 4. The ranges are in
`report.findings`, and are the gray bars of the figure; for phases they follow from theory, without references.

One thing surprises: the output of a right network varies less over the domain than the data do. Over the draws its
covariance equals that of the data; but in a deep network the outputs at two distant positions are correlated (for
great width by ρ = 0 after the input layer, and exp(ρ - 1) after each hidden layer), so that a part of the variance is
an offset which the whole domain shares. It makes slopes per spread larger than the data's by as much. So both ratios
are right where the references have them, at 1, and in between.

A trained network can be examined as well, but its ranges are those of a network at the start.
"""

SECTIONS = [
    (
        "## A uniform-phase network on a photo",
        "Matched to the camera image at 128 × 128: nothing to find.",
        lambda photo, sound: (up.uniform_phase(up.estimate_moments(photo), width=64, depth=4), photo),
    ),
    (
        "## SIREN with ω₀ = 30 on the same photo",
        "The value that its authors found for images fits this one. But the hidden layers (ω_h = 1) amplify: while\n"
        "preactivations have the variance 1, the theory of CVP26 gives 1 + e⁻² = 1.135 a layer, and more as they\n"
        "settle below it.",
        lambda photo, sound: (up.sm20((2, 1), width=64, depth=4, omega=30.0), photo),
    ),
    (
        "## SIREN with ω₀ = ω_h = 30 on sound",
        "Bach's recording on [-100, 100]. With ω_h = 30 the biases, too, count thirty times, and spread the phases;\n"
        "so the hidden layers keep their size. Input and output know nothing of the signal.",
        lambda photo, sound: (up.sm20((1, 1), width=64, depth=4, omega=30.0, hidden_omega=30.0), sound),
    ),
    (
        "## A ReLU network on the photo",
        "He's weights keep Jacobians and gradients in order, but nothing in the network has the scale of the picture.",
        lambda photo, sound: (up.relu((2, 1), width=64, depth=4), photo),
    ),
]


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
    parts = [TOP]
    for number, ((title, words, _), report) in enumerate(zip(SECTIONS, found, strict=True)):
        parts.append(f"{title}\n\n{words}\n\n```\n{report}\n```\n")
        if number == 1:
            parts.append("![Phases, Jacobians, gradients and findings of this network](doctor.png)\n")
    return "\n".join(parts)


if __name__ == "__main__":
    found = reports()
    (HERE / "doctor.md").write_text(page(found), encoding="utf-8")
    write_diagnosis(HERE / "doctor.png", found[1], "SIREN with ω₀ = 30 for the camera image")
