# SPDX-License-Identifier: Apache-2.0
"""Checks an exported function with its golden vectors: check.py [LIBRARY [FOLDER]].

It needs no more than the standard library of Python 3.10. The status is 1 if a vector fails, 2 if the files
are damaged.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SCALARS: Any = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
WIDTHS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "f32": 4, "f64": 8}


class Elements(NamedTuple):
    """An array argument of a vector: its elements, or the argument that is the same array."""

    bits: list[int]
    same: int | None = None


class Vector(NamedTuple):
    """One call and its outcome, as bits."""

    number: int
    status: int
    arguments: list[int | Elements]
    outputs: list[tuple[int, list[int]]]
    results: list[int]


def equal(a: int, b: int, kind: str) -> bool:
    """True if two numbers are the same; any NaN is the same as any NaN."""
    return a == b or (is_nan(a, kind) and is_nan(b, kind))


def is_nan(bits: int, kind: str) -> bool:
    """True for the bits of a NaN."""
    if kind == "f64":
        return bits & 0x7FFFFFFFFFFFFFFF > 0x7FF0000000000000
    return kind == "f32" and bits & 0x7FFFFFFF > 0x7F800000


def unpacked(content: bytes, kind: str) -> list[int]:
    """The bits of elements in memory."""
    width = WIDTHS[kind]
    starts = range(0, len(content), width)
    return [int.from_bytes(content[at : at + width], "little") for at in starts]


def read_vectors(path: Path, name: str) -> Iterator[Vector]:
    """The vectors of a file. Raises ValueError if it is damaged."""
    words = iter(path.read_text(encoding="ascii").split())
    if [next(words, ""), next(words, ""), next(words, "")] != ["ferryvm-vectors", "1", name]:
        raise ValueError(f"{path}: no vectors of {name}")
    for word in words:
        if word != "v":
            raise ValueError(f"{path}: damaged near {word}")
        vector = Vector(int(next(words)), int(next(words)), [], [], [])
        for kind in iter(lambda: next(words), "."):
            if kind == "s":
                vector.arguments.append(int(next(words), 16))
            elif kind == "a":
                vector.arguments.append(Elements(elements(words)))
            elif kind == "=":
                vector.arguments.append(Elements([], int(next(words))))
            elif kind == "o":
                vector.outputs.append((int(next(words)), elements(words)))
            elif kind == "r":
                vector.results.append(int(next(words), 16))
            else:
                raise ValueError(f"{path}: damaged near {kind}")
        yield vector


def elements(words: Iterator[str]) -> list[int]:
    """A number of elements, then the elements."""
    return [int(next(words), 16) for _ in range(int(next(words)))]


def fault(function: Any, manifest: Any, vector: Vector) -> str | None:
    """The first fault of a call, in words; None if all is as expected."""
    kinds = [each for each in manifest["arguments"] if each["kind"] in ("scalar", "array")]
    results = [each for each in manifest["arguments"] if each["kind"] == "result"]
    if len(kinds) != len(vector.arguments):
        raise ValueError(f"vector {vector.number} has {len(vector.arguments)} arguments")
    given: list[Any] = []
    arrays: Any = {}
    for place, (kind, argument) in enumerate(zip(kinds, vector.arguments, strict=True)):
        width = WIDTHS[kind["type"]]
        if isinstance(argument, int):
            content = argument.to_bytes(width, "little")
            given.append(SCALARS[kind["type"]].from_buffer_copy(content))
            continue
        if argument.same is None:
            content = b"".join(bits.to_bytes(width, "little") for bits in argument.bits)
            buffer = ctypes.create_string_buffer(content, max(1, len(content)))
            arrays[place] = buffer, len(content), argument.bits
        buffer, size, _ = arrays[place if argument.same is None else argument.same]
        given += [buffer, ctypes.c_int64(size // width)]
    found = [SCALARS[each["type"]]() for each in results]
    status = function(*given, *map(ctypes.byref, found))
    if status != vector.status:
        return f"status {status}, expected {vector.status}"
    for each, value, expected in zip(results, found, vector.results, strict=False):
        (bits,) = unpacked(bytes(value), each["type"])
        if not equal(bits, expected, each["type"]):
            return f"{each['name']} is {bits:x}, expected {expected:x}"
    after = dict(vector.outputs)
    for place, (buffer, size, before) in arrays.items():
        kind = kinds[place]
        pairs = zip(
            unpacked(buffer.raw[:size], kind["type"]), after.get(place, before), strict=True
        )
        for at, (is_, wanted) in enumerate(pairs):
            if not equal(is_, wanted, kind["type"]):
                return f"{kind['name']}[{at}] is {is_:x}, expected {wanted:x}"
    return None


def check(library: Path, folder: Path) -> int:
    """Check the function in a library; 1 if a vector fails."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for each in manifest["files"]:
        digest = hashlib.sha256((folder / each["name"]).read_bytes()).hexdigest()
        if digest != each["sha256"]:
            print(f"note: {each['name']} is not as it was exported")
    name = manifest["entry"]
    function = getattr(ctypes.CDLL(str(library.absolute())), name)
    function.restype = ctypes.c_int32
    tried = failed = 0
    for vector in read_vectors(folder / manifest["vectors"]["file"], name):
        tried += 1
        found = fault(function, manifest, vector)
        if found is not None:
            failed += 1
            print(f"vector {vector.number}: {found}")
    if failed or not tried:
        print(f"{name}: {failed} of {tried} vectors fail (Python)")
        return 1
    print(f"{name}: {tried} vectors pass (Python)")
    return 0


def main() -> int:
    """Check what the command line names; by default the folder of this file."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    libraries = [Path(sys.argv[1])] if len(sys.argv) > 1 else sorted(folder.glob("lib*.so"))
    if not libraries:
        print("check.py: no library here; build it first: make", file=sys.stderr)
        return 2
    try:
        return check(libraries[0], folder)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
