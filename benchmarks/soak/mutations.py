"""Ways to damage a file: each takes a generator and the bytes, and gives other bytes."""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Mutation = Callable[[np.random.Generator, bytes], bytes]

# What stands in a damaged header in place of what belongs there.
_ODD: tuple[Any, ...] = (
    *(None, True, "", "a\x1b[31mb\n<script>alert(1)</script>", [], {}, [[]], -1, 0, 1.5, 1e308, -1e-300),
    *(10**9, 2**63, 10**40, [10**9] * 3, [1, 2, 3], {"a": 1}, "linear", "../../outside", "nan", [None], "1e999"),
)
_SIZES = (0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000000, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def flip(rng: np.random.Generator, data: bytes) -> bytes:
    """Some bits, of which half of the time all lie at the beginning."""
    bits = bytearray(data)
    reach = min(len(bits), 256) if rng.random() < 0.5 else len(bits)
    for place in rng.integers(0, reach, rng.integers(1, 17)):
        bits[place] ^= 1 << int(rng.integers(8))
    return bytes(bits)


def truncate(rng: np.random.Generator, data: bytes) -> bytes:
    return data[: rng.integers(0, len(data))]


def cut_out(rng: np.random.Generator, data: bytes) -> bytes:
    """A piece is missing, doubled or zero."""
    low, high = sorted(int(place) for place in rng.integers(0, len(data) + 1, 2))
    return data[:low] + (b"", 2 * data[low:high], bytes(high - low))[rng.integers(3)] + data[high:]


def declare(rng: np.random.Generator, data: bytes) -> bytes:
    """A number of 2, 4 or 8 bytes near the beginning or the end, where sizes stand, is another."""
    size = int(rng.choice([2, 4, 8]))
    near = int(rng.integers(0, min(len(data), 400)))
    place = near if rng.random() < 0.8 else max(0, len(data) - near - size)
    number = int(rng.choice(np.array(_SIZES, object))) % (1 << 8 * size)
    return data[:place] + number.to_bytes(size, "little" if rng.random() < 0.5 else "big") + data[place + size :]


def declare_in_words(rng: np.random.Generator, data: bytes) -> bytes:
    """A number that is written in digits, as in NPY, CSV and JSON, is another."""
    found = list(re.finditer(rb"\d+", data[:100_000]))
    if not found:
        return declare(rng, data)
    one = found[rng.integers(len(found))]
    words = (b"0", b"-1", b"99999999", b"99999999999999999999", b"1e400", b"nan", b"", b"1.5", b"'a'", b"[1]")
    return data[: one.start()] + words[rng.integers(len(words))] + data[one.end() :]


def declare_png(rng: np.random.Generator, data: bytes) -> bytes:
    """A PNG of another size, whose checksum is right."""
    if not data.startswith(b"\x89PNG"):
        return declare(rng, data)
    sides = [int(side) for side in rng.choice([0, 1, 12, 5000, 30_000, 2**31 - 1], 2)]
    header = b"IHDR" + struct.pack(">II", *sides) + data[24:29]
    return data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]


def splice(rng: np.random.Generator, data: bytes, other: bytes) -> bytes:
    """The beginning of another file."""
    size = int(rng.integers(1, min(len(other), 600) + 1))
    return other[:size] + data[size if rng.random() < 0.5 else 0 :]


def inside(rng: np.random.Generator, data: bytes, mutation: Mutation) -> bytes:
    """A mutation of what is compressed, in a file that is whole around it."""
    if data.startswith(b"\x1f\x8b"):
        return gzip.compress(mutation(rng, gzip.decompress(data)))
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = {name: file.read(name) for name in file.namelist()}
        name = sorted(members)[rng.integers(len(members))]
        if rng.random() < 0.1:
            members["../" + name] = members.pop(name)
        else:
            members[name] = mutation(rng, members[name])
        return _archive(members)
    return mutation(rng, data)


def _archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return stream.getvalue()


def change_json(rng: np.random.Generator, data: bytes) -> bytes:
    """Another value or key in JSON, in a header of safetensors and in JSON within that."""
    if data[:1] == b"{":
        return b"\n".join(_other_json(rng, line) for line in _documents(data))
    size = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{" or size > len(data):
        return declare_in_words(rng, data)
    header = json.loads(data[8 : 8 + size])
    notes = header.get("__metadata__", {})
    if notes and rng.random() < 0.8:
        key = next(iter(notes))
        notes[key] = json.dumps(_changed(rng, json.loads(notes[key])))
    else:
        header = _changed(rng, header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def _documents(data: bytes) -> list[bytes]:
    try:
        json.loads(data)
    except ValueError:
        return data.splitlines()
    return [data]


def _other_json(rng: np.random.Generator, text: bytes) -> bytes:
    try:
        content = json.loads(text)
    except ValueError:
        return flip(rng, text)
    return json.dumps(_changed(rng, content)).encode()


def _changed(rng: np.random.Generator, content: Any) -> Any:
    """The content with one entry replaced, removed or added, at any depth."""
    place, steps = content, []
    while isinstance(place, dict | list) and place and (not steps or rng.random() < 0.8):
        keys: Sequence[Any] = list(place) if isinstance(place, dict) else range(len(place))
        steps.append((place, keys[int(rng.integers(len(keys)))]))
        place = place[steps[-1][1]]
    if not steps:
        return _odd(rng)
    parent, key = steps[-1]
    kind = rng.random()
    if kind < 0.7:
        parent[key] = _odd(rng)
    elif kind < 0.85:
        del parent[key]
    elif isinstance(parent, dict):
        parent["another"] = _odd(rng)
    else:
        parent.append(_odd(rng))
    return content


def _odd(rng: np.random.Generator) -> Any:
    return _ODD[int(rng.integers(len(_ODD)))]


PLAIN: dict[str, Mutation] = {
    "bit flips": flip,
    "truncation": truncate,
    "cut": cut_out,
    "huge sizes": declare,
    "huge sizes in words": declare_in_words,
    "huge PNG": declare_png,
    "JSON": change_json,
}
