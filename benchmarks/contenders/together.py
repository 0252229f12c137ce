"""Many narrow networks."""

import time
from collections.abc import Callable

import uniphase as up

from .size import Run, Size


def uniphase_together(size: Size) -> Run:
    return _narrow(size, lambda networks, rates: [(networks, rates)])


def uniphase_one_by_one(size: Size) -> Run:
    return _narrow(size, lambda networks, rates: [([n], [r]) for n, r in zip(networks, rates, strict=True)])


def _narrow(size: Size, groups: Callable) -> Run:
    """21 rates from 2⁻¹⁸ to 2², the grid of the paper's μP sweep."""
    network, field = size.network(), size.field()
    rates = [up.Rates.uniform(2.0**q) for q in range(-18, 3)]

    def run(count):
        begun, losses = time.perf_counter(), []
        for networks, some in groups([network] * len(rates), rates):
            losses += [trace.losses[0] for trace in up.fit_together(networks, field, rates=some, steps=count)]
        return time.perf_counter() - begun, [float(loss) for loss in losses]

    return run
