"""Sampling: a field on the device of a model, and the batches drawn from it.

A batch depends on its number and the seed alone, not on the device, so that a fit that was interrupted goes on to the
same bits.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..recipe import DRAWS
from ..signals.fields import Field, Grid, Sampling
from ..signals.views import grid_frame
from .batches import draw_batch
from .render import frame_positions


class Batch(NamedTuple):
    """Some observations.

    - `values`: of each, `(n, out_size)`.
    - `positions`: of each, `(n, draws, in_size)`: one for the value at a point, and two opposite pairs in the cell for
        the average over it.
    """

    values: Tensor
    positions: Tensor

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a field that are known, on a device. Positions of a grid are made from indices and never stored.

    - `values`: `(samples, out_size)`; bytes stay bytes until they are drawn.
    - `positions`: `(samples, in_size)`, of scattered points.
    - `numbers`: which of all samples these are, if some are missing.
    - `shape`, `middle`, `half_step`: of a grid.
    """

    values: Tensor
    positions: Tensor | None
    numbers: Tensor | None
    shape: tuple[int, ...]
    middle: Tensor
    half_step: Tensor

    @staticmethod
    def of(field: Field, device: torch.device, dtype: torch.dtype) -> "Samples":
        rows, numbers, positions = field.flat_values(), None, None
        if field.missing is not None:
            known = np.flatnonzero(~field.missing)
            rows, numbers = rows[known], torch.from_numpy(known).to(device)
        if rows.dtype != np.uint8:
            rows = rows.astype(np.float64 if dtype == torch.float64 else np.float32)
        values = torch.from_numpy(np.array(rows))
        frame = [np.zeros(field.in_size)] * 2
        if isinstance(field, Grid):
            frame = grid_frame(field.shape, field.extents, field.align)
        else:
            positions = torch.tensor(field.positions).to(device, dtype)
        return Samples(
            values.to(device) if values.dtype == torch.uint8 else values.to(device, dtype),
            positions,
            numbers,
            field.shape if isinstance(field, Grid) else (),
            *(torch.tensor(each).to(device, dtype) for each in frame),
        )

    def positions_at(self, indices: Int[Tensor, " n"]) -> Float[Tensor, "n in_size"]:
        """The positions of some samples."""
        if self.positions is not None:
            return self.positions[indices]
        numbers = indices if self.numbers is None else self.numbers[indices]
        return frame_positions(numbers, self.shape, self.middle, self.half_step)


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of a fit.

    - `samples`: what they are drawn from.
    - `sampling`: what a sample is: the value at a point, or the average over its cell.
    - `size`: of a batch.
    - `seed`: of all of them.
    """

    samples: Samples
    sampling: Sampling
    size: int
    seed: int

    def draw(self, number: int) -> Batch:
        """The batch of a step: the indices are those of `draw_batch`, and in a cell any position is as likely."""
        samples = self.samples
        indices = draw_batch(len(samples.values), self.size, number, seed=self.seed).to(samples.values.device)
        centers = samples.positions_at(indices)
        values = samples.values[indices].to(centers)
        if self.sampling == "points":
            return Batch(values, centers[:, None])
        generator = torch.Generator().manual_seed(_mixed(self.seed, number))
        dtype = torch.promote_types(centers.dtype, torch.float32)
        shape = (len(centers), DRAWS // 2, centers.shape[1])
        inside = 2 * torch.rand(shape, generator=generator, dtype=dtype, device="cpu") - 1
        shifts = samples.half_step * inside.to(centers)
        return Batch(values, centers[:, None] + torch.stack([shifts, -shifts], dim=2).flatten(1, 2))


def _mixed(seed: int, number: int) -> int:
    """One seed out of two numbers, such that neighbours have nothing in common."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
