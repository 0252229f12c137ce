"""A colour photo at four times its size: python examples/photo.py

A fit needs nothing but the photo. The network that comes out of it is a function of position, so it can be rendered at
any resolution, and exported as a page in which you can zoom beyond the pixels.
"""

import matplotlib.pyplot as plt

import uniphase as up


def main(size: int = 160, steps: int = 500, width: int = 128) -> float:
    photo = up.load("coffee", size=size)  # or your file: up.image("photo.jpg")
    result = up.fit(photo, width=width, steps=steps)  # without these: as by its size
    result.save("photo.uniphase")
    up.export_network("photo.uniphase", "photo.html", bits=8)

    rows, columns = photo.shape
    large = result.render((4 * rows, 4 * columns)).clip(0, 1)
    cut = slice(rows // 4, rows // 2), slice(columns // 2, columns * 3 // 4)
    cut_large = tuple(slice(4 * part.start, 4 * part.stop) for part in cut)
    figure, axes = plt.subplots(1, 3, figsize=(11, 2.9), layout="constrained")
    panels = {"fit": result.render().clip(0, 1), "pixels": photo.values[cut], "the network, 4×": large[cut_large]}
    for ax, (title, picture) in zip(axes, panels.items(), strict=True):
        ax.imshow(picture)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig("photo.png")
    assert result.metrics is not None
    print(f"{rows} × {columns} pixels: {result.metrics.psnr_db:.2f} dB PSNR after {result.steps} steps")
    return result.metrics.psnr_db


if __name__ == "__main__":
    main()
