"""Section 4.3: the image of section 4.1, with networks of width 16."""

from ..fits import Signal
from ..runs import Preset
from .cameraman import Protocol, experiment

PROTOCOLS: dict[Preset, Protocol] = {
    "paper": Protocol(Signal("camera", "gray", 128, 512), width=16, depth=11, steps=3000),
    "quick": Protocol(Signal("camera", "gray", 64, 256), width=16, depth=11, steps=1000),
}
EXPERIMENT = experiment(
    "narrow", "section 4.3, table and figure of narrow networks", "Cameraman, narrow networks (N = 16)", PROTOCOLS
)
