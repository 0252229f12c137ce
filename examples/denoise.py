"""Stop before the noise is learned: python examples/denoise.py

With the level of the noise, `fit` takes it out of the moments, and ends when the error is as large as the noise. Beside
it stand two denoisers of scikit-image, and a SIREN (ω = 30, Adam) that is stopped at its best moment, which only an
oracle knows: it looks at the clean image.
"""

from dataclasses import replace

import jax
import matplotlib.pyplot as plt
import numpy as np
import optax
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle

import uniphase as up


def psnr(picture: np.ndarray, clean: up.Grid) -> float:
    error = picture.reshape(clean.values.shape).astype(np.float64) - clean.values
    return float(-10 * np.log10(np.mean(np.square(error))))


def siren_with_oracle(noisy: up.Grid, clean: up.Grid, seed: int, rounds: int) -> np.ndarray:
    """The picture with the best PSNR against the clean image over a fit, looked at every 10 steps."""
    blueprint = up.siren((2, noisy.out_size), width=256, depth=3)
    network = up.CoordinateMLP(blueprint, key=jax.random.key(seed))
    seen, optimizer = [noisy.values], optax.adam(1e-4)
    for i in range(rounds):  # Adam's averages start anew in every round, which changes little
        network = up.fit(network, noisy, optimizer=optimizer, steps=10, seed=seed + i).network
        seen.append(up.render(network, clean.shape, extents=clean.extents))
    return max(seen, key=lambda picture: psnr(picture, clean))


def main(
    name: str = "camera", size: int = 256, sigma: float = 25 / 255, seed: int = 0, rounds: int = 40
) -> dict[str, float]:
    """The PSNR against the clean image, in dB, by each method."""
    clean = up.load(name, size=size)
    noise = np.random.default_rng(seed).normal(0, sigma, clean.values.shape)
    noisy = replace(clean, values=(clean.values + noise).astype(np.float32))
    estimated = up.estimate_noise(noisy)
    result = up.fit(noisy, noise=estimated, seed=seed, progress=False)
    strength = {"h": 0.8 * sigma, "sigma": sigma, "patch_size": 5, "patch_distance": 6}  # as in scikit-image's gallery
    pictures = {
        "noisy": noisy.values,
        "uniphase": result.render(),
        "SIREN with an oracle": siren_with_oracle(noisy, clean, seed, rounds),
        "total variation": denoise_tv_chambolle(noisy.values, weight=0.1, channel_axis=-1),
        "non-local means": denoise_nl_means(noisy.values, channel_axis=-1, **strength),
    }
    found = {method: psnr(picture, clean) for method, picture in pictures.items()}
    figure, axes = plt.subplots(1, 5, figsize=(15, 3.3), layout="constrained")
    for ax, (method, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(np.clip(picture, 0, 1).reshape(clean.values.shape), cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{method}: {found[method]:.1f} dB", xticks=[], yticks=[])
    figure.savefig("denoise.png")
    print(f"{name}: noise {sigma:.4f}, estimated as {estimated:.4f}; {result.steps} steps ({result.stop})")
    for method, value in found.items():
        print(f"  {method:<22}{value:.2f} dB PSNR")
    return found


if __name__ == "__main__":
    for photo in ("camera", "astronaut"):
        main(photo)
