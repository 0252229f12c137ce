"""Write docs/fit.webp, the moving picture of a fit on the first page: python docs/make_fit.py

The loop is that of docs/fitting.md: the default optimizer at the default rate, which falls along a cosine. Left, what
the network shows after some steps, at twice the resolution of the photo; right, the length of its gradient.
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from PIL import Image, ImageDraw, ImageFont

import uniphase as up
from uniphase.signals.paths import atomic_path

SIZE, WIDTH, STEPS, BATCH = 128, 112, 300, 4096
# The steps after which a frame is drawn: close together at the start, where most happens.
FRAMES = np.unique(np.round(STEPS * np.linspace(0, 1, 30) ** 2).astype(int))


def networks(photo: up.Grid) -> dict[int, up.CoordinateMLP]:
    """The network after each number of steps in `FRAMES`."""
    moments = up.estimate_moments(photo)
    blueprint = up.uniform_phase(moments, width=WIDTH, depth=3, output_scale=0.05)
    network = up.CoordinateMLP(blueprint, key=jax.random.key(0))
    falling = optax.cosine_decay_schedule(up.default_rate(network), STEPS)
    optimizer = optax.chain(up.unit_muon(network, photo, moments), optax.scale_by_learning_rate(falling))
    positions, values = jnp.asarray(photo.coordinates(), jnp.float32), jnp.asarray(photo.flat_values())

    @eqx.filter_jit
    def step(network, state, key):
        batch = jax.random.randint(key, (BATCH,), 0, len(positions))
        gradients = jax.grad(lambda n: jnp.mean(jnp.square(n(positions[batch]) - values[batch])))(network)
        updates, state = optimizer.update(gradients, state, network)
        return eqx.apply_updates(network, updates), state

    state, seen = optimizer.init(eqx.filter(network, eqx.is_array)), {0: network}
    for number, key in enumerate(jax.random.split(jax.random.key(1), STEPS), start=1):
        network, state = step(network, state, key)
        if number in FRAMES:
            seen[number] = network
    return seen


def frame(network: up.CoordinateMLP, photo: up.Grid, steps: int) -> Image.Image:
    """The picture and its gradient side by side, with the figures below."""
    fine = tuple(2 * length for length in photo.shape)
    psnr = up.evaluate_network(network, photo).psnr_db
    picture = up.render(network, fine, extents=photo.extents).clip(0, 1)
    slopes = up.render(network, fine, extents=photo.extents, derivative="gradient")
    steep = np.linalg.norm(slopes, axis=(-2, -1))[..., None] / 25
    both = np.concatenate([picture, np.repeat(steep, 3, axis=-1)], axis=1).clip(0, 1)
    page = Image.new("RGB", (both.shape[1], both.shape[0] + 30))
    page.paste(Image.fromarray(np.round(255 * both).astype(np.uint8)))
    words = f"step {steps}: {psnr:.1f} dB PSNR"
    pen = ImageDraw.Draw(page)
    pen.text((10, both.shape[0] + 6), words, fill="white", font=ImageFont.load_default(16))
    pen.text((fine[1] + 10, both.shape[0] + 6), "length of its gradient", fill="white", font=ImageFont.load_default(16))
    return page


if __name__ == "__main__":
    photo = up.load("astronaut", size=SIZE)
    frames = [frame(network, photo, steps) for steps, network in networks(photo).items()]
    durations = [120] * (len(frames) - 1) + [3000]
    path = Path(__file__).with_name("fit.webp")
    with atomic_path(path) as whole:
        frames[0].save(whole, "WEBP", save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=75)
    print(f"{path.name}: {len(frames)} frames, {path.stat().st_size / 1e6:.2f} MB")
