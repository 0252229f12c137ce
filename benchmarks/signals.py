"""Two sets of signals for `rule.py`: one to settle the default rule on, and one that is looked at for the report alone.

All of them ship with packages (`pip install pygame scikit-learn` besides those of the tests), are spoken by Debian's
`espeak-ng`, or are made from a seed. A signal is a pair: what is fitted, and what the fit is measured on besides: the
same at a higher resolution, or samples that were held back.
"""

import importlib.util
import io
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import nibabel
import numpy as np
import skimage.data
import soundfile
from PIL import Image

import uniphase as up

Pair = tuple[up.Grid | up.Points, up.Grid | up.Points | None]


@dataclass(frozen=True)
class Signal:
    """A signal of one of the sets."""

    name: str
    kind: str
    make: Callable[[], Pair]


def photo(pixels: np.ndarray, size: int = 128) -> Pair:
    """A photo at `size` pixels, tested at twice as many."""
    assert 2 * size <= max(pixels.shape[:2]), "the test would be an enlargement"
    return up.image(pixels, size=size), up.image(pixels, size=2 * size)


def noisy(pixels: np.ndarray, size: int = 128) -> Pair:
    """A photo with white noise of a tenth of its range, tested on the clean one."""
    clean = up.image(pixels, size=size)
    noise = np.random.default_rng(0).normal(scale=0.1, size=clean.values.shape)
    return up.image(np.clip(clean.values + noise, 0, 1)), clean


def sheet(photos: list[np.ndarray], shape: tuple[int, int] = (3000, 4000)) -> Pair:
    """Many photos side by side, turned and mirrored: 12 megapixels with the detail of photos."""
    tile, rng = 250, np.random.default_rng(0)
    pixels = np.zeros((*shape, 3), np.uint8)
    for row in range(0, shape[0], tile):
        for column in range(0, shape[1], tile):
            source = photos[rng.integers(len(photos))]
            top, left = (rng.integers(source.shape[axis] - tile + 1) for axis in (0, 1))
            cut = np.rot90(source[top : top + tile, left : left + tile], int(rng.integers(4)))
            pixels[row : row + tile, column : column + tile] = cut[:, :: rng.choice((-1, 1))]
    return up.image(pixels), None


def sound(samples: np.ndarray, rate: int, seconds: float = 3.0) -> Pair:
    """The first seconds of a sound."""
    return up.audio(np.asarray(samples, np.float64)[: round(seconds * rate)], rate=rate), None


def speech(text: str, voice: str, seconds: float = 3.0) -> Pair:
    """A sentence, as `espeak-ng` speaks it."""
    try:
        spoken = subprocess.run(["espeak-ng", "--stdout", "-v", voice, text], check=True, capture_output=True).stdout
    except FileNotFoundError as error:
        raise SystemExit("espeak-ng is missing, which speaks the sentences: apt install espeak-ng") from error
    return sound(*soundfile.read(io.BytesIO(spoken)), seconds=seconds)


def bach() -> Pair:
    """Three seconds of the cello, at the time scale of the whole."""
    whole = up.load("bach")
    start, count = 100_000, round(3 * (whole.rate or 0))
    return up.audio(whole.values[start : start + count], rate=whole.rate), None


def packaged_sound(name: str) -> Pair:
    """A sound of Pygame's examples."""
    samples, rate = soundfile.read(_packaged("pygame", "pygame") / "examples" / "data" / name)
    return sound(samples if samples.ndim == 1 else samples.mean(axis=1), rate)


def pieces(*names: str) -> Pair:
    """Sounds of Pygame's examples one after the other, whole, each at the same loudness."""
    folder = _packaged("pygame", "pygame") / "examples" / "data"
    read = [soundfile.read(folder / name) for name in names]
    return up.audio(np.concatenate([samples / samples.std() for samples, _ in read]), rate=read[0][1]), None


def noise(shape: tuple[int, ...], exponent: float, seed: int) -> Pair:
    """Noise whose amplitude falls as a power of its frequency."""
    axes = np.meshgrid(*(np.fft.fftfreq(n) * n for n in shape), indexing="ij")
    radius = np.maximum(1.0, np.sqrt(sum(np.square(axis) for axis in axes)))
    white = np.fft.fftn(np.random.default_rng(seed).normal(size=shape))
    return up.Grid(np.fft.ifftn(white * radius**exponent).real[..., None]), None


