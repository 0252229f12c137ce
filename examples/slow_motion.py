"""A video in slow motion: python examples/slow_motion.py

Time is one more coordinate. How fast the clip changes in time, compared with space, comes out of its structure tensor.
The clip is a window that moves over a photo along a curve; between its frames, the network makes new ones.
"""

import numpy as np
from PIL import Image
from scipy.ndimage import shift

import uniphase as up


def main(size: int = 48, frames: int = 16, steps: int = 400, width: int = 128, slower: int = 4) -> float:
    photo = up.load("camera", size=256).values[..., 0]
    moved = [shift(photo, (-30 * np.sin(t), -30 * (1 - np.cos(t))), order=3) for t in np.linspace(0, 1.5, frames)]
    window = np.stack(moved)[:, 60 : 60 + size, 100 : 100 + size]
    clip = up.video(np.round(255 * window.clip(0, 1)).astype(np.uint8), rate=8)
    result = up.fit(clip, width=width, steps=steps)
    slow = result.render((slower * frames, 2 * size, 2 * size))[..., 0]

    stepwise = np.kron(clip.values[..., 0], np.ones((slower, 2, 2)))
    both = np.concatenate([stepwise, np.ones((len(slow), 2 * size, 8)), slow], axis=2).clip(0, 1)
    pictures = [Image.fromarray(np.round(255 * np.kron(frame, np.ones((2, 2)))).astype(np.uint8)) for frame in both]
    pictures[0].save("slow_motion.webp", save_all=True, append_images=pictures[1:], duration=60, loop=0, quality=70)
    assert result.metrics is not None
    print(f"{frames} frames in, {len(slow)} out: {result.metrics.psnr_db:.2f} dB PSNR on the frames of the clip")
    return result.metrics.psnr_db


if __name__ == "__main__":
    main()
