"""Fill in missing pixels: python examples/inpaint.py

A photo with half of its pixels missing at random, and one with text over it. Missing pixels are NaN: they are neither
fitted nor counted, and the network fills them in. Beside it stands scikit-image's biharmonic inpainting.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw
from skimage.restoration import inpaint_biharmonic

import uniphase as up


def random_holes(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).random(shape) < 0.5


def text_over(shape: tuple[int, ...]) -> np.ndarray:
    """Lines of text from top to bottom."""
    page = Image.new("L", (shape[1], shape[0]))
    pen = ImageDraw.Draw(page)
    for y in range(2, shape[0], 16):
        pen.text((2, y), "the quick brown fox jumps over the lazy dog " * 3, fill=255)
    return np.asarray(page) > 0


def psnr_of_missing(picture: np.ndarray, clean: up.Grid, missing: np.ndarray) -> float:
    error = (picture.reshape(clean.values.shape) - clean.values)[missing]
    return float(-10 * np.log10(np.mean(np.square(error, dtype=np.float64))))


def main(name: str = "camera", size: int = 256, seed: int = 0, steps: int | None = None) -> dict[str, dict[str, float]]:
    """The PSNR of the missing pixels, in dB, by each method."""
    clean, found = up.load(name, size=size), {}
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
    for row, holes in zip(axes, (random_holes, text_over), strict=True):
        missing = holes(clean.shape)
        known = replace(clean, values=np.where(missing[..., None], np.nan, clean.values))
        result = up.fit(known, seed=seed, steps=steps, progress=False)
        biharmonic = inpaint_biharmonic(clean.values, missing, channel_axis=-1)
        pictures = {"uniphase": result.render(), "biharmonic": biharmonic}
        found[holes.__name__] = {by: psnr_of_missing(picture, clean, missing) for by, picture in pictures.items()}
        for ax, (title, picture) in zip(row, {"known": known.values, **pictures}.items(), strict=True):
            ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
            ax.set(title=title, xticks=[], yticks=[])
        numbers = ", ".join(f"{method} {psnr:.2f} dB" for method, psnr in found[holes.__name__].items())
        print(f"{name}, {holes.__name__.replace('_', ' ')} ({missing.mean():.0%} missing): {numbers}")
    figure.savefig("inpaint.png")
    return found


if __name__ == "__main__":
    main()
