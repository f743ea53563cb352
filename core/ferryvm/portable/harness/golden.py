# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of an exported function, and the report of a check.

It needs no more than the standard library of Python 3.10.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

WIDTHS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "f32": 4, "f64": 8}
"""Bytes of a number or an element."""


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


def read_manifest(folder: Path) -> Any:
    """The manifest of a folder. Prints a note for each file that is not as it was exported."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for each in manifest["files"]:
        digest = hashlib.sha256((folder / each["name"]).read_bytes()).hexdigest()
        if digest != each["sha256"]:
            print(f"note: {each['name']} is not as it was exported")
    return manifest


def differing(is_: list[int], wanted: list[int], name: str, kind: str) -> str | None:
    """The first element of an array that is not as it should be, in words."""
    for at, (a, b) in enumerate(zip(is_, wanted, strict=True)):
        if not equal(a, b, kind):
            return f"{name}[{at}] is {a:x}, expected {b:x}"
    return None


def report(folder: Path, manifest: Any, fault: Callable[[Vector], str | None], where: str) -> int:
    """Try all vectors of a folder and print a line for each that fails; 1 if one does."""
    name = manifest["entry"]
    tried = failed = 0
    for vector in read_vectors(folder / manifest["vectors"]["file"], name):
        tried += 1
        found = fault(vector)
        if found is not None:
            failed += 1
            print(f"vector {vector.number}: {found}")
    if failed or not tried:
        print(f"{name}: {failed} of {tried} vectors fail ({where})")
        return 1
    print(f"{name}: {tried} vectors pass ({where})")
    return 0
