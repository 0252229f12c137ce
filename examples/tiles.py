"""A texture that tiles, by a term of your own: python examples/tiles.py

A plain function of a network and a key is a term. This one asks that opposite edges agree, in value and in slope; it is
added to the values of the photo, and the fit repeats without a seam.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def edges_agree(network, key):
    along = jax.random.uniform(key, (256,), minval=-1.0)
    loss = 0.0
    for axis in (0, 1):
        edge = jnp.stack([along, along], axis=1)
        low, high = edge.at[:, axis].set(-1.0), edge.at[:, axis].set(1.0)
        loss += 50 * jnp.square(network(low) - network(high)).mean()
        loss += 0.02 * jnp.square(up.gradient(network, low) - up.gradient(network, high)).mean()
    return loss


def main(size: int = 96, steps: int = 500, width: int = 128) -> tuple[float, float]:
    """The jump at the seams, root mean square, before and after."""
    photo = up.load("gravel", size=size)
    moments = up.estimate_moments(photo)
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(0))
    network = up.fit(network, [up.Values(photo), edges_agree], moments=moments, steps=steps).network

    tile = up.render(network, photo.shape)
    pictures = {"the photo, four times": photo.values, "the fit, four times": tile}
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.7), layout="constrained")
    jumps = []
    for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
        jumps.append(float(np.sqrt(np.mean((picture[0] - picture[-1]) ** 2))))
        ax.imshow(np.tile(picture[..., 0], (2, 2)), cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("tiles.png")
    print(
        f"from the last row to the first, values jump by {jumps[0]:.3f} in the photo and by {jumps[1]:.3f} in the fit"
    )
    return jumps[0], jumps[1]


if __name__ == "__main__":
    main()