def sparse(shape: tuple[int, ...], count: int, seed: int) -> Pair:
    """Zero but for some narrow bumps."""
    rng = np.random.default_rng(seed)
    positions = up.Grid(np.zeros((*shape, 1))).coordinates()
    width = 6.0 / max(shape)
    values = np.zeros(len(positions))
    for _ in range(count):
        center = rng.uniform(-1, 1, size=len(shape))
        values += rng.normal() * np.exp(-np.square((positions - center) / width).sum(axis=1) / 2)
    return up.Grid(values.reshape(*shape, 1)), None


def waves(n: int, seed: int) -> Pair:
    """A box with waves inside: smooth parts and sharp faces in three dimensions, tested at twice the resolution."""

    def values(size: int) -> up.Grid:
        x, rng = up.Grid(np.zeros((size, size, size, 1))).coordinates(), np.random.default_rng(seed)
        inside = sum(rng.normal() * np.sin(x @ (8 * rng.normal(size=3)) + rng.uniform(0, 6)) for _ in range(12))
        found = inside * np.exp(-2 * np.square(x).sum(axis=1)) + 0.5 * (np.abs(x).max(axis=1) < 0.6)
        return up.Grid(found.reshape(size, size, size, 1))

    return values(n), values(2 * n)


def scan(name: str, part: tuple[Any, ...] = ()) -> Pair:
    """A volume by magnetic resonance, of those that nibabel tests itself with, or a part of it."""
    path = _packaged("nibabel", "nibabel") / "tests" / "data" / name
    values = np.asarray(nibabel.load(path).dataobj)  # pyright: ignore[reportAttributeAccessIssue]
    return up.Grid(values[part][..., None].astype(np.float64)), None


def bodies(shape: tuple[int, ...], count: int, seed: int) -> Pair:
    """Ellipsoids one over the other, each of its own brightness, in an empty space."""
    x, rng = up.Grid(np.zeros((*shape, 1))).coordinates(), np.random.default_rng(seed)
    values = np.zeros(len(x))
    for size in np.geomspace(0.8, 0.05, count):
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        center, radii = rng.uniform(-0.5, 0.5, size=3), size * rng.uniform(0.5, 1.0, size=3)
        values[np.square((x - center) @ axes / radii).sum(axis=1) < 1] = rng.uniform()
    return up.Grid(values.reshape(*shape, 1)), None


def curve(function: Callable[[np.ndarray], np.ndarray], n: int = 512) -> Pair:
    """A function of one coordinate, tested between its samples."""
    x = np.linspace(-1, 1, 4 * n - 3)
    return (
        up.Points(x[::4, None], function(x[::4])),
        up.Points(x[:, None], function(x)),
    )


def series(values: np.ndarray) -> Pair:
    """A time series: every second value is held back."""
    t = np.linspace(-1, 1, len(values))
    return up.Points(t[::2, None], values[::2]), up.Points(t[1::2, None], values[1::2])


def scattered(values: np.ndarray, n: int, seed: int) -> Pair:
    """A map at random places, tested at others."""
    grid = up.Grid(np.asarray(values, np.float64)[..., None])
    chosen = np.random.default_rng(seed).permutation(grid.samples)
    x, y = grid.coordinates(), grid.flat_values()
    train, test = (up.Points(x[part], y[part]) for part in (chosen[:n], chosen[n : 5 * n]))
    return train, test


