"""A shape from 20,000 points: python examples/signed_distance.py

What is known of a distance to a surface: it is 0 on the points, where its gradients are the normals; elsewhere its
gradient has length 1, and it is not 0. The first is a class, the second a plain function, and both are terms.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from skimage.measure import marching_cubes

import uniphase as up


class Surface(eqx.Module):
    points: jax.Array  # (points, 3)
    normals: jax.Array

    def draw(self, key, n):
        return jax.random.randint(key, (n,), 0, len(self.points))

    def loss(self, network, batch):
        slopes = up.gradient(network, self.points[batch])[:, 0]
        return 50 * jnp.square(network(self.points[batch])[:, 0]) + jnp.square(slopes - self.normals[batch]).mean(
            axis=1
        )

    def position_moments(self):
        return np.zeros(3), np.eye(3) / 3  # of the cube (-1, 1)³, where the distance is looked for


def elsewhere(network, key):
    places = jax.random.uniform(key, (1024, 3), minval=-1.0)
    steepness = jnp.linalg.norm(up.gradient(network, places)[:, 0], axis=-1)
    return jnp.square(steepness - 1).mean() + 0.3 * jnp.exp(-50 * jnp.abs(network(places))).mean()


def knot(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Points on a tube along a trefoil knot, and their normals."""
    rng, t = np.random.default_rng(0), np.linspace(0, 2 * np.pi, points, endpoint=False)
    line = np.stack([np.sin(t) + 2 * np.sin(2 * t), np.cos(t) - 2 * np.cos(2 * t), -np.sin(3 * t)], axis=1) / 4
    normals = np.cross(np.roll(line, 1, axis=0) - np.roll(line, -1, axis=0), rng.normal(size=(points, 3)))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return line + 0.14 * normals, normals


def main(points: int = 20000, steps: int = 300, size: int = 64, width: int = 96) -> float:
    """The mean distance of the points from the surface that was found."""
    places, normals = (jnp.asarray(array, jnp.float32) for array in knot(points))
    moments = up.prescribe_moments(mean=0.4, covariance=0.03, length_scale=[0.3] * 3)  # mostly outside, slopes near 1
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(0))
    network = up.fit(network, [Surface(places, normals), elsewhere], moments=moments, steps=steps).network

    corners, triangles, _, _ = marching_cubes(up.render(network, (size,) * 3)[..., 0], 0.0)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", subplot_kw={"projection": "3d"})
    axes[0].scatter(*places[::10].T, s=0.3, color="C0")
    axes[1].plot_trisurf(*corners.T[:2], triangles, corners[:, 2], color="0.8", shade=True)
    for ax, title in zip(axes, (f"{points:,} points", "where the field is 0"), strict=True):
        ax.set(title=title)
        ax.set_box_aspect((1, 1, 0.6), zoom=1.2)
        ax.axis("off")
    figure.savefig("signed_distance.png")
    off = float(jnp.abs(network(places)).mean())
    print(f"{points:,} points, {len(triangles):,} triangles; the points are off by {off:.4f} on average")
    return off


if __name__ == "__main__":
    main()
