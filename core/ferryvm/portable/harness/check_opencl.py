# SPDX-License-Identifier: Apache-2.0
"""Checks an exported kernel with its golden vectors: check.py [DEVICE [FOLDER]].

It needs NumPy and pyopencl. DEVICE is a part of the name of a device; without it the first one of
the first platform is taken. The status is 1 if a vector fails, 2 if the files are damaged or there
is no device for them.
"""

from __future__ import annotations

import ctypes
import math
import sys
from pathlib import Path
from typing import Any

try:
    import numpy
    import pyopencl
except ImportError as missing:
    if __name__ != "__main__":
        raise
    print(f"check.py: {missing}; it needs: pip install numpy pyopencl", file=sys.stderr)
    sys.exit(2)

from ferryvm.portable.harness.golden import (
    expression,
    integers_of,
    passed,
    read_manifest,
    report,
)


class Kernel:
    """The kernel of a folder on a device."""

    def __init__(self, folder: Path, manifest: Any, device: Any) -> None:
        self.manifest = manifest
        self.context = pyopencl.Context([device])
        self.queue = pyopencl.CommandQueue(self.context)
        build = manifest["build"]
        options = list(build["flags"])
        exact = bool(
            device.single_fp_config & pyopencl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        )
        if "division" in build:
            options.append(build["division"]["flag" if exact else "otherwise"])
        code: Any
        if manifest["target"] == "spirv":
            if not takes_spirv(device):
                raise ValueError(f"{device.name} takes no SPIR-V; name another device")
            (name,) = build.get("sources") or [f"{manifest['entry']}.spv"]
            code = (folder / name).read_bytes()
        else:
            names = build.get("sources") or [f"{manifest['entry']}.cl"]
            code = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
        program = pyopencl.Program(self.context, code).build(options)
        self.kernel = pyopencl.Kernel(program, manifest["entry"])

    def buffer(self, address: int, size: int) -> Any:
        """Memory of the device with a content, and some more, so that it is never empty."""
        flags = pyopencl.mem_flags.READ_WRITE | pyopencl.mem_flags.COPY_HOST_PTR
        content = ctypes.string_at(address, size) + bytes(8)
        array = numpy.frombuffer(content, numpy.uint8)
        return pyopencl.Buffer(self.context, flags, hostbuf=array)

    def fetch(self, buffer: Any, address: int, size: int) -> None:
        """Copy the first bytes of memory of the device to an address."""
        if size:
            to = numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
            pyopencl.enqueue_copy(self.queue, to, buffer)

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        launch = self.manifest.get("launch")
        items: tuple[int, ...] = (1,)
        group: tuple[int, ...] | None = None
        if launch is not None:
            integers = integers_of(self.manifest, arguments)
            items = _sizes(launch["items"], integers)
            group = _sizes(launch["group"], integers) if launch.get("group") else None
        count = math.prod(items)
        local = pyopencl.LocalMemory
        made = passed(self.manifest, arguments, count, self.buffer, _number, False, local)
        if all(items):
            self.kernel(self.queue, items, group, *made.given)
        for buffer, place, size in made.returned:
            self.fetch(buffer, place, size)
        return made.outcome


def _number(value: Any) -> Any:
    """A number of ctypes as one of NumPy."""
    return numpy.frombuffer(bytes(value), numpy.dtype(type(value)))[0]


def _sizes(value: Any, integers: dict[str, int]) -> tuple[int, ...]:
    """Sizes of a launch, one for each dimension."""
    each = value if isinstance(value, list) else [value]
    return tuple(expression(size, integers) for size in each)


def takes_spirv(device: Any) -> bool:
    """True if a device takes programs in SPIR-V."""
    if "cl_khr_il_program" in device.extensions.split():
        return True
    try:
        return bool(device.il_version)
    except pyopencl.Error:  # OpenCL 1.2
        return False


NO_PLATFORM = (
    "no OpenCL platform is installed: install the driver of the device, or PoCL for the processor "
    "(pocl-opencl-icd of Debian and Ubuntu; pip install pocl-binary-distribution)"
)


def _platforms() -> list[Any]:
    """The platforms of OpenCL. Raises ValueError if there is none."""
    try:
        found: list[Any] = pyopencl.get_platforms()
    except pyopencl.Error:  # the loader's PLATFORM_NOT_FOUND_KHR
        found = []
    if not found:
        raise ValueError(NO_PLATFORM)
    return found


def device_of(part: str) -> Any:
    """The first device whose name contains a text. Raises ValueError if there is none."""
    for platform in _platforms():
        for device in platform.get_devices():
            if part in platform.name or part in device.name:
                return device
    raise ValueError(f"no device has {part!r} in its name")


def check(device: Any, folder: Path) -> int:
    """Check the kernel of a folder; 1 if a vector fails."""
    manifest = read_manifest(folder)
    return report(folder, manifest, Kernel(folder, manifest, device).call, device.name)


def main() -> int:
    """Check on the device that the command line names."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    try:
        return check(device_of(sys.argv[1] if len(sys.argv) > 1 else ""), folder)
    except ValueError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    except (OSError, KeyError, StopIteration, pyopencl.Error) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
