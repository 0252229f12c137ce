"""What a sample is: the figures of docs/samples.md. `python benchmarks/samples.py` runs what is missing and writes it.

Records are appended to benchmarks/samples.jsonl one by one; what is there is not run again, so the program can be
stopped at any time. The tables of the page are written between its marks `<!-- NAME -->` and `<!-- end -->`.
"""

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import shift

import uniphase as up
from uniphase.jax.render import predict
from uniphase.lab.tables import Table, spread
from uniphase.signals.splines import cubic_spline

HERE = Path(__file__).resolve().parent
RECORDS, PAGE = HERE / "samples.jsonl", HERE.parent / "docs" / "samples.md"
sys.path.insert(0, str(HERE.parent / "examples"))
import denoise  # noqa: E402
import inpaint  # noqa: E402
import tomography  # noqa: E402

SEEDS = range(3)
PHOTOS = ("camera", "clock", "brick", "gravel")


def averages(name: str, seed: int) -> dict[str, float]:
    """The SNR on an image of 512 pixels after a fit of 128, in dB."""
    small, large = (up.load(name, size=size, space="gray") for size in (128, 512))
    found = {"cubic spline": up.evaluate(cubic_spline(small, large), large).snr_db}
    for samples in ("points", "averages"):
        result = up.fit(small, samples=samples, seed=seed, progress=False)
        found[samples] = up.evaluate_network(result.network, large, average=samples == "averages").snr_db
    return found


def tasks() -> Iterator[tuple[str, str, int, Callable[[], dict[str, Any]]]]:
    """Table, row and seed of everything to measure, and how."""
    for seed in SEEDS:
        for name in PHOTOS:
            yield "averages", name, seed, lambda name=name, seed=seed: averages(name, seed)
        yield "inpainting", "camera", seed, lambda seed=seed: _flat(inpaint.main(size=128, seed=seed))
        for views in (30, 60):
            yield "tomography", f"{views} views", seed, lambda views=views, seed=seed: _flat(
                {method: dict(zip(("PSNR", "SSIM"), pair, strict=True)) for method, pair in
                 tomography.main(views=views, seed=seed).items()}
            )  # fmt: skip
        for name in ("camera", "astronaut"):
            yield "denoising", name, seed, lambda name=name, seed=seed: denoise.main(name, seed=seed)


def _flat(nested: dict[str, dict[str, float]]) -> dict[str, float]:
    return {f"{outer}, {inner}": value for outer, row in nested.items() for inner, value in row.items()}


def load_records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def run() -> None:
    """Compute what is missing among the records, and the pictures."""
    done = {(record["table"], record["row"], record["seed"]) for record in load_records()}
    for table, row, seed, measure in tasks():
        if (table, row, seed) not in done:
            print(f"{table}: {row}, seed {seed}", flush=True)
            with TemporaryDirectory() as pictures, contextlib.chdir(pictures):  # which the examples draw
                record = {"table": table, "row": row, "seed": seed, "metrics": measure()}
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
    for name, draw in (("samples.png", picture), ("slow-motion.png", slow_motion)):
        if not PAGE.with_name(name).exists():
            draw()


def over_seeds(values: list[float], digits: str = ".2f") -> str:
    """Mean and standard deviation, or the value of a method that does not depend on the seed."""
    return spread(values[:1] if len(set(values)) == 1 else values, digits)


def by_row(records: list[dict[str, Any]], table: str) -> dict[str, dict[str, list[float]]]:
    rows: dict[str, dict[str, list[float]]] = {}
    for record in (record for record in records if record["table"] == table):
        for metric, value in record["metrics"].items():
            rows.setdefault(record["row"], {}).setdefault(metric, []).append(value)
    return rows


def wide_table(
    name: str, title: str, first: str, rows: dict[str, dict[str, list[float]]], columns: dict[str, str]
) -> Table:
    """A table with a row for each signal, and a column for each metric by its heading."""
    cells = [(signal, *(over_seeds(row[key]) for key in columns.values())) for signal, row in rows.items()]
    return Table(name, title, (first, *columns), tuple(cells))


def averages_table(records: list[dict[str, Any]]) -> Table:
    columns = {"values at points": "points", "averages over cells": "averages", "cubic spline": "cubic spline"}
    title = "SNR in dB on 512 × 512 pixels, after a fit to 128 × 128"
    return wide_table("averages", title, "image", by_row(records, "averages"), columns)


