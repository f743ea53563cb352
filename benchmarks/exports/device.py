# SPDX-License-Identifier: Apache-2.0
"""Exported OpenCL C on a device, against the same launches in ferryvm with `opencl`, called from
Python with the same arrays.

The exported kernel has buffers that use the memory of these arrays, as ferryvm has on a processor;
they are made once. Each call waits for its end.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferryvm
from benchmarks.exports.turn import Ratios
from benchmarks.opencl.device import chosen
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness.golden import expression, read_manifest
from ferryvm.verify import verify

_LENGTH, _ROWS, _GROUP = 1 << 20, 256, 64
_SOURCE = Path(__file__).with_name("launches.skiff")


def _arguments() -> dict[str, tuple[object, ...]]:
    """Arguments by function: the number of items or groups, then those of the launch."""
    chance = np.random.default_rng(7)
    x, y = chance.uniform(-1, 1, (2, _LENGTH))
    single = chance.uniform(0, 8, (2, _LENGTH)).astype(np.float32)
    a, b, c = chance.uniform(-1, 1, (3, _ROWS * _ROWS))
    bytes_ = chance.integers(0, 256, _LENGTH, dtype=np.uint8)
    return {
        "daxpy": (_LENGTH, 1e-9, x, y),
        "roots": (_LENGTH, single[0], single[1]),
        "chains": (_LENGTH // 16, np.zeros(_LENGTH // 16, np.int64)),
        "product": (_ROWS * _ROWS, a, b, c, _ROWS),
        "histogram": (_LENGTH, bytes_, np.zeros(256, np.int32)),
        "turned": (_LENGTH // _GROUP, x, np.zeros(_LENGTH)),
        "totals": (_LENGTH // _GROUP, x, np.zeros(_LENGTH // _GROUP)),
    }


def measure_opencl(
    rounds: int, device: str | None, optimize: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Seconds of both, and their ratios. Raises BenchmarkError if results differ."""
    program = ferryvm.read(_SOURCE)
    verified = verify(program)
    with chosen(device) as found:
        instance = ferryvm.Engine("opencl").instantiate(program)
        ratios = Ratios(rounds, progress)
        for name, arguments in _arguments().items():
            with tempfile.TemporaryDirectory() as folder:
                made = Path(folder) / "folder"
                options = ExportOptions("opencl", optimize=optimize, vectors=1)
                export_region(verified, f"{name}/launch.1", made, options)
                outside = _imported(made, found.name, arguments)
            inside = functools.partial(getattr(instance, name), *arguments)
            ratios.add(name, outside, inside, arguments)
        return ratios.result(f"opencl on {found.name}, --optimize {optimize}")


def _imported(folder: Path, device: str, arguments: Sequence[object]) -> Callable[[], object]:
    """A call of an exported kernel with arguments. No item fails: outcomes are compared."""
    import pyopencl as cl

    from ferryvm.portable.harness.check_opencl import Kernel, device_of

    manifest = read_manifest(folder)
    kernel = Kernel(folder, manifest, device_of(device))
    shared = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    count, *rest = arguments
    assert isinstance(count, int)
    size = expression(manifest["launch"]["items"], {manifest["arguments"][0]["name"]: count})
    given: list[Any] = []
    for each in rest:
        if isinstance(each, np.ndarray):
            given += [cl.Buffer(kernel.context, shared, hostbuf=each), np.int64(each.size)]
        else:
            given.append(np.float64(each) if isinstance(each, float) else np.int64(each))  # type: ignore[call-overload]  # a number
    states = np.zeros(size, np.int32)
    given.append(cl.Buffer(kernel.context, shared, hostbuf=states))
    group = manifest["launch"].get("group")
    local = (group,) if group else None

    def call() -> None:
        kernel.kernel(kernel.queue, (size,), local, *given)
        kernel.queue.finish()

    return call
