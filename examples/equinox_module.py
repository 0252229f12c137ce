"""Your own Equinox module: python examples/equinox_module.py

`fit` takes any module that maps a position to channels, and `initialize` draws its layers anew. Here they are those of
`eqx.nn.MLP`, once as they come and once matched to the photo; everything else is the same.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax

import uniphase as up


def main(size: int = 96, steps: int = 400, width: int = 96) -> tuple[float, float]:
    photo = up.load("camera", size=size)
    as_it_comes = eqx.nn.MLP(2, 1, width, 3, activation=jnp.sin, key=jax.random.key(0))
    matched = up.initialize(as_it_comes, up.estimate_moments(photo), key=jax.random.key(1))

    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    found = []
    for ax, (title, network) in zip(axes, {"as it comes": as_it_comes, "initialized": matched}.items(), strict=True):
        result = up.fit(network, photo, optimizer=optax.adam(1e-3), steps=steps)
        assert result.metrics is not None
        found.append(result.metrics.psnr_db)
        ax.imshow(result.render(average=False), cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{title}: {found[-1]:.1f} dB PSNR", xticks=[], yticks=[])
    figure.savefig("equinox_module.png")
    print(f"eqx.nn.MLP with sines, {steps} steps of Adam: {found[0]:.2f} dB PSNR; initialized: {found[1]:.2f} dB")
    return found[0], found[1]


if __name__ == "__main__":
    main()