def inpainting_table(records: list[dict[str, Any]]) -> Table:
    methods = ("uniphase", "biharmonic")
    holes = {"half of the pixels, at random": "random_holes", "text over it": "text_over"}
    row = by_row(records, "inpainting")["camera"]
    split = {name: {method: row[f"{key}, {method}"] for method in methods} for name, key in holes.items()}
    return wide_table("inpainting", "PSNR of the missing pixels, in dB", "missing", split, {m: m for m in methods})


def denoising_table(records: list[dict[str, Any]]) -> Table:
    rows = by_row(records, "denoising")
    return wide_table("denoising", "PSNR against the clean image, in dB", "image", rows, {m: m for m in rows["camera"]})


def tomography_table(records: list[dict[str, Any]]) -> Table:
    cells = []
    for views, row in by_row(records, "tomography").items():
        for method in dict.fromkeys(key.rpartition(", ")[0] for key in row):
            numbers = over_seeds(row[f"{method}, PSNR"]), over_seeds(row[f"{method}, SSIM"], ".3f")
            cells.append((method, views.partition(" ")[0], *numbers))
    header = ("method", "views", "PSNR, dB", "SSIM")
    return Table("tomography", "The phantom from its readings", header, tuple(cells))


TABLES = (averages_table, inpainting_table, denoising_table, tomography_table)


def picture() -> None:
    """docs/samples.png: what goes wrong if a thumbnail is made of points, or a fit of averages is shown as points."""
    small = up.load("brick", size=128)
    result = up.fit(small, samples="averages", progress=False)
    fine = up.load("brick", size=512)
    network = up.fit(fine, progress=False, steps=600).network
    shape = (64, 64)
    panels = [
        up.render(network, shape),
        up.render(network, shape, average=True, nodes=18),
        predict(result.network, small)[:64, :64],
        predict(result.network, small, average=True)[:64, :64],
        np.asarray(small.values)[:64, :64],
    ]
    save_rows("samples.png", [panels])


def save_rows(name: str, rows: list[list[np.ndarray]]) -> None:
    """Write rows of gray pictures of 64 × 64 pixels, magnified, with gaps between them."""

    def beside(row: list[np.ndarray]) -> np.ndarray:
        large = [np.kron(np.clip(panel[..., 0], 0, 1), np.ones((4, 4))) for panel in row]
        return np.concatenate([part for panel in large for part in (panel, np.ones((256, 8)))][:-1], axis=1)

    strips = [part for row in rows for part in (beside(row), np.ones((8, 264 * len(row) - 8)))][:-1]
    Image.fromarray((255 * np.concatenate(strips)).round().astype(np.uint8)).save(PAGE.with_name(name))


def slow_motion() -> None:
    """docs/slow-motion.png: frames between two frames of a video, by the network and by blending.

    The clip is a window of 64 × 64 pixels that moves over the camera image along a curve, three pixels a frame.
    """
    photo = up.load("camera", size=256).values[..., 0]
    turn = np.linspace(0, np.pi / 2, 16)
    frames = [shift(photo, (-30 * np.sin(t), -30 * (1 - np.cos(t))), order=3)[60:124, 100:164] for t in turn]
    clip = up.video((255 * np.clip(frames, 0, 1)).round().astype(np.uint8), rate=8)
    result = up.fit(clip, progress=False)
    slow = result.render((61, 64, 64))  # sixteen frames, and about three between each two
    first, last = clip.values[7], clip.values[8]
    middle = [np.argmin(np.abs((np.arange(61) + 0.5) / 61 - (7.5 + k / 4) / 16)) for k in range(5)]
    blend = [(1 - k / 4) * first + k / 4 * last for k in range(5)]
    save_rows("slow-motion.png", [[slow[i] for i in middle], blend])


def write_page() -> None:
    """Write the tables of what is stored into the page."""
    page, records = PAGE.read_text(), load_records()
    for table in (make(records) for make in TABLES):
        marks = rf"(<!-- {table.name} -->\n).*?(<!-- end -->)"
        page = re.sub(marks, lambda m, table=table: f"{m[1]}{table.markdown()}{m[2]}", page, flags=re.S)
    PAGE.write_text(page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="write the tables of what is stored, and run nothing")
    if not parser.parse_args().report:
        run()
    write_page()
