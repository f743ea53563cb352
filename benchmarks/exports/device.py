# SPDX-License-Identifier: Apache-2.0
"""Exported OpenCL C on a device, against the same launches in ferryvm with `opencl`, called from
Python with the same arrays.

The exported kernel has buffers that are made once. On a device that shares the host's memory they
use that of these arrays, as ferryvm does; to another device each call sends all arrays, and it
fetches those that the kernel may store into. Each call waits for its end.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferryvm
from benchmarks.exports.arrays import Arrays
from benchmarks.exports.turn import Calls, Ratios
from benchmarks.opencl.device import chosen
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness.golden import expression, inputs_of, read_manifest
from ferryvm.verify import verify
from ferryvm_backends.opencl.device import Device

_LENGTH, _ROWS, _GROUP = 1 << 20, 256, 64
_SOURCE = Path(__file__).with_name("launches.skiff")


def _arguments(length: int, rows: int) -> dict[str, tuple[object, ...]]:
    """Arguments by function: the number of items or groups, then those of the launch."""
    arrays = Arrays(length, rows)
    x, y = arrays.x, arrays.y
    return {
        "daxpy": (length, 1e-9, x, y),
        "roots": (length, *arrays.single),
        "chains": (length // 16, np.zeros(length // 16, np.int64)),
        "product": (rows * rows, *arrays.matrices, rows),
        "histogram": (length, arrays.bytes, np.zeros(256, np.int32)),
        "turned": (length // _GROUP, x, np.zeros(length)),
        "totals": (length // _GROUP, x, np.zeros(length // _GROUP)),
    }


def measure_opencl(
    rounds: int, device: str | None, optimize: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Times of both, and their ratios. Raises BenchmarkError if results differ."""
    program = ferryvm.read(_SOURCE)
    verified = verify(program)
    with chosen(device) as found:
        instance = ferryvm.Engine("opencl").instantiate(program)
        clock = time.process_time if found.shares_memory else time.perf_counter
        ratios = Ratios(rounds, progress, clock)
        least = _arguments(_GROUP, 1)
        for name, arguments in _arguments(_LENGTH, _ROWS).items():
            with tempfile.TemporaryDirectory() as folder:
                made = Path(folder) / "folder"
                options = ExportOptions("opencl", optimize=optimize, vectors=1)
                export_region(verified, f"{name}/launch.1", made, options)
                exported = _Exported(made, found)
            inside = getattr(instance, name)
            ratios.add(
                name,
                Calls(exported.bound(arguments), exported.bound(least[name])),
                Calls(
                    functools.partial(inside, *arguments),
                    functools.partial(inside, *least[name]),
                ),
                arguments,
            )
        return ratios.result(f"opencl on {found.name}, --optimize {optimize}")


class _Exported:
    """An exported kernel on a device."""

    def __init__(self, folder: Path, device: Device) -> None:
        from ferryvm.portable.harness.check_opencl import Kernel, device_of

        self._manifest = read_manifest(folder)
        self._kernel = Kernel(folder, self._manifest, device_of(device.name))
        self._shares_memory = device.shares_memory

    def bound(self, arguments: Sequence[object]) -> Callable[[], object]:
        """A call with arguments. No item fails: outcomes are compared."""
        from pyopencl import enqueue_copy

        count, *rest = arguments
        assert isinstance(count, int)
        launch = self._manifest["launch"]
        number, *declared = inputs_of(self._manifest)
        size = expression(launch["items"], {number["name"]: count})
        sent, fetched, given = [], [], []
        for each, described in zip(rest, declared, strict=True):
            if isinstance(each, np.ndarray):
                buffer = self._buffer(each)
                given += [buffer, np.int64(each.size)]
                sent.append((buffer, each))
                if described["direction"] != "in":
                    fetched.append((each, buffer))
            else:
                given.append(np.float64(each) if isinstance(each, float) else np.int64(each))  # type: ignore[arg-type]  # a number
        given.append(self._buffer(np.zeros(size, np.int32)))
        copies = ([], []) if self._shares_memory else (sent, fetched)
        local = (launch["group"],) if launch.get("group") else None
        kernel, queue = self._kernel.kernel, self._kernel.queue

        def call() -> None:
            for pair in copies[0]:
                enqueue_copy(queue, *pair, is_blocking=False)
            kernel(queue, (size,), local, *given)
            for pair in copies[1]:
                enqueue_copy(queue, *pair, is_blocking=False)
            queue.finish()

        return call

    def _buffer(self, array: np.ndarray) -> Any:
        """A buffer with the elements of an array, in its memory where the device shares it."""
        from pyopencl import Buffer, mem_flags

        of_array = mem_flags.USE_HOST_PTR if self._shares_memory else mem_flags.COPY_HOST_PTR
        return Buffer(self._kernel.context, mem_flags.READ_WRITE | of_array, hostbuf=array)
