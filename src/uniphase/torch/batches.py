"""Batches: which samples a step uses."""

import torch
from jaxtyping import Int
from torch import Tensor


def draw_batch(samples: int, batch: int, *, generator: torch.Generator | None = None) -> Int[Tensor, " batch"]:
    """Indices of a batch: one at random from each of `batch` equally long runs of neighbouring samples.

    `uniphase.fit` draws its batches like this. Every part of the signal is in every batch, and no sample is in it
    twice, so the gradient is less noisy than with independent indices; late in a fit that is worth some decibels.

    **Arguments:**

    - `samples`: how many there are, in the order of `field.flat_values()`.
    - `batch`: how many to draw. If there are no more samples than that, the batch has all of them.
    - `generator`: the randomness. Default: PyTorch's own. The indices are on its device.

    !!! example
        ```python
        batch = draw_batch(field.samples, 100)
        values = torch.tensor(field.flat_values())[batch]
        ```
    """
    if min(samples, batch) < 1:
        raise ValueError(f"samples is {samples} and batch is {batch}; both must be positive")
    device = None if generator is None else generator.device
    if batch >= samples:
        return torch.arange(samples, device=device)
    run = samples // batch
    within = torch.randint(run, (batch,), generator=generator, device=device)
    start = torch.randint(samples, (), generator=generator, device=device)  # the samples after the last run change
    return (start + run * torch.arange(batch, device=device) + within) % samples
