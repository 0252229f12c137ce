"""Outliers, by a loss of your own: python examples/outliers.py

A tenth of the pixels are black or white by mistake, and it is not known which. A squared error chases them; the
absolute error, written as a function of ten lines, lets most of them go.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def main(size: int = 96, steps: int = 300, width: int = 48) -> tuple[float, float]:
    """The PSNR against the clean photo by the squared and by the absolute error, in dB."""
    clean, rng = up.load("astronaut", size=size), np.random.default_rng(0)
    hit = rng.random(clean.shape) < 0.1
    spoiled = replace(clean, values=np.where(hit[..., None], rng.integers(0, 2, (*clean.shape, 1)), clean.values))
    positions, values = jnp.asarray(spoiled.coordinates(), jnp.float32), jnp.asarray(spoiled.flat_values(), jnp.float32)

    def absolute_error(network, key):
        batch = jax.random.randint(key, (4096,), 0, len(positions))
        return jnp.abs(network(positions[batch]) - values[batch]).mean() / values.std()

    moments = up.estimate_moments(clean)
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(0))
    panels = {"photo with outliers": spoiled.values}
    for name, term in {"squared error": up.Values(spoiled), "absolute error": absolute_error}.items():
        result = up.fit(network, term, moments=moments, domain=clean.extents, steps=steps)
        panels[name] = up.render(result.network, clean.shape)
    found = [up.evaluate(picture, clean).psnr_db for picture in panels.values()]

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for ax, (title, picture), psnr in zip(axes, panels.items(), found, strict=True):
        ax.imshow(picture.clip(0, 1))
        ax.set(title=f"{title}: {psnr:.1f} dB", xticks=[], yticks=[])
    figure.savefig("outliers.png")
    print(f"PSNR: {found[0]:.2f} dB before, {found[1]:.2f} by the squared error, {found[2]:.2f} by the absolute error")
    return found[1], found[2]


if __name__ == "__main__":
    main()
