"""The page of an export, as a user sees it: its canvases, its state and its controls."""

import base64
import json
from typing import Any

import numpy as np

from helpers.browser import Page

_CANVAS = 'document.querySelector("#stage canvas{}")'
_BYTES = """(() => {{
  const canvas = {};
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
  let text = "";
  for (let k = 0; k < data.length; k += 32768) text += String.fromCharCode(...data.subarray(k, k + 32768));
  return [canvas.height, canvas.width, btoa(text)];
}})()"""


def wait_until_ready(page: Page, which: str = "") -> None:
    page.wait_for(f'{_CANVAS.format(which)}.dataset.state === "ready"')


def engine(page: Page) -> str:
    return page.wait_for("document.documentElement.dataset.engine")


def region(page: Page) -> np.ndarray:
    """The interval of each coordinate that is in view, to the edges of the canvas."""
    return np.array(json.loads(page.run(f"{_CANVAS.format('')}.dataset.region")))


def pixels(page: Page, which: str = "") -> np.ndarray:
    """The bytes of a canvas, (height, width, 4)."""
    height, width, text = page.run(_BYTES.format(_CANVAS.format(which)))
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)


def press(page: Page, *keys: str) -> None:
    """Press keys on the canvas, and wait until it is done."""
    wait_until_ready(page)
    page.run(f"{_CANVAS.format('')}.focus()")
    for key in keys:
        page.key(key)
    settle(page)


def settle(page: Page) -> None:
    """Wait for the next frame and for all that it asks for."""
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    wait_until_ready(page)


def choose(page: Page, label: str, value: Any) -> None:
    """Choose from the list with this label."""
    wait_until_ready(page)
    find = (
        f'[...document.querySelectorAll("#toolbar label")].find((l) => l.textContent.startsWith({json.dumps(label)}))'
    )
    page.run(
        f'(() => {{ const s = {find}.querySelector("select"); s.value = {json.dumps(str(value))}; '
        's.dispatchEvent(new Event("change")); })()'
    )
    settle(page)


def slide(page: Page, selector: str, value: float) -> None:
    """Move a slider."""
    page.run(
        f'(() => {{ const s = document.querySelector("{selector}"); s.value = {value}; '
        's.dispatchEvent(new Event("input")); })()'
    )
    settle(page)


def shown(page: Page, which: str, shape: tuple[int, ...], extents) -> np.ndarray:
    """The pixels of a signal that is shown at its own resolution, (height, width, 3)."""
    low = region(page)[:, 0]
    steps = [(high - low) / n for n, (low, high) in zip(shape, extents, strict=True)]
    top, left = (round((extents[k][0] - low[k]) / steps[k]) for k in range(2))
    return pixels(page, which)[top : top + shape[0], left : left + shape[1], :3]
