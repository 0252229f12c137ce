"""Fit the camera image with a uniform-phase network and leave a picture of it: `python examples/camera.py out.png`.

A plain training loop in JAX, Equinox and Optax: what the package gives is the network, ready to be trained.
"""

import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax
from optax.contrib import muon

import uniphase as up

STEPS, BATCH, STEPS_PER_CALL = 600, 8192, 50

field = up.load("camera", size=256)
moments = up.estimate_moments(field)
blueprint = up.uniform_phase(moments, width=256, depth=3)
network = up.CoordinateMLP(blueprint, key=jax.random.key(0))

positions = jnp.asarray(field.coordinates(), jnp.float32)
values = jnp.asarray(field.flat_values(), jnp.float32)
optimizer = muon(optax.cosine_decay_schedule(0.03, STEPS, alpha=0.01))


def loss(network: up.CoordinateMLP, chosen: jax.Array) -> jax.Array:
    return jnp.mean(jnp.square(jax.vmap(network)(positions[chosen]) - values[chosen]))


@eqx.filter_jit
def train(network, state, key):
    def step(carry, key):
        network, state = carry
        chosen = jax.random.randint(key, (BATCH,), 0, field.samples)
        gradients = jax.grad(loss)(network, chosen)
        updates, state = optimizer.update(gradients, state, network)
        return (optax.apply_updates(network, updates), state), None

    return jax.lax.scan(step, (network, state), jax.random.split(key, STEPS_PER_CALL))[0]


@eqx.filter_jit
def render(network, positions):
    return jax.lax.map(network, positions, batch_size=8192)


def psnr(network) -> float:
    return float(-10 * jnp.log10(jnp.mean(jnp.square(render(network, positions) - values))))


print(blueprint)
start, initial = network, psnr(network)
state = optimizer.init(eqx.filter(network, eqx.is_array))
clock = time.perf_counter()
for call in range(STEPS // STEPS_PER_CALL):
    network, state = train(network, state, jax.random.key(call))
    done = (call + 1) * STEPS_PER_CALL
    print(f"step {done:4d}/{STEPS}  {psnr(network):5.2f} dB  {time.perf_counter() - clock:5.1f} s", flush=True)

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

fine = up.Grid(np.zeros((512, 512, 1))).coordinates()
pictures = {
    "truth, 256 × 256": field.values,
    f"at initialization, {initial:.1f} dB": render(start, positions),
    f"fitted, {psnr(network):.1f} dB": render(network, positions),
    "the same, rendered at 512 × 512": render(network, jnp.asarray(fine, jnp.float32)),
}
figure, axes = plt.subplots(1, 4, figsize=(16, 4.4), layout="constrained")
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    side = round(np.sqrt(picture.size))
    axis.imshow(np.asarray(picture).reshape(side, side), cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
    axis.axis("off")
figure.savefig(sys.argv[1], dpi=80)
print(f"wrote {sys.argv[1]}")
