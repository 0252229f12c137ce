"""Batches: the order in which a fit visits the samples.

The samples are cut into as many runs of neighbours as a batch has samples, and a batch has one of each run. So every
part of a signal is in every batch. In a round every sample of a run is visited once, from a random one on by steps of
a constant stride; the next round has other starts and strides. Independent draws would leave one sample in e out of a
round, and a network that could fit all samples is farthest from those that it has not seen for a while.

The strides are those whose continued fractions have the smallest quotients. The latest visits of a run, as many as the
momentum of an optimizer remembers, are then spread over all of it, however many they are. Runs have different strides,
in both directions, as they would otherwise move in step.
"""

import functools
import math

import numpy as np
from jaxtyping import Int

# A longer run takes more steps than a fit has, and the products of its strides would not fit into 32 bits.
_LONGEST = 1 << 15


def run_starts(samples: int, batch: int) -> Int[np.ndarray, " batch"]:
    """The first sample of each run. A run has at least `samples // batch` samples."""
    return (np.arange(batch, dtype=np.int64) * samples // batch).astype(np.int32)


def round_steps(samples: int, batch: int) -> int:
    """How many steps a round has: 1 if every step has random samples of its own."""
    run = samples // batch
    return run if run <= _LONGEST else 1


@functools.lru_cache(maxsize=64)
def run_strides(samples: int, batch: int) -> tuple[int, ...]:
    """By how many samples the visits of a run may step, so that they come to each of `samples // batch` once."""
    run = samples // batch
    if round_steps(samples, batch) == 1:
        return (1,)
    coprime = [stride for stride in range(1, max(1, run // 2) + 1) if math.gcd(stride, run) == 1]
    best = sorted(coprime, key=lambda stride: _sum_of_quotients(run, stride))[:2]
    return (*best, *(run - stride for stride in best))


def _sum_of_quotients(a: int, b: int) -> int:
    """Of the continued fraction of a / b: the discrepancy of multiples of b, modulo a, is at most of this order."""
    total = 0
    while b:
        total, a, b = total + a // b, b, a % b
    return total
