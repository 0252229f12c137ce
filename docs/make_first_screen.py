"""The first picture of the README: one photo by SIREN at three ω₀ and by uniphase, with equal networks and steps.

    python docs/make_first_screen.py     four fits of a minute or two each, then docs/first-screen.webp

SIREN is trained as is common: by Adam at 5e-4. Its rate falls as that of the default rule does.
"""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import uniphase as up

PICTURE = Path(__file__).resolve().with_name("first-screen.webp")
OMEGAS = (3.0, 30.0, 300.0)
# The detail: the face, as rows and columns.
ROWS, COLUMNS = slice(20, 220), slice(130, 330)


def main() -> None:
    field = up.load("astronaut")
    ours = up.fit(field)
    adam = replace(ours.recipe, optimizer="adam", learning_rate=5e-4)
    fits = {f"SIREN, ω₀ = {omega:g}": up.fit(field, scheme="siren", omega=omega, recipe=adam) for omega in OMEGAS}
    fits["uniphase, untuned"] = ours
    figure, axes = plt.subplots(2, len(fits) + 1, figsize=(3 * (len(fits) + 1), 6.6), layout="constrained")
    columns = [("the photo", np.asarray(field.values), f"{field.shape[1]} × {field.shape[0]} pixels")]
    for name, fit in fits.items():
        assert fit.metrics is not None
        caption = f"PSNR {fit.metrics.psnr_db:.1f} dB, SSIM {fit.metrics.ssim:.3f}"
        print(name, caption, f"{fit.steps} steps in {fit.seconds:.0f} s", sep=", ", flush=True)
        columns.append((name, fit.render(), caption))
    for (title, picture, caption), (whole, detail) in zip(columns, axes.T, strict=True):
        whole.imshow(np.clip(picture, 0, 1))
        detail.imshow(np.clip(picture[ROWS, COLUMNS], 0, 1))
        whole.set_title(title, fontsize=13, fontweight="bold" if title.startswith("uniphase") else "normal")
        detail.set_xlabel(caption, fontsize=12)
        for panel in (whole, detail):
            panel.set(xticks=[], yticks=[])
    figure.savefig(PICTURE, dpi=80)


if __name__ == "__main__":
    main()
