"""Which ω₀? python examples/which_omega.py

SIREN asks for a frequency. The same photo, the same number of steps by the same optimizer, at five values of it; and
once by uniform-phase, which reads its scale from the photo.
"""

import matplotlib.pyplot as plt

import uniphase as up


def main(
    size: int = 64, steps: int = 200, width: int = 64, omegas: tuple[int, ...] = (5, 15, 30, 90, 200)
) -> dict[str, float]:
    """The PSNR at twice the resolution of the fit, in dB."""
    photo, twice = up.load("camera", size=size), up.load("camera", size=2 * size)
    options = {f"SIREN, ω₀ = {omega}": {"scheme": "sm20", "omega": float(omega)} for omega in omegas}
    options["uniform-phase"] = {"scheme": "uniform-phase"}
    figure, axes = plt.subplots(2, len(options) // 2, figsize=(9, 6.6), layout="constrained")
    found = {}
    for ax, (name, scheme) in zip(axes.flat, options.items(), strict=True):
        result = up.fit(photo, **scheme, width=width, steps=steps, test=twice, samples="points")
        assert result.test_metrics is not None
        found[name] = result.test_metrics.psnr_db
        ax.imshow(result.render(twice.shape), cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{name}: {found[name]:.1f} dB", xticks=[], yticks=[])
        print(f"{name}: {found[name]:.2f} dB PSNR at twice the resolution")
    figure.savefig("which_omega.png")
    return found


if __name__ == "__main__":
    main()
