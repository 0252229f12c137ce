"""Few points, and a term of your own: python examples/few_points.py

A plain function of a network and a key is a term. This one asks for a calm surface, by its Laplacian at random places,
and is added to the values at 400 points: what they leave open is no longer left to chance.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def truth(x: np.ndarray) -> np.ndarray:
    return np.sin(5 * x[..., 0] + 2 * np.cos(3 * x[..., 1])) * np.cos(4 * x[..., 1])


def calm(network, key):
    places = jax.random.uniform(key, (512, 2), minval=-1.0)
    return 1e-5 * jnp.square(up.laplacian(network, places)).mean()


def main(samples: int = 400, steps: int = 500, width: int = 64) -> tuple[float, float]:
    """The error between the points, root mean square, without the term and with it."""
    places = np.random.default_rng(0).uniform(-1, 1, (samples, 2))
    points = up.Points(places, truth(places))
    moments = up.prescribe_moments(covariance=0.3, length_scale=[0.15, 0.15])  # about what is expected
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=2), key=jax.random.key(0))
    centers = (np.arange(128) + 0.5) / 64 - 1
    pictures = {"truth": truth(np.stack(np.meshgrid(centers, centers, indexing="ij"), axis=-1))}
    for name, terms in {"points alone": [up.Values(points)], "and the term": [up.Values(points), calm]}.items():
        result = up.fit(network, terms, moments=moments, steps=steps)
        pictures[name] = up.render(result.network, (128, 128))[..., 0]

    errors = {name: float(np.sqrt(np.mean((found - pictures["truth"]) ** 2))) for name, found in pictures.items()}
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture, cmap="RdBu", vmin=-1.2, vmax=1.2, extent=(-1, 1, 1, -1))
        ax.plot(places[:, 1], places[:, 0], ".", color="0.4", markersize=2)
        ax.set(title=title if title == "truth" else f"{title}: off by {errors[title]:.3f}", xticks=[], yticks=[])
    figure.savefig("few_points.png")
    print(f"{samples} points: off by {errors['points alone']:.3f}, with the term by {errors['and the term']:.3f}")
    return errors["points alone"], errors["and the term"]


if __name__ == "__main__":
    main()
