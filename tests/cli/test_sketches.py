import numpy as np
import pytest
from rich.console import Console

from uniphase.cli.sketches import Sketch, can_sketch
from uniphase.signals.fields import Grid, Points, square_extents


class Ramp:
    """A network that is its first coordinate, in every channel."""

    def __init__(self, in_size: int, channels: int):
        self.in_size, self.channels = in_size, channels


@pytest.fixture(autouse=True)
def ramp(monkeypatch):
    """Rendering of a `Ramp`, which compiles nothing."""

    def render(network, shape, *, extents):
        axes = [low + (np.arange(n) + 0.5) * (high - low) / n for n, (low, high) in zip(shape, extents, strict=True)]
        first = np.meshgrid(*axes, indexing="ij")[0]
        return np.repeat(first[..., None], network.channels, axis=-1).astype(np.float32)

    monkeypatch.setattr("uniphase.jax.render.render", render)


def grid(*shape: int, **options) -> Grid:
    options = {"extents": square_extents(shape)} | options
    return Grid(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(*shape, 1), **options)


@pytest.mark.parametrize(
    ("field", "columns", "rows"),
    [
        (grid(64, 64, medium="gray"), 32, 16),
        (grid(30, 120, medium="gray"), 64, 8),
        (grid(400, 40, medium="gray"), 3, 15),
        (grid(5, 64, 64), 32, 16),
    ],
)
def test_a_sketch_has_the_proportions_of_the_picture(field, columns, rows):
    lines = Sketch(field, 80).draw(Ramp(field.in_size, 1)).plain.splitlines()
    assert [len(line) for line in lines] == [columns] * rows
    assert max(map(len, Sketch(field, 20).draw(Ramp(field.in_size, 1)).plain.splitlines())) <= 18


def test_colors_are_those_of_the_values():
    """The ramp goes down, from black to white; two pixels stand in one character."""
    spans = Sketch(grid(64, 64, medium="gray"), 80).draw(Ramp(2, 1)).spans
    shades = (
        [span.style.color.triplet.red for span in spans[::32]],
        [span.style.bgcolor.triplet.red for span in spans[::32]],
    )
    assert shades[0][0] < 8 < 247 < shades[1][-1]
    assert sorted([*shades[0], *shades[1]]) == [shade for pair in zip(*shades, strict=True) for shade in pair]


def test_curves_and_sounds_are_bars():
    assert Sketch(grid(100), 10).draw(Ramp(1, 1)).plain == "▁▂▃▄▅▆▇█"
    sound = grid(1000, medium="sound", rate=8000.0, extents=(-100.0, 100.0))
    text = Sketch(sound, 80).draw(Ramp(1, 2)).plain
    assert (len(text), text[0], text[-1]) == (78, "█", "█")
    points = Points(np.linspace(0, 1, 50)[:, None], np.linspace(0, 1, 50))
    assert Sketch(points, 10).draw(Ramp(1, 1)).plain[0] == "▁"


def test_a_map_has_its_second_coordinate_upwards():
    positions = np.stack(np.meshgrid(np.linspace(0, 2, 9), np.linspace(0, 1, 9), indexing="ij"), axis=-1).reshape(-1, 2)
    text = Sketch(Points(positions, positions[:, 0]), 80).draw(Ramp(2, 1))
    lines = text.plain.splitlines()
    assert len(lines[0]) == 4 * len(lines)  # twice as wide as high, and half blocks
    row = [span.style.color.triplet.red for span in text.spans[: len(lines[0])]]
    assert row == sorted(row)
    assert row[0] < row[-1]


def test_who_cannot_see_it_gets_none(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    picture, curve = grid(8, 8, medium="gray"), grid(8)
    modern = {"force_terminal": True, "color_system": "truecolor"}
    assert can_sketch(Console(**modern), picture)
    assert not can_sketch(Console(**modern, no_color=True), picture)
    assert not can_sketch(Console(**modern | {"force_terminal": False}), picture)
    plain = Console(force_terminal=True, color_system="standard")
    assert (can_sketch(plain, picture), can_sketch(plain, curve)) == (False, True)
    assert not can_sketch(Console(**modern, _environ={"TERM": "dumb"}), picture)
    monkeypatch.setenv("CI", "true")
    assert not can_sketch(Console(**modern), picture)
