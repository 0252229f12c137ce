"""How small the file of a photo is, in 32, 16 and 8 bits, beside PNG, and JPEG and WebP of the same quality.

    python benchmarks/sizes.py

fits the astronaut for a minute, and writes the table into docs/exports.md.
"""

import io
import re
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import uniphase as up
from uniphase.signals.images import as_pixels
from uniphase.signals.metrics import psnr_db

SIGNAL, SECONDS = "astronaut", 60.0
PAGE = Path(__file__).parents[1] / "docs" / "exports.md"
MARKS = "<!-- table of benchmarks/sizes.py -->", "<!-- end of the table -->"

Row = tuple[str, int, float | None]


def network_rows(result: up.Fit, folder: Path) -> list[Row]:
    """The size of the file and the PSNR over all pixels, which are rounded to 8 bits as those of a photo are."""
    rows = []
    for bits in (32, 16, 8):
        part = result if bits == 32 else result.quantized(bits)
        part.save(folder / "a.uniphase")
        rows.append((f"network, {bits} bits", (folder / "a.uniphase").stat().st_size, quality(pixels_of(part))))
    return rows


def pixels_of(result: up.Fit) -> np.ndarray:
    assert isinstance(result.field, up.Grid)
    return as_pixels(result.render(), result.field.medium, result.field.value_range)


def quality(pixels: np.ndarray) -> float:
    return psnr_db(pixels.astype(np.float64), original().astype(np.float64), (0.0, 255.0))


def original() -> np.ndarray:
    field = up.load(SIGNAL)
    assert isinstance(field, up.Grid)
    return as_pixels(field.values, field.medium, field.value_range)


def encoded(kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(original()).save(stream, kind, **options)
    return stream.getvalue()


def smallest(kind: str, wanted: float) -> Row:
    """The first of the quality settings of a format that is as good as the network."""
    for setting in range(1, 101):
        content = encoded(kind, quality=setting)
        reached = quality(np.asarray(Image.open(io.BytesIO(content)).convert("RGB")))
        if reached >= wanted:
            return f"{kind}, quality {setting}", len(content), reached
    raise ValueError(f"{kind} does not reach {wanted:.2f} dB")


def table(rows: list[Row]) -> str:
    lines = [
        f"| {name} | {size:,} | {'exact' if reached is None else f'{reached:.2f}'} |" for name, size, reached in rows
    ]
    return "\n".join(["| file | bytes | PSNR, dB |", "|---|---:|---:|", *lines])


def main() -> None:
    result = up.fit(SIGNAL, seconds=SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        rows = network_rows(result, Path(folder))
    wanted = rows[0][2]
    assert wanted is not None
    rows += [("PNG", len(encoded("PNG", optimize=True)), None), smallest("JPEG", wanted), smallest("WebP", wanted)]
    text = table(rows)
    print(text)
    start, end = map(re.escape, MARKS)
    page = re.sub(f"(?<={start}\n).*?(?={end})", lambda _: f"\n{text}\n\n", PAGE.read_text(), flags=re.DOTALL)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
