"""Markup: the few pieces of HTML by which results show themselves in a notebook.

All text is escaped here. Lines and words have the colour of the page's own text, or one that is legible on white and on
black, and nothing has a background: light and dark notebooks show the same.
"""

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import UInt8
from PIL import Image

# The longest side of a picture in pixels, and the most bytes of its file, so that a representation stays below 100 kB.
_SIDE, _PICTURE_BYTES = 192, 50_000
# A table of more rows is cut short; a cell holds at most this many letters.
_ROWS, _LETTERS = 32, 240
# A curve of more points is drawn through the extremes of this many parts of it.
_PARTS = 200
_WIDTH, _HEIGHT = 288, 96
_BLUE = "#3b82f6"


class Html(str):
    """Text that is HTML already."""


def escaped(text: str) -> Html:
    """Text as HTML, cut short if it is long."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"))


def section(title: str, *parts: str) -> Html:
    """A title, and what belongs to it part by part."""
    return stacked(Html(f"<b>{escaped(title)}</b>"), *parts)


def stacked(*parts: str) -> Html:
    """Parts one below the other."""
    return Html("".join(f"<div>{escaped(part)}</div>" for part in parts))


def folded(title: str, content: str) -> Html:
    """A title that opens its content when it is clicked."""
    return Html(f"<details><summary>{escaped(title)}</summary>{escaped(content)}</details>")


def side_by_side(*parts: str) -> Html:
    """Parts side by side, as far as they fit."""
    cells = "".join(f"<div>{escaped(part)}</div>" for part in parts)
    return Html(f'<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-end">{cells}</div>')


def preformatted(text: str) -> Html:
    """Text with its own lines and columns."""
    return Html(f'<pre style="margin:0;background:none;white-space:pre-wrap">{html.escape(text)}</pre>')


def coloured(text: str, colour: str) -> Html:
    """Bold text in a colour."""
    return Html(f'<b style="color:{colour}">{escaped(text)}</b>')


def captioned(content: str, caption: str) -> Html:
    """A picture with the words under it."""
    return Html(f'<figure style="margin:0">{escaped(content)}<figcaption>{escaped(caption)}</figcaption></figure>')


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table, of which long ones are cut short.

    **Arguments:**

    - `header`: the names of the columns, if they need any.
    - `rows`: cells, each text or HTML.

    !!! example
        ```python
        table(("layer", "size"), [("input", "2 → 64"), ("output", "64 → 1")])
        ```
    """
    rows = list(rows)
    lines = [_cells("th", header)] if header else []
    lines += [_cells("td", cells) for cells in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(_cells("td", [f"… and {len(rows) - _ROWS} more"]))
    return Html('<table style="margin:0.3em 0">' + "".join(lines) + "</table>")


def _cells(tag: str, cells: Sequence[str]) -> str:
    style = "text-align:left;padding:0.1em 0.8em 0.1em 0"
    row = "".join(f'<{tag} style="{style}">{escaped(cell)}</{tag}>' for cell in cells)
    return f"<tr>{row}</tr>"


def image(pixels: UInt8[np.ndarray, "height width channels"], words: str) -> Html:
    """A small picture: a PNG inside the HTML.

    **Arguments:**

    - `pixels`: in gray or RGB, of any size.
    - `words`: what it shows, for those who cannot see it.
    """
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    data = base64.b64encode(_png(picture)).decode()
    width, height = (max(1, round(n * _SIDE / max(picture.size))) for n in picture.size)
    smooth = "auto" if max(picture.size) > _SIDE // 2 else "pixelated"  # few pixels are shown as such
    size = f'width="{width}" height="{height}" style="image-rendering:{smooth}"'
    return Html(f'<img src="data:image/png;base64,{data}" alt="{html.escape(words)}" {size}>')


def _png(picture: Image.Image) -> bytes:
    """The file of a picture, which becomes as small as it must."""
    side = _SIDE
    while True:
        picture.thumbnail((side, side))
        file = io.BytesIO()
        picture.save(file, "PNG", optimize=True)
        if file.tell() <= _PICTURE_BYTES:
            return file.getvalue()
        side = side * 3 // 4  # noise is not compressed


def curves(
    lines: Sequence[tuple[np.ndarray, np.ndarray]], words: str, *, span: tuple[float, float] | None = None
) -> Html:
    """Curves in one small drawing, as SVG. What is not finite is left out.

    **Arguments:**

    - `lines`: x and y of each curve; the last is blue, and in front.
    - `words`: what they show, for those who cannot see them.
    - `span`: what the axis of x shows. Default: all curves.

    !!! example
        ```python
        x = np.linspace(0, 1, 1000)
        curves([(x, np.sin(9 * x))], "a sine")
        ```
    """
    thin = [_thinned(x, y) for x, y in lines]
    across = _extremes([x for x, _ in thin]) if span is None else span
    up = _extremes([y for _, y in thin])
    shapes = [_path(_scaled(x, across, _WIDTH), _HEIGHT - _scaled(y, up, _HEIGHT)) for x, y in thin]
    colours = ['stroke="currentColor" stroke-opacity="0.5"'] * (len(lines) - 1) + [f'stroke="{_BLUE}"']
    paths = "".join(f'<path d="{shape}" {colour}/>' for shape, colour in zip(shapes, colours, strict=True))
    box = f'viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + 4}" width="{_WIDTH + 4}" height="{_HEIGHT + 4}"'
    frame = f'<rect width="{_WIDTH}" height="{_HEIGHT}" stroke="currentColor" stroke-opacity="0.25"/>'
    name = f'role="img" aria-label="{html.escape(words)}"'
    return Html(f'<svg {name} {box} style="max-width:100%" fill="none" stroke-linejoin="round">{frame}{paths}</svg>')


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A curve of few points; of one that has many, the least and the greatest of every part."""
    x, y = x.astype(np.float64), np.where(np.isfinite(y), y, np.nan).astype(np.float64)
    if len(y) <= 2 * _PARTS:
        return x, y
    starts = np.arange(0, len(y), math.ceil(len(y) / _PARTS))
    extremes = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)
    return np.repeat(x[starts], 2), np.stack(extremes, axis=1).ravel()


def _extremes(curves: Sequence[np.ndarray]) -> tuple[float, float]:
    numbers = np.concatenate(curves)
    known = numbers[np.isfinite(numbers)]
    return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)


def _scaled(numbers: np.ndarray, frame: tuple[float, float], length: int) -> np.ndarray:
    low, high = frame
    return length * ((numbers - low) / (high - low) if high > low else 0.0 * numbers + 0.5)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """The commands of SVG; a new line begins behind every gap."""
    known = np.isfinite(y)
    begins = known & ~np.concatenate([[False], known[:-1]])
    points = zip(x[known].tolist(), y[known].tolist(), begins[known].tolist(), strict=True)
    return "".join(f"{'M' if first else 'L'}{a:.1f} {b:.1f}" for a, b, first in points)
