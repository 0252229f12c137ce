"""An image from its X-rays: python examples/tomography.py

A reading of a scanner is the mean of the field along a ray, and `Averages(readings, over=Rays(starts, ends))` fits a
network to the readings. Beside it stand filtered back-projection and SART, both of scikit-image.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from skimage.data import shepp_logan_phantom
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from skimage.transform import iradon, iradon_sart, radon, resize

import uniphase as up


def rays_of(angles: np.ndarray, size: int) -> up.Rays:
    """The rays of `skimage.transform.radon`, detector by detector, in the domain (-1, 1) of the image."""
    turn, middle = np.deg2rad(angles), (size // 2 + 0.5) * 2 / size - 1  # the pixel that it rotates about
    offset = ((np.arange(size) - size // 2) * 2 / size)[:, None]  # of each detector, from the axis of rotation
    half = np.sqrt(1.1**2 - offset**2)  # beyond the object, so that no ray has the length zero
    across = np.stack([-offset * np.sin(turn), offset * np.cos(turn)], axis=-1)
    along = half[..., None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    ends = (middle + across)[..., None, :] + np.stack([-along, along], axis=-2)
    return up.Rays(*ends.reshape(-1, 2, 2).swapaxes(0, 1))


def main(
    size: int = 128, views: int = 30, seed: int = 0, steps: int = 1500, width: int = 128, draws: int = 128
) -> dict[str, tuple[float, float]]:
    """PSNR in dB and SSIM of each reconstruction."""
    inside = np.hypot(*np.indices((size, size)) - size // 2) < size // 2  # a trace of the phantom is outside
    phantom = inside * np.asarray(resize(shepp_logan_phantom(), (size, size), anti_aliasing=True))
    angles = np.linspace(0, 180, views, endpoint=False)
    sinogram = radon(phantom, angles)  # (detectors, angles): sums along rays, in pixels
    rays = rays_of(angles, size)
    means = sinogram.ravel() / (rays.lengths * size / 2)

    back_projection = iradon(sinogram, angles)
    moments = up.estimate_moments(up.image(iradon(sinogram, angles, filter_name="hann")))  # a first look is enough
    network = up.CoordinateMLP(up.uniform_phase(moments, width=width, depth=3), key=jax.random.key(seed))
    result = up.fit(network, up.Averages(means, over=rays, draws=draws), moments=moments, steps=steps, seed=seed)

    sart = iradon_sart(sinogram, angles)
    for _ in range(2):
        sart = iradon_sart(sinogram, angles, image=sart)
    pictures = {
        "filtered back-projection": back_projection,
        "SART, 3 rounds": sart,
        "uniphase": up.render(result.network, (size, size), average=True)[..., 0],
    }
    found = {}
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
    axes[0].imshow(sinogram, cmap="gray", aspect="auto")
    axes[0].set(title=f"readings of {views} views", xticks=[], yticks=[])
    for ax, (method, picture) in zip(axes[1:], pictures.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=0.5)
        ax.set(title=method, xticks=[], yticks=[])
        ssim = np.asarray(structural_similarity(phantom, picture, data_range=1.0))
        found[method] = (float(peak_signal_noise_ratio(phantom, picture, data_range=1.0)), float(ssim))
        print(f"{views} views, {method:<26}{found[method][0]:.2f} dB PSNR, SSIM {found[method][1]:.3f}")
    figure.savefig("tomography.png")
    return found


if __name__ == "__main__":
    for count in (30, 60):
        main(views=count)
