# SPDX-License-Identifier: Apache-2.0
"""Checks an exported function with its golden vectors: check.py [LIBRARY [FOLDER]].

It needs no more than the standard library of Python 3.10. The status is 1 if a vector fails, 2 if the files
are damaged.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from ferryvm.portable.harness.golden import (
    WIDTHS,
    Vector,
    differing,
    equal,
    read_manifest,
    report,
    unpacked,
)

SCALARS: Any = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


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
        name, kind = kinds[place]["name"], kinds[place]["type"]
        is_ = unpacked(buffer.raw[:size], kind)
        found_fault = differing(is_, after.get(place, before), name, kind)
        if found_fault is not None:
            return found_fault
    return None


def check(library: Path, folder: Path) -> int:
    """Check the function in a library; 1 if a vector fails."""
    manifest = read_manifest(folder)
    function = getattr(ctypes.CDLL(str(library.absolute())), manifest["entry"])
    function.restype = ctypes.c_int32
    return report(folder, manifest, lambda vector: fault(function, manifest, vector), "Python")


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
