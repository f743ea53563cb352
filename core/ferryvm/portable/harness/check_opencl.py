# SPDX-License-Identifier: Apache-2.0
"""Checks an exported kernel with its golden vectors: check.py [DEVICE [FOLDER]].

It needs NumPy and pyopencl. DEVICE is a part of the name of a device; without it the first one of the first
platform is taken. The status is 1 if a vector fails, 2 if the files are damaged or there is no device.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy
import pyopencl

from ferryvm.portable.harness.golden import (
    WIDTHS,
    Vector,
    differing,
    equal,
    read_manifest,
    report,
    unpacked,
)


class Kernel:
    """The kernel of a folder on a device."""

    def __init__(self, folder: Path, manifest: Any, device: Any) -> None:
        self.manifest = manifest
        self.context = pyopencl.Context([device])
        self.queue = pyopencl.CommandQueue(self.context)
        build = manifest["build"]
        exact = bool(
            device.single_fp_config & pyopencl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        )
        division = build["division"]["flag" if exact else "otherwise"]
        text = (folder / f"{manifest['entry']}.cl").read_text(encoding="utf-8")
        program = pyopencl.Program(self.context, text).build([*build["flags"], division])
        self.kernel = pyopencl.Kernel(program, manifest["entry"])

    def buffer(self, content: bytes) -> Any:
        """Memory of the device with a content, and some more, so that it is never empty."""
        flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.COPY_HOST_PTR
        array = numpy.frombuffer(content + bytes(8), numpy.uint8)
        return pyopencl.Buffer(self.context, flags, hostbuf=array)

    def content(self, buffer: Any, size: int) -> bytes:
        """The first bytes of memory of the device."""
        array = numpy.empty(size + 8, numpy.uint8)
        pyopencl.enqueue_copy(self.queue, array, buffer)
        return array.tobytes()[:size]

    def fault(self, vector: Vector) -> str | None:
        """The first fault of a call, in words; None if all is as expected."""
        listed = self.manifest["arguments"]
        kinds = [each for each in listed if each["kind"] in ("scalar", "array", "items")]
        if len(kinds) != len(vector.arguments):
            raise ValueError(f"vector {vector.number} has {len(vector.arguments)} arguments")
        values = {each["name"]: value for each, value in zip(kinds, vector.arguments, strict=True)}
        names = [each["name"] for each in kinds]
        arrays: dict[str, Any] = {}
        results: dict[str, Any] = {}
        given: list[Any] = []
        items, states = 1, None
        for each in listed:
            name, width = each["name"], WIDTHS[each["type"]]
            value = values.get(name)
            if each["kind"] == "items":
                assert isinstance(value, int)
                items = value
            elif each["kind"] == "status":
                states = self.buffer(bytes(4 * items))
                given.append(states)
            elif each["kind"] == "result":
                results[name] = self.buffer(bytes(width))
                given.append(results[name])
            elif each["kind"] == "length":
                given.append(numpy.int64(arrays[each["of"]][1] // arrays[each["of"]][2]))
            elif isinstance(value, int):
                bits = numpy.frombuffer(value.to_bytes(width, "little"), numpy.dtype(f"u{width}"))
                given.append(bits.view(numpy.dtype(f"{each['type'][0]}{width}"))[0])
            else:
                assert value is not None
                if value.same is None:
                    content = b"".join(bits.to_bytes(width, "little") for bits in value.bits)
                    arrays[name] = self.buffer(content), len(content), width
                else:
                    arrays[name] = arrays[names[value.same]]
                given.append(arrays[name][0])
        if items:
            self.kernel(self.queue, (items,), None, *given)
        status = 0
        if states is not None:
            found = numpy.frombuffer(self.content(states, 4 * items), numpy.int32)
            status = next((int(each) for each in found if each), 0)
        if status != vector.status:
            return f"status {status}, expected {vector.status}"
        if status and self.manifest["launch"] is not None:
            return None  # items above the lowest that fails may have run, or not
        for each, wanted_bits in zip(
            (e for e in listed if e["kind"] == "result"), vector.results, strict=False
        ):
            width = WIDTHS[each["type"]]
            (found_bits,) = unpacked(self.content(results[each["name"]], width), each["type"])
            if not equal(found_bits, wanted_bits, each["type"]):
                return f"{each['name']} is {found_bits:x}, expected {wanted_bits:x}"
        after = dict(vector.outputs)
        for place, (kind, argument) in enumerate(zip(kinds, vector.arguments, strict=True)):
            if isinstance(argument, int) or argument.same is not None:
                continue
            buffer, size, _ = arrays[kind["name"]]
            is_ = unpacked(self.content(buffer, size), kind["type"])
            wanted = after.get(place, argument.bits)
            found_fault = differing(is_, wanted, kind["name"], kind["type"])
            if found_fault is not None:
                return found_fault
        return None


def device_of(part: str) -> Any:
    """The first device whose name contains a text."""
    for platform in pyopencl.get_platforms():
        for device in platform.get_devices():
            if part in platform.name or part in device.name:
                return device
    raise ValueError(f"no device has {part!r} in its name")


def check(device: Any, folder: Path) -> int:
    """Check the kernel of a folder; 1 if a vector fails."""
    manifest = read_manifest(folder)
    return report(folder, manifest, Kernel(folder, manifest, device).fault, device.name)


def main() -> int:
    """Check on the device that the command line names."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    try:
        return check(device_of(sys.argv[1] if len(sys.argv) > 1 else ""), folder)
    except (OSError, ValueError, KeyError, StopIteration, pyopencl.Error) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
