"""Batches: which samples a step uses."""

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from ..fitting.batches import round_steps, run_starts, run_strides


def draw_batch(samples: int, batch: int, step: int, *, seed: int = 0) -> Int[Tensor, " batch"]:
    """Indices of the batch of a step: one from each of `batch` equally long runs of neighbouring samples.

    `uniphase.fit` draws its batches like this. Every part of the signal is in every batch, and all samples are visited
    in turn, so the gradients are less noisy than with independent indices; that is worth some decibels.

    **Arguments:**

    - `samples`: how many there are, in the order of `field.flat_values()`.
    - `batch`: how many to draw. If there are no more samples than that, the batch has all of them.
    - `step`: the number of the step, from 0 on.
    - `seed`: of all batches.

    !!! example
        ```python
        values = torch.tensor(field.flat_values())
        for step in range(10):
            batch = values[draw_batch(field.samples, 100, step)]
        ```
    """
    if min(samples, batch) < 1:
        raise ValueError(f"samples is {samples} and batch is {batch}; both must be positive")
    if batch >= samples:
        return torch.arange(samples)
    number, visit = divmod(step, round_steps(samples, batch))
    rng = np.random.default_rng([seed, number])
    run, strides = samples // batch, rng.choice(run_strides(samples, batch), size=batch)
    within = (rng.integers(run, size=batch) + visit * strides) % run
    return torch.from_numpy((rng.integers(samples) + run_starts(samples, batch) + within) % samples)
