"""Small files of every format that is read, and the command that reads each."""

import contextlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import tifffile
from PIL import Image

from uniphase.cli.app import main
from uniphase.cli.failures import explain
from uniphase.fitting.loop import Checkpoint, State
from uniphase.initialization.moments import estimate_moments
from uniphase.initialization.schemes import uniform_phase
from uniphase.lab.runs import Outcome, Record, SingleRun, identify
from uniphase.lab.store import Store, pack
from uniphase.signals.fields import Grid
from uniphase.signals.files import write
from uniphase.signals.images import image
from uniphase.storage.network_file import NetworkFile, tensor_shapes, write_network
from uniphase.training.checkpoints import TreeFiles, save_state

RNG = np.random.default_rng(0)
IDENTITY = "soak"


class Specimen(NamedTuple):
    """A file, or a directory of files, by their paths; the one that is read, its group, and how it is read."""

    group: str
    name: str
    files: dict[str, bytes]
    read: Callable[[str], Any]


def specimens(directory: Path) -> list[Specimen]:
    """One of each, made in an empty directory."""
    with contextlib.chdir(directory), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [*_images(), *_sounds(), *_videos(), *_arrays(), *_tables(), *_own()]
    return found


def command(*arguments: str) -> Callable[[str], Any]:
    """Run a command on a file, which stands where the arguments have `FILE`."""
    return lambda name: main([name if argument == "FILE" else argument for argument in arguments])


