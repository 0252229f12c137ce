"""Many networks in one program: python examples/together.py

`fit_together` trains networks of one shape side by side by full-batch Adam, as the paper does: here SIREN and
uniform-phase at six learning rates each, compiled once. The photo is small, and 30 suits it.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import uniphase as up


def main(size: int = 32, steps: int = 300, width: int = 32, rates: int = 6) -> dict[str, list[float]]:
    """The SNR at every learning rate, in dB."""
    photo = up.load("camera", size=size)
    schemes = {"uniform-phase": up.uniform_phase(up.estimate_moments(photo), width=width, depth=3)}
    schemes["SIREN, ω₀ = 30"] = up.sm20((2, 1), width=width, depth=3, omega=30.0)
    sweep = 10.0 ** np.linspace(-4.5, -1.5, rates)
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    found = {}
    for name, blueprint in schemes.items():
        network = up.CoordinateMLP(blueprint, key=jax.random.key(0))
        fits = up.fit_together([network] * rates, photo, rates=[up.Rates.uniform(rate) for rate in sweep], steps=steps)
        power = np.square(photo.values).mean()
        found[name] = [float(10 * np.log10(power / fit.losses[-1])) for fit in fits]
        ax.semilogx(sweep, found[name], "o-", label=name)
        print(f"{name}: " + ", ".join(f"{snr:.1f}" for snr in found[name]) + " dB SNR")
    ax.set(xlabel="learning rate of Adam", ylabel=f"SNR after {steps} steps, dB")
    ax.legend()
    figure.savefig("together.png")
    return found


if __name__ == "__main__":
    main()
