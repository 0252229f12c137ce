"""An image from its gradients: python examples/from_gradients.py

A term is something known about a field; here, its slopes. The network never sees a pixel, and yet the photo comes out,
up to the mean, of which slopes know nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


class Slopes(eqx.Module):
    positions: jax.Array  # (samples, 2)
    slopes: jax.Array  # (samples, 1, 2)

    def draw(self, key, n):
        return jax.random.randint(key, (n,), 0, len(self.positions))

    def loss(self, network, batch):
        error = up.gradient(network, self.positions[batch]) - self.slopes[batch]
        return jnp.square(error).mean(axis=(1, 2)) / jnp.square(self.slopes).mean()

    def position_moments(self):
        return self.positions.mean(axis=0), jnp.cov(self.positions.T)


def main(size: int = 64, steps: int = 600, width: int = 128) -> float:
    photo = up.load("camera", size=size)
    slopes = np.stack(list(np.gradient(photo.values[..., 0], 2 / size)), axis=-1).reshape(-1, 1, 2)
    term = Slopes(jnp.asarray(photo.coordinates(), jnp.float32), jnp.asarray(slopes, jnp.float32))
    moments = up.estimate_moments(photo)
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(0))
    network = up.fit(network, term, moments=moments, steps=steps).network

    picture = up.render(network, photo.shape)
    picture += photo.values.mean() - picture.mean()
    psnr = up.evaluate(picture, photo).psnr_db
    steep = np.linalg.norm(slopes, axis=-1).reshape(size, size)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    panels = {
        "all that was known": steep / np.quantile(steep, 0.98),
        f"{psnr:.1f} dB PSNR": picture,
        "photo": photo.values,
    }
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        ax.imshow(panel, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("from_gradients.png")
    print(f"from its gradients alone: {psnr:.2f} dB PSNR after {steps} steps")
    return psnr


if __name__ == "__main__":
    main()
