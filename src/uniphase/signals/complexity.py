"""Complexity: how many numbers a signal takes, counted by the cosines of its blocks as image and sound coders do."""

import math

import numpy as np
from jaxtyping import Float
from scipy.fft import dctn

from .fields import Grid

# Samples of a block, and blocks that are looked at: what a megapixel shows holds for what is larger.
_BLOCK, _BLOCKS = 256, 4096


def cosine_energies(field: Grid) -> Float[np.ndarray, " coefficients"]:
    """The shares of a signal's variance in the cosines of its blocks, the largest first.

    Channels are first turned into uncorrelated ones. The sum over the k largest of n shares is what the best k/n of all
    coefficients can represent. A constant signal has none.

    **Arguments:**

    - `field`: the signal. Samples that are missing count as its mean.

    !!! example
        ```python
        shares = cosine_energies(field)
        1 - shares[: len(shares) // 10].sum()  # what a tenth of the coefficients leaves out
        ```
    """
    blocks = _blocks(field)  # (blocks, *block, channels)
    channels = blocks.reshape(-1, blocks.shape[-1])
    channels -= np.nanmean(channels, axis=0)
    np.nan_to_num(channels, copy=False)
    _, rotation = np.linalg.eigh(channels.T @ channels)
    coefficients = np.asarray(dctn(blocks @ rotation, axes=tuple(range(1, blocks.ndim - 1)), norm="ortho"))
    energies = np.sort(np.square(coefficients).ravel())[::-1]
    total = energies.sum()
    return energies / total if total > 0 else energies[:0]


def _blocks(field: Grid) -> Float[np.ndarray, "blocks ..."]:
    """Blocks of equal sizes, evenly spread over the field, in units in which their squares do not overflow."""
    side = round(_BLOCK ** (1 / field.in_size))
    sides = [min(side, n) for n in field.shape]
    counts = [n // side for n, side in zip(field.shape, sides, strict=True)]
    total = math.prod(counts)
    chosen = np.unravel_index(np.linspace(0, total - 1, min(total, _BLOCKS)).astype(int), counts)
    starts = np.stack(chosen, axis=1) * sides
    low, high = field.value_range
    unit = high - low if high > low else 1.0
    return np.stack(
        [
            np.asarray(field.values[tuple(slice(a, a + n) for a, n in zip(start, sides, strict=True))], np.float64)
            / unit
            for start in starts
        ]
    )
