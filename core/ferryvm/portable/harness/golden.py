# SPDX-License-Identifier: Apache-2.0
"""Golden vectors of an exported function, calls with them, and the report of a check.

It needs no more than the standard library of Python 3.10. A *call* takes the arguments that are
numbers, arrays and the number of items, in the order of the manifest: numbers as those of ctypes,
arrays as `Memory`. It returns the status and the results.
"""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

WIDTHS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "f32": 4, "f64": 8}
"""Bytes of a number or an element."""

SCALARS: Any = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
"""Numbers by their types."""

TIME = "CHECK_SECONDS"
"""The variable of the environment with the time in which a call has to end, in seconds (10)."""


class Memory(NamedTuple):
    """An array argument of a call: the address and the number of its elements."""

    address: int
    length: int


Call = Callable[[list[Any]], tuple[int, list[Any]]]


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
    for each in manifest.get("files", []):
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


def arguments_of(manifest: Any, *kinds: str) -> list[Any]:
    """The arguments of some kinds, in their order."""
    return [each for each in manifest["arguments"] if each["kind"] in kinds]


def inputs_of(manifest: Any) -> list[Any]:
    """The arguments that a call takes."""
    return arguments_of(manifest, "scalar", "array", "items")


def results_of(manifest: Any) -> list[Any]:
    """The arguments that are results."""
    return arguments_of(manifest, "result", "returned")


_OPERATIONS: Any = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def expression(text: str | int, names: Mapping[str, int]) -> int:
    """The value of an expression of whole numbers, names, + - * // and parentheses. Raises
    ValueError."""

    def value(node: ast.AST) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            found: int = _OPERATIONS[type(node.op)](value(node.left), value(node.right))
            return found
        known = ", ".join(names) or "there are no arguments that are integers"
        raise ValueError(
            f"expression {text!r}: whole numbers, + - * // and names expected: {known}"
        )

    if isinstance(text, int):
        return text
    try:
        return value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise ValueError(f"expression {text!r}: {error}") from None


def integers_of(manifest: Any, arguments: list[Any]) -> dict[str, int]:
    """The values of the arguments of a call that formulas may name: integers and lengths."""
    named = dict(zip((each["name"] for each in inputs_of(manifest)), arguments, strict=True))
    found = {name: value.value for name, value in named.items() if not isinstance(value, Memory)}
    for each in arguments_of(manifest, "length"):
        if each["of"] in named:
            found[each["name"]] = named[each["of"]].length
    return {name: value for name, value in found.items() if type(value) is int}


class Passed(NamedTuple):
    """The arguments of a function or a kernel, and what comes back from a device."""

    given: list[Any]
    returned: list[tuple[Any, int, int]]
    """Buffers whose first bytes are to be copied to an address: buffer, address, bytes."""
    states: Any
    """The statuses of the items; None if there is none."""
    results: dict[str, Any]

    @property
    def outcome(self) -> tuple[int, list[Any]]:
        """The status and the results, after the copies."""
        status = next((each for each in self.states if each), 0) if self.states else 0
        return status, [*self.results.values()]


