"""What is wrong with my network? python examples/diagnose_model.py

The doctor looks at a network before it is trained, compares it with the signal and with networks that are known to be
right, and says in words what it finds, and what to do.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def main(size: int = 64, width: int = 64, depth: int = 4) -> tuple[up.Report, up.Report]:
    photo = up.load("camera", size=size)
    blueprints = {
        "SIREN, ω₀ = 200": up.sm20((2, 1), width=width, depth=depth, omega=200.0),
        "uniform-phase": up.uniform_phase(up.estimate_moments(photo), width=width, depth=depth),
    }
    networks = {name: up.CoordinateMLP(blueprint, key=jax.random.key(0)) for name, blueprint in blueprints.items()}
    sick, well = (up.diagnose(network, photo) for network in networks.values())
    print(sick)

    untrained = {name: up.render(network, (256, 256)) for name, network in networks.items()}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for ax, (title, picture) in zip(axes, {"photo": photo.values, **untrained}.items(), strict=True):
        low, high = np.quantile(picture, [0.01, 0.99])
        ax.imshow(picture, cmap="gray", vmin=low, vmax=high)
        ax.set(title=title if title == "photo" else f"{title}, untrained", xticks=[], yticks=[])
    figure.savefig("diagnose_model.png")
    return sick, well


if __name__ == "__main__":
    main()
