"""A photo of 16 bits: python examples/sixteen_bits.py

An underexposed photo uses few of its levels: at 8 bits they show as steps when it is brightened. Files of 16 bits
keep their precision on the way in, and the network is a smooth function on the way out.
"""

import matplotlib.pyplot as plt
import numpy as np
import tifffile

import uniphase as up


def main(size: int = 96, steps: int = 400, width: int = 96, exposure: float = 0.03) -> float:
    scene = exposure * up.load("camera", size=size).values[..., 0]
    tifffile.imwrite("dark.tif", np.round(65535 * scene).astype(np.uint16))
    dark = up.load("dark.tif")
    result = up.fit(dark, width=width, steps=steps)

    panels = {
        "as exposed": scene,
        "8 bits, brightened": np.round(255 * scene) / 255 / exposure,
        "fit of 16 bits, brightened, 2×": result.render((2 * size, 2 * size))[..., 0] / exposure,
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    for ax, (title, picture) in zip(axes, panels.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("sixteen_bits.png")
    levels = 255 * np.abs(result.render() - dark.values).mean()
    print(f"values are stored as {dark.stored}; the mean error is {levels:.3f} of a level of 8 bits")
    return float(levels)


if __name__ == "__main__":
    main()