def passed(
    manifest: Any,
    arguments: list[Any],
    items: int,
    buffer: Callable[[int, int], Any],
    number: Callable[[Any], Any],
    takes_items: bool,
    lent: Callable[[int], Any] = ctypes.create_string_buffer,
) -> Passed:
    """The arguments of a call as the function or kernel takes them.

    `buffer`: makes memory of the device with the content at an address; an array has one, however
    often it is passed. `number`: makes an argument of a number of ctypes. `takes_items`: numbers of
    items are arguments. `lent`: makes memory of so many bytes, at least 1, for an array of a group.
    """
    named = dict(zip((each["name"] for each in inputs_of(manifest)), arguments, strict=True))
    results = {each["name"]: SCALARS[each["type"]]() for each in results_of(manifest)}
    states: Any = None
    if arguments_of(manifest, "status"):
        states = (ctypes.c_int32 * max(1, items))()
    arrays: dict[Any, Any] = {}
    lengths = {
        each["of"]: named[each["of"]].length
        for each in arguments_of(manifest, "length")
        if each["of"] in named
    }
    for each in arguments_of(manifest, "lent"):
        lengths[each["name"]] = expression(each["shape"][0], integers_of(manifest, arguments))
    made = Passed([], [], states, results)
    for each in manifest["arguments"]:
        kind = each["kind"]
        value: Any = named.get(each["name"])
        content: Any
        if kind == "length":
            made.given.append(number(SCALARS[each["type"]](lengths[each["of"]])))
        elif kind == "lent":
            made.given.append(lent(lengths[each["name"]] * WIDTHS[each["type"]] + 1))
        elif kind == "scalar" or (kind == "items" and takes_items):
            made.given.append(number(value))
        elif kind == "array":
            address, size = value.address, value.length * WIDTHS[each["type"]]
            if value not in arrays:
                arrays[value] = buffer(address, size)
            made.given.append(arrays[value])
            if each["direction"] != "in":
                made.returned.append((arrays[value], address, size))
        elif kind in ("result", "status"):
            content = states if kind == "status" else results[each["name"]]
            address, size = ctypes.addressof(content), ctypes.sizeof(content)
            made.given.append(buffer(address, size))
            made.returned.append((made.given[-1], address, size))
    return made


def fault(call: Call, manifest: Any, vector: Vector) -> str | None:
    """The first fault of a call, in words; None if all is as expected."""
    kinds = inputs_of(manifest)
    if len(kinds) != len(vector.arguments):
        raise ValueError(f"vector {vector.number} has {len(vector.arguments)} arguments")
    given: list[Any] = []
    arrays: dict[int, tuple[Any, Elements, int]] = {}
    for place, (kind, argument) in enumerate(zip(kinds, vector.arguments, strict=True)):
        width = WIDTHS[kind["type"]]
        if isinstance(argument, int):
            given.append(SCALARS[kind["type"]].from_buffer_copy(argument.to_bytes(width, "little")))
        elif argument.same is not None:
            given.append(given[argument.same])
        else:
            content = b"".join(bits.to_bytes(width, "little") for bits in argument.bits)
            buffer = ctypes.create_string_buffer(content, max(1, len(content)))
            arrays[place] = buffer, argument, len(content)
            given.append(Memory(ctypes.addressof(buffer), len(argument.bits)))
    status, found = call(given)
    if status != vector.status:
        return f"status {status}, expected {vector.status}"
    if status and manifest.get("launch") is not None:
        return None  # items above the lowest that fails may have run, or not
    for each, value, expected in zip(results_of(manifest), found, vector.results, strict=False):
        (bits,) = unpacked(bytes(value), each["type"])
        if not equal(bits, expected, each["type"]):
            return f"{each['name']} is {bits:x}, expected {expected:x}"
    after = dict(vector.outputs)
    for place, (buffer, before, size) in arrays.items():
        name, type_ = kinds[place]["name"], kinds[place]["type"]
        wanted = after.get(place, before.bits)
        found_fault = differing(unpacked(buffer.raw[:size], type_), wanted, name, type_)
        if found_fault is not None:
            return found_fault
    return None


def in_time(call: Callable[[], str | None], number: int) -> str | None:
    """The result of a call. One that does not end in time ends the process, with status 1."""

    def end() -> None:
        print(f"vector {number}: does not end", flush=True)
        os._exit(1)

    timer = threading.Timer(float(os.environ.get(TIME, "10")), end)
    timer.daemon = True
    timer.start()
    try:
        return call()
    finally:
        timer.cancel()


def report(folder: Path, manifest: Any, call: Call, where: str) -> int:
    """Try all vectors of a folder and print a line for each that fails; 1 if one does."""
    name = manifest["entry"]
    tried = failed = 0
    for vector in read_vectors(folder / manifest["vectors"]["file"], name):
        tried += 1
        found = in_time(lambda: fault(call, manifest, vector), vector.number)  # noqa: B023 - it is called at once
        if found is not None:
            failed += 1
            print(f"vector {vector.number}: {found}")
    sys.stdout.flush()
    if failed or not tried:
        print(f"{name}: {failed} of {tried} vectors fail ({where})")
        return 1
    print(f"{name}: {tried} vectors pass ({where})")
    return 0
