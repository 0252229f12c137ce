"""Which ω₀? python examples/which_omega.py

SIREN asks for a frequency. The same photo with the same steps, at five values of it, and once by uniform-phase, which
reads its scale from the photo. Both are trained by Adam at SIREN's rate.
"""

import jax
import matplotlib.pyplot as plt
import optax

import uniphase as up


def main(size: int = 96, steps: int = 300, width: int = 96) -> dict[str, float]:
    """The PSNR at twice the resolution of the fit, in dB."""
    photo, twice = up.load("camera", size=size), up.load("camera", size=2 * size)
    schemes = {
        f"SIREN, ω₀ = {omega}": up.siren((2, 1), width=width, depth=3, omega=omega) for omega in (5, 15, 30, 90, 200)
    }
    schemes["uniform-phase"] = up.uniform_phase(up.estimate_moments(photo), width=width, depth=3)
    figure, axes = plt.subplots(2, 3, figsize=(9, 6.6), layout="constrained")
    found = {}
    for ax, (name, blueprint) in zip(axes.flat, schemes.items(), strict=True):
        network = up.CoordinateMLP(blueprint, key=jax.random.key(0))
        result = up.fit(network, photo, optimizer=optax.adam(1e-3), steps=steps, test=twice)
        assert result.test_metrics is not None
        found[name] = result.test_metrics.psnr_db
        ax.imshow(up.render(result.network, twice.shape), cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{name}: {found[name]:.1f} dB", xticks=[], yticks=[])
        print(f"{name}: {found[name]:.2f} dB PSNR at twice the resolution")
    figure.savefig("which_omega.png")
    return found


if __name__ == "__main__":
    main()
