# SPDX-License-Identifier: Apache-2.0
"""Checks an exported kernel in PTX with its golden vectors: check.py [DEVICE [FOLDER]].

It needs the standard library of Python 3.10, and the driver of CUDA. DEVICE is a number; without it
the first device is taken. The status is 1 if a vector fails, 2 if the files are damaged or there is
no device.
"""

from __future__ import annotations

import ctypes
import math
import sys
from pathlib import Path
from typing import Any

from ferryvm.portable.harness.golden import (
    expression,
    integers_of,
    passed,
    read_manifest,
    report,
)

_LOG = 4096
_INFO_LOG, _INFO_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER, its size in bytes
_NAME = 96


class Driver:
    """CUDA's driver, with a context on a device. Raises ValueError if there is none."""

    def __init__(self, device: int) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise ValueError(f"the driver of CUDA is not here: {error}") from None
        self("cuInit", 0)
        handle, self.context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(handle), device)
        name = ctypes.create_string_buffer(_NAME)
        self("cuDeviceGetName", name, _NAME, handle)
        self.name = name.value.decode()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), handle)
        self.enter()

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises ValueError for an error."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            raise ValueError(f"{name}: {(text.value or b'error').decode()} ({status})")

    def enter(self) -> None:
        """Make its context that of this thread."""
        self("cuCtxSetCurrent", self.context)

    def module(self, text: bytes) -> ctypes.c_void_p:
        """A module of PTX. Raises ValueError with what the driver says."""
        log = ctypes.create_string_buffer(_LOG)
        options = (ctypes.c_int * 2)(_INFO_LOG, _INFO_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
        made = ctypes.c_void_p()
        try:
            self("cuModuleLoadDataEx", ctypes.byref(made), text, 2, options, values)
        except ValueError as error:
            said = " ".join(log.value.decode(errors="replace").split())
            raise ValueError(f"{error}: {said}") from None
        return made


class Kernel:
    """The kernel of a folder on a device."""

    def __init__(self, folder: Path, manifest: Any, driver: Driver) -> None:
        self.manifest, self.driver = manifest, driver
        (name,) = manifest["build"].get("sources") or [f"{manifest['entry']}.ptx"]
        self.module = driver.module((folder / name).read_bytes() + b"\0")
        self.function = ctypes.c_void_p()
        entry = manifest["entry"].encode()
        driver("cuModuleGetFunction", ctypes.byref(self.function), self.module, entry)

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        self.driver.enter()
        buffers: list[ctypes.c_uint64] = []
        try:
            return self._call(arguments, buffers)
        finally:
            for buffer in buffers:
                self.driver("cuMemFree_v2", buffer)

    def _call(self, arguments: list[Any], buffers: list[ctypes.c_uint64]) -> tuple[int, list[Any]]:
        items, group = self._sizes(arguments)
        groups = [-(-count // size) for count, size in zip(items, group, strict=True)]

        def buffer(address: int, size: int) -> ctypes.c_uint64:
            made = ctypes.c_uint64()
            self.driver("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size + 8))
            buffers.append(made)
            if size:
                place = ctypes.c_void_p(address)
                self.driver("cuMemcpyHtoD_v2", made, place, ctypes.c_size_t(size))
            return made

        made = passed(
            self.manifest, arguments, math.prod(items), buffer, lambda number: number, True
        )
        pointers = (ctypes.c_void_p * len(made.given))(*map(ctypes.addressof, made.given))
        if all(items):
            sizes = (*groups, *group)
            self.driver("cuLaunchKernel", self.function, *sizes, 0, None, pointers, None)
            self.driver("cuCtxSynchronize")
        for memory, address, size in made.returned:
            if size:
                to = ctypes.c_void_p(address)
                self.driver("cuMemcpyDtoH_v2", to, memory, ctypes.c_size_t(size))
        return made.outcome

    def _sizes(self, arguments: list[Any]) -> tuple[list[int], list[int]]:
        """Work-items and work-items of a group, in three dimensions."""
        launch = self.manifest.get("launch") or {"items": 1}
        integers = integers_of(self.manifest, arguments)

        def sizes(value: Any) -> list[int]:
            each = value if isinstance(value, list) else [value]
            found = [expression(size, integers) for size in each]
            return found + [1] * (3 - len(found))

        return sizes(launch["items"]), sizes(launch.get("group") or 1)


def check(device: int, folder: Path) -> int:
    """Check the kernel of a folder; 1 if a vector fails."""
    manifest = read_manifest(folder)
    driver = Driver(device)
    return report(folder, manifest, Kernel(folder, manifest, driver).call, driver.name)


def main() -> int:
    """Check on the device that the command line names."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    try:
        return check(int(sys.argv[1]) if len(sys.argv) > 1 else 0, folder)
    except (OSError, ValueError, KeyError, StopIteration) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
