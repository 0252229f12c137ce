"""Batches: the order in which a fit visits the samples.

The samples are cut into as many runs of neighbours as a batch has samples, and a batch has one of each run. So every
part of a signal is in every batch. In a round every sample of a run is visited once, from a random one on by steps of
a constant stride; the next round has other starts and strides. Independent draws would leave one sample in e out of a
round, and a network that could fit all samples is farthest from those that it has not seen for a while.

Strides are near irrational parts of a run that no fraction comes close to. Whatever few of its samples were visited
last, as many as the momentum of an optimizer remembers, they then are spread over all of the run. There are several
strides, so that the runs do not move in step.
"""

import math

import numpy as np
from jaxtyping import Int

# The golden and the silver ratio, in both directions.
_PARTS = tuple(part for ratio in ((math.sqrt(5) - 1) / 2, math.sqrt(2) - 1) for part in (ratio, 1 - ratio))
# A longer run takes more steps than a fit has, and the products of its strides would not fit into 32 bits.
_LONGEST = 1 << 15


def run_starts(samples: int, batch: int) -> Int[np.ndarray, " batch"]:
    """The first sample of each run. A run has at least `samples // batch` samples."""
    return (np.arange(batch, dtype=np.int64) * samples // batch).astype(np.int32)


def round_steps(samples: int, batch: int) -> int:
    """How many steps a round has: 1 if every step has random samples of its own."""
    run = samples // batch
    return run if run <= _LONGEST else 1


def run_strides(samples: int, batch: int) -> Int[np.ndarray, " strides"]:
    """By how many samples the visits of a run may step, so that they come to each of `samples // batch` once."""
    run = samples // batch
    strides = []
    for part in _PARTS:
        stride = max(1, round(part * run))
        while math.gcd(stride, run) > 1:
            stride += 1
        strides.append(stride)
    return np.array(strides, np.int32)