def _packaged(name: str, distribution: str) -> Path:
    """The folder of a package of which only the data are used."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{distribution} is missing, which some signals ship with: pip install {distribution}")
    return Path(spec.origin).parent


def _matplotlib(name: str) -> Path:
    return Path(matplotlib.get_data_path()) / "sample_data" / name


def _terrain(name: str, key: str) -> np.ndarray:
    return np.load(_matplotlib(name))[key]


def _eeg() -> np.ndarray:
    return np.fromfile(_matplotlib("eeg.dat"), dtype=float).reshape(800, 4)[:, 0]


def _sample_photo(name: str) -> np.ndarray:
    return np.asarray(Image.open(_packaged("sklearn", "scikit-learn") / "datasets" / "images" / name))


DEVELOPMENT = (
    Signal("coins", "photo, gray, sharp", lambda: photo(skimage.data.coins()[:, :303])),
    Signal("chelsea", "photo, color, sharp", lambda: photo(skimage.data.chelsea())),
    Signal("moon", "photo, gray, soft", lambda: photo(skimage.data.moon())),
    Signal("china", "photo, color, large", lambda: (up.image(_sample_photo("china.jpg")), None)),
    Signal("noisy rocket", "photo, noisy", lambda: noisy(skimage.data.rocket())),
    Signal("text", "text", lambda: photo(skimage.data.text())),
    Signal("grass", "texture", lambda: photo(skimage.data.grass())),
    Signal("horse", "drawing", lambda: photo(skimage.data.horse().astype(float))),
    Signal("house", "music", lambda: packaged_sound("house_lo.wav")),
    Signal("two pieces", "music, long", lambda: pieces("house_lo.wav", "secosmic_lo.wav")),
    Signal("sentence", "speech", lambda: speech("She had your dark suit in greasy wash water all year.", "en-us")),
    Signal(
        "numbers",
        "speech, long",
        lambda: speech("One. Two, three. Four; five! Six, seven, eight. Nine, ten. " * 2, "en-us", 8.0),
    ),
    Signal("red noise", "noise-like", lambda: noise((160, 160), -1.0, seed=1)),
    Signal("spikes", "sparse", lambda: sparse((8192,), 40, seed=1)),
    Signal("dots", "sparse, plane", lambda: sparse((192, 192), 80, seed=5)),
    Signal("box", "volume", lambda: waves(32, seed=0)),
    Signal("anatomy", "volume, scan", lambda: scan("anatomical.nii")),
    Signal("bodies", "volume, sharp", lambda: bodies((44, 42, 40), 60, seed=3)),
    Signal("chirp", "curve", lambda: curve(lambda x: np.sin(40 * (x + 1.2) ** 2) * np.exp(-x))),
    Signal(
        "terrain",
        "scattered points",
        lambda: scattered(_terrain("jacksboro_fault_dem.npz", "elevation"), 4000, seed=0),
    ),
    Signal(
        "terrain, dense",
        "scattered points",
        lambda: scattered(_terrain("jacksboro_fault_dem.npz", "elevation"), 20_000, seed=0),
    ),
    Signal("sheet", "12 megapixels", lambda: sheet([skimage.data.chelsea(), _sample_photo("china.jpg")])),
)

REPORT = (
    Signal("camera", "photo, gray, sharp", lambda: photo(skimage.data.camera())),
    Signal("astronaut", "photo, color, sharp", lambda: photo(skimage.data.astronaut())),
    Signal("clock", "photo, gray, soft", lambda: photo(skimage.data.clock()[:, :300])),
    Signal("flower", "photo, color, large", lambda: (up.image(_sample_photo("flower.jpg")), None)),
    Signal("coffee", "photo, color, large", lambda: (up.image(skimage.data.coffee()), None)),
    Signal("noisy coffee", "photo, noisy", lambda: noisy(skimage.data.coffee())),
    Signal("page", "text", lambda: photo(skimage.data.page())),
    Signal("brick", "texture", lambda: photo(skimage.data.brick())),
    Signal("gravel", "texture, large", lambda: (up.image(skimage.data.gravel()), None)),
    Signal("phantom", "drawing", lambda: photo(skimage.data.shepp_logan_phantom())),
    Signal("bach", "music", bach),
    Signal(
        "counting",
        "speech",
        lambda: speech("Eins, zwei, drei, vier, fünf, sechs, sieben.", "de", 20.0),
    ),
    Signal("pink noise", "noise-like", lambda: noise((16384,), -0.5, seed=2)),
    Signal("stars", "sparse", lambda: sparse((128, 128), 60, seed=2)),
    Signal("head", "volume", lambda: scan("example4d.nii.gz", np.s_[::2, ::2, :, 0])),
    Signal("eeg", "curve", lambda: series(_eeg())),
    Signal("sea floor", "scattered points", lambda: scattered(_terrain("topobathy.npz", "topo"), 4000, seed=1)),
    Signal("large sheet", "12 megapixels", lambda: sheet([skimage.data.astronaut(), skimage.data.coffee()])),
)
