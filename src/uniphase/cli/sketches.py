"""Small pictures of a network for a terminal: half blocks in colour for images, a row of bars for curves and sounds."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, UInt8

from ..signals.fields import Field, Grid
from ..storage.network_file import Domain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Of an image, in characters: each shows one pixel above another.
_COLUMNS, _ROWS = 64, 16
_BARS = "▁▂▃▄▅▆▇█"
# Positions for each bar of a sound, whose loudest it shows.
_WITHIN_BAR = 16


class Sketch:
    """A small picture of a network that is fitted to a field, as wide as a terminal has columns for it.

    **Arguments:**

    - `field`: what is fitted. Of a field with more than two axes, the slice in the middle is shown.
    - `columns`: of the terminal.

    !!! example
        ```python
        Sketch(field, 80).draw(network).plain.count("▀")  # 1024: 64 columns of 32 pixels
        ```
    """

    def __init__(self, field: Field, columns: int):
        self.domain, self.curve = Domain.of(field), field.in_size == 1
        self.sound = isinstance(field, Grid) and field.medium == "sound"
        self.lab = isinstance(field, Grid) and field.medium == "lab"
        self.upwards = not isinstance(field, Grid)  # as a map
        self.value_range, self.shape = field.value_range, _shape(self.domain, columns, self.sound)

    def draw(self, network: Any) -> "Text":
        """The picture of a network as it is."""
        from ..jax.render import render

        values = render(network, self.shape, extents=self.domain.extents)
        if self.curve:
            return _bars(self._levels(values[:, 0]))
        return _half_blocks(self._colors(values.reshape(*self.shape[-2:], -1)))

    def _levels(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " bars"]:
        low, high = self.value_range
        if self.sound:
            return np.abs(values).reshape(-1, _WITHIN_BAR).max(axis=1) / (max(abs(low), abs(high)) or 1.0)
        return (values - low) / ((high - low) or 1.0)

    def _colors(self, values: Float[np.ndarray, "height width channels"]) -> UInt8[np.ndarray, "_ _ 3"]:
        if self.lab:
            from skimage.color import lab2rgb

            picture = lab2rgb(np.clip(values, (0, -128, -128), (100, 127, 127)))
        else:
            low, high = self.value_range
            picture = (values if values.shape[-1] == 3 else values[..., :1].repeat(3, axis=-1)) - low
            picture = picture / ((high - low) or 1.0)
        if self.upwards:
            picture = picture.swapaxes(0, 1)[::-1]
        return np.rint(255 * np.clip(np.nan_to_num(picture), 0, 1)).astype(np.uint8)


def can_sketch(console: "Console", field: Field) -> bool:
    """Whether a terminal shows colours or, for a field with one axis, any text; and somebody may be looking."""
    if not console.is_terminal or console.is_dumb_terminal or console.no_color or "CI" in os.environ:
        return False
    return "utf" in console.encoding and (field.in_size == 1 or console.color_system in ("256", "truecolor", "windows"))


def _shape(domain: Domain, columns: int, sound: bool) -> tuple[int, ...]:
    """The samples of a sketch along each axis: the sides of an image in proportion, and one of every other axis."""
    if len(domain.extents) == 1:
        return (max(8, min(columns, 80) - 2) * (_WITHIN_BAR if sound else 1),)
    down, right = (high - low for low, high in domain.extents[-2:])
    if domain.shape is None:
        down, right = right, down
    width = min(_COLUMNS, columns - 2, max(2, round(2 * _ROWS * right / down)))
    height = 2 * max(1, min(_ROWS, round(width * down / right / 2)))
    sides = (height, width) if domain.shape is not None else (width, height)
    return (*[1] * (len(domain.extents) - 2), *sides)


def _half_blocks(pixels: UInt8[np.ndarray, "height width 3"]) -> "Text":
    from rich.style import Style
    from rich.text import Text

    text = Text(no_wrap=True)
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            text.append("▀", Style(color=_hex(above), bgcolor=_hex(below)))
        text.append("\n")
    text.rstrip()
    return text


def _hex(color: UInt8[np.ndarray, " 3"]) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in color)


def _bars(levels: Float[np.ndarray, " bars"]) -> "Text":
    from rich.text import Text

    heights = np.clip(np.nan_to_num(levels) * len(_BARS), 0, len(_BARS) - 1).astype(int)
    return Text("".join(_BARS[i] for i in heights), no_wrap=True)