def _as_command(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Read a file as a command does in the middle of other work: an error that it would explain is a line."""

    def attempt(name: str) -> None:
        try:
            read(name)
        except Exception as error:
            if (reason := explain(error)) is None:
                raise
            print(f"uniphase: {reason}", file=sys.stderr)
            sys.exit(1)

    return attempt


_MOMENTS = command("moments", "FILE")
_COLUMNS = command("moments", "FILE", "--coordinates", "x,y", "--values", "z")


def _loose(group: str, names: list[str], read: Callable[[str], Any] = _MOMENTS) -> list[Specimen]:
    return [Specimen(group, name, {name: Path(name).read_bytes()}, read) for name in names]


def _images() -> list[Specimen]:
    pixels = RNG.integers(0, 255, (9, 12, 4), dtype=np.uint8)
    rgb = Image.fromarray(pixels[..., :3])
    for suffix in ("avif", "bmp", "jp2", "jpg", "png", "tga", "tif", "webp", "gif"):
        rgb.save(f"rgb.{suffix}")
    Image.fromarray(pixels).save("alpha.png")
    Image.fromarray(pixels).save("alpha.webp")
    rgb.quantize().save("palette.png")
    Image.fromarray(pixels[..., 0]).save("gray.jpg", progressive=True)
    wide = RNG.integers(0, 65535, (9, 12), dtype=np.uint16)
    Image.fromarray(wide).save("wide.png")
    write("wide-rgb.png", RNG.random((9, 12, 3)), medium="rgb", stored="uint16")
    tifffile.imwrite("stack.tif", np.stack([wide] * 3))
    tifffile.imwrite("imagej.tif", np.stack([wide] * 3), imagej=True)
    tifffile.imwrite("ome.ome.tif", np.stack([wide] * 3), metadata={"axes": "ZYX"})
    tifffile.imwrite("float.tif", RNG.random((9, 12, 3)).astype(np.float32), photometric="rgb")
    Image.fromarray(pixels[..., :3]).save("lzw.tif", compression="tiff_lzw")
    Image.fromarray(pixels[..., :3]).save("jpeg.tif", compression="jpeg")
    with_exif = Image.Exif()
    with_exif[0x0112] = 6
    rgb.save("turned.jpg", exif=with_exif)
    names = sorted(path.name for path in Path().iterdir())
    masks = [Specimen("mask", name, {name: Path(name).read_bytes()}, _mask(wide)) for name in ("gray.jpg", "rgb.png")]
    return [*_loose("image", names), *masks]


def _mask(values: np.ndarray) -> Callable[[str], Any]:
    return _as_command(lambda name: image(values, mask=name))


def _sounds() -> list[Specimen]:
    wave = np.sin(np.arange(4000)[:, None] / [5, 7]) / 2
    names = []
    kinds = {"wav": "WAV", "flac": "FLAC", "ogg": "OGG", "mp3": "MP3", "aiff": "AIFF", "au": "AU", "caf": "CAF"}
    for suffix, kind in (kinds | {"w64": "W64"}).items():
        names.append(f"sound.{suffix}")
        soundfile.write(names[-1], wave, 8000, format=kind)
    soundfile.write("sound.opus", wave, 8000, format="OGG", subtype="OPUS")
    soundfile.write("float.wav", wave, 8000, subtype="FLOAT")
    names += ["sound.opus", "float.wav"]
    for suffix, codec in {"m4a": "aac", "mka": "flac", "weba": "libopus", "wma": "wmav2", "aac": "aac"}.items():
        _write_contained(name := f"sound.{suffix}", codec, wave.astype(np.float32))
        names.append(name)
    return _loose("sound", names)


def _write_contained(name: str, codec: str, wave: np.ndarray) -> None:
    import av

    kinds = {"weba": "webm", "mka": "matroska", "wma": "asf", "aac": "adts", "m4a": "ipod"}
    with av.open(name, "w", format=kinds[name.partition(".")[2]]) as container:
        stream: Any = container.add_stream(codec, rate=48000)
        stream.layout, stream.bit_rate = "stereo", 64_000
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(wave.T), format="fltp", layout="stereo")
        frame.sample_rate = 48000
        resampler = av.AudioResampler(
            stream.format, "stereo", 48000, frame_size=stream.codec_context.frame_size or None
        )
        for part in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))


def _videos() -> list[Specimen]:
    import av

    frames = RNG.integers(0, 255, (4, 24, 32, 3), dtype=np.uint8)
    codecs = {"mp4": "libx264", "mkv": "libx264", "webm": "libvpx", "avi": "mpeg4", "mov": "mpeg4", "m4v": "libx264"}
    for suffix, codec in codecs.items():
        with av.open(f"clip.{suffix}", "w", format="mp4" if suffix == "m4v" else None) as container:
            stream: Any = container.add_stream(codec, rate=10)
            stream.width, stream.height, stream.pix_fmt = 32, 24, "yuv420p"
            for frame in frames:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
            container.mux(stream.encode(None))
    write("clip.gif", frames / 255.0, rate=10.0)
    return _loose("video", [*(f"clip.{suffix}" for suffix in codecs), "clip.gif"])


def _arrays() -> list[Specimen]:
    import nibabel
    import zarr

    values = RNG.normal(size=(5, 6, 7)).astype(np.float32)
    np.save("array.npy", values)
    np.save("bytes.npy", RNG.integers(0, 9, (9, 12), dtype=np.uint8))
    np.savez("one.npz", values=values)
    np.savez_compressed("packed.npz", values=values)
    for name in ("scan.nii", "scan.nii.gz"):
        nibabel.save(nibabel.Nifti1Image(values, np.diag([1.0, 2.0, 3.0, 1.0])), name)
    nibabel.save(nibabel.Nifti2Image((9 * values).astype(np.int16), np.eye(4)), "second.nii")
    found = _loose("array", ["array.npy", "bytes.npy", "one.npz", "packed.npz"])
    found += _loose("scan", ["scan.nii", "scan.nii.gz", "second.nii"])
    found.append(
        Specimen(
            "mask", "bytes.npy", {"bytes.npy": Path("bytes.npy").read_bytes()}, _mask(np.zeros((9, 12), np.uint16))
        )
    )
    for version in (2, 3):
        name = f"store{version}.zarr"
        zarr.create_array(name, shape=values.shape, dtype=values.dtype, chunks=(3, 3, 7), zarr_format=version)[...] = (
            values
        )
        found.append(Specimen("zarr", name, _tree(name), _MOMENTS))
    return found


def _tree(name: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(name).rglob("*")) if path.is_file()}


def _tables() -> list[Specimen]:
    import duckdb

    rows = RNG.normal(size=(40, 3))
    for suffix, separator in {"csv": ",", "tsv": "\t"}.items():
        lines = [separator.join("xyz"), *(separator.join(map(repr, row)) for row in rows.tolist())]
        Path(f"table.{suffix}").write_text("\n".join(lines))
    with duckdb.connect() as connection:
        connection.read_csv("table.csv").write_parquet("table.parquet")
    return _loose("table", ["table.csv", "table.tsv", "table.parquet"], _COLUMNS)


class _Kept(SingleRun):
    """A run whose record is read; it is never computed."""

    kind = "kept"

    @property
    def label(self) -> str:
        return "kept"

    def effective(self) -> dict[str, Any]:
        return {"width": 8, "rate": 0.5, "signal": {"name": "camera"}}

    def compute(self) -> Outcome:
        raise AssertionError


def _own() -> list[Specimen]:
    """The files of this package: networks, checkpoints and records."""
    grid = Grid(RNG.random((9, 12, 3)), medium="rgb", value_range=(0.0, 1.0), stored="uint8")
    blueprint = uniform_phase(moments := estimate_moments(grid), width=8, depth=2)
    tensors = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in tensor_shapes(blueprint).items()}
    notes = {"signal": "photo.png", "scheme": "uniform-phase", "seed": 0, "options": {"size": 9}, "steps": 20}
    for name, bits in (("plain.uniphase", None), ("small.uniphase", 8)):
        file = NetworkFile.of(None, grid, blueprint=blueprint, moments=moments, training=notes, bits=bits)
        write_network(name, file, tensors, "numpy")
    networks = ["plain.uniphase", "small.uniphase"]
    reads = {
        "info": command("info", "FILE"),
        "info --json": command("info", "FILE", "--json"),
        "page": command("export", "FILE", "-o", "out.html"),
        "onnx": command("export", "FILE", "-o", "out.onnx"),
        "script": command("export", "FILE", "-o", "out.py"),
    }
    found = [one for word, read in reads.items() for one in _loose(f"network, {word}", networks, read)]
    numbers = {"step": 10, "seconds": 1.5, "rate_scale": 1.0, "best": 0.5, "latest": 0.5, "retreats": 0}
    save_state("run.state", _state(), {"identity": IDENTITY, "numbers": numbers})
    found += _loose("checkpoint", ["run.state"], _as_command(_restore))
    run, versions = _Kept(), {"versions": {"uniphase": "0"}, "device": "cpu", "commit": None, "date": "2026"}
    arrays = {"losses": np.ones(9), "spectrum": np.ones(3)}
    record = Record(identify(run), run.kind, run.effective(), {"mse": 0.1}, 1.0, "kept", 1, versions, lambda: arrays)
    Store("store").put(record)
    Path("packed").mkdir()
    pack([record], Path("packed", "records.jsonl"))
    return [*found, *(Specimen("record", name, _tree(name), _as_command(_read_store)) for name in ("store", "packed"))]


def _state() -> tuple[Any, Any, np.ndarray]:
    return {"weight": np.ones((4, 3), np.float32)}, {"mean": np.zeros(3)}, np.full(20, np.nan, np.float32)


def _restore(name: str) -> None:
    parameters, optimizer, losses = _state()
    Checkpoint(name, 1.0, IDENTITY, TreeFiles()).restore(State(parameters, optimizer), losses)


def _read_store(name: str) -> None:
    for record in Store(name).records():
        record.load()
