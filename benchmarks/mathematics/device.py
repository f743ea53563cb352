# SPDX-License-Identifier: Apache-2.0
"""Kernel time of functions on an OpenCL device: ours in OpenCL C, and the driver's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from benchmarks.benchmark import BenchmarkError
from benchmarks.mathematics.operand import ordinary
from benchmarks.mathematics.repeated import Array
from benchmarks.measure import interleave, median
from benchmarks.peers.peer import MissingError
from ferryvm.backend import BackendError
from ferryvm.ir.c.expression import function_name
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.isa.pure_function import PureFunction

REPEATED = 8
"""Applications in a work-item, to its own operands, so that memory is a small part."""

OWN = "own"
"""Constants are looked up in the way that `ferryvm.ir.c.opencl` chooses for the device."""

_KERNEL = """
__kernel void {name}({parameters}, __global {type} *restrict to) {{
    size_t place = get_global_id(0);
    {type} sum = 0;
    for (int n = 0; n < {repeated}; n++) sum += {function}({arguments});
    to[place] = sum;
}}
"""


@dataclasses.dataclass
class DeviceRow:
    """One function: seconds of kernels in each round."""

    function: PureFunction
    ours: dict[str, list[float]]
    """By the way in which tables of constants are looked up, of those that the driver compiles; the
    first one counts."""
    drivers: list[float]

    @property
    def ratio(self) -> float:
        """The median of the ratios of the rounds."""
        return next(iter(self.ratios().values()))

    def ratios(self) -> dict[str, float]:
        """The same for each way to look up constants."""
        return {
            tables: median([a / b for a, b in zip(seconds, self.drivers, strict=True)])
            for tables, seconds in self.ours.items()
        }

    def as_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return {"ours": self.ours, "drivers": self.drivers, "ratios": self.ratios()}


def measure(
    functions: Sequence[PureFunction],
    name: str,
    rounds: int,
    count: int,
    tables: Sequence[str],
    progress: Callable[[str], None],
) -> tuple[str, list[DeviceRow]]:
    """The device, and a row for each function that OpenCL C has, too; `tables`: values of the macro
    FERRY_TABLES (`ferryvm.ir.c.opencl`), or `OWN`. Raises MissingError."""
    try:
        import pyopencl

        from ferryvm_backends.opencl.device import find

        device = find(name)
    except (ImportError, BackendError) as error:
        raise MissingError(str(error)) from None
    try:
        bench = _Bench(pyopencl, device, count, tables, progress)
        rows = []
        for function in functions:
            rows.append(bench.row(function, rounds))
            shown = ", ".join(f"{ratio:.2f}" for ratio in rows[-1].ratios().values())
            progress(f"{function} on {device}: {shown} of the driver's")
        return str(device), rows
    except pyopencl.Error as error:
        raise BenchmarkError(str(error)) from error


class _Bench:
    def __init__(
        self,
        cl: Any,
        device: Any,
        count: int,
        tables: Sequence[str],
        progress: Callable[[str], None],
    ) -> None:
        self.cl, self.device, self.count, self.tables = cl, device, count, tables
        self.progress = progress
        self.context = cl.Context([device.handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, properties=profiling)

    def row(self, function: PureFunction, rounds: int) -> DeviceRow:
        flags = self.cl.mem_flags
        arrays = ordinary(function, self.count * REPEATED)
        buffers = [
            self.cl.Buffer(self.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
            for array in arrays
        ]
        to = self.cl.Buffer(self.context, flags.WRITE_ONLY, self.count * arrays[0].itemsize)
        drivers = ""
        kernels = {}
        for name in (drivers, *self.tables):
            options = [] if name in (drivers, OWN) else [f"-DFERRY_TABLES={name}"]
            try:
                program = self.cl.Program(self.context, self.text(function)).build(options)
            except self.cl.Error as error:
                if name in (drivers, self.tables[0]):
                    raise
                self.progress(f"{function}, tables {name}: {str(error).splitlines()[0]}")
                continue
            kernels[name] = self.cl.Kernel(program, "ours" if name else "drivers")

        def run(name: str) -> float:
            event = kernels[name](self.queue, (self.count,), None, *buffers, to)
            event.wait()
            return 1e-9 * float(event.profile.end - event.profile.start)

        results: dict[str, Array] = {}
        for name in kernels:
            run(name)
            results[name] = numpy.empty(self.count, arrays[0].dtype)
            self.cl.enqueue_copy(self.queue, results[name], to)
        for name in kernels.keys() - {drivers}:
            if not numpy.allclose(results[name], results[drivers], rtol=1e-4, atol=1e-3):
                raise BenchmarkError(f"{function}: results differ from the driver's")
            if not numpy.array_equal(results[name], results[self.tables[0]], equal_nan=True):
                raise BenchmarkError(f"{function}: results differ by the way to look up constants")
        found: dict[str, list[float]] = {name: [] for name in kernels}
        tasks = {name: (lambda name=name: run(name)) for name in kernels}
        for name, seconds in interleave(tasks, rounds, {}):
            found[name].append(seconds)
        return DeviceRow(function, found, found.pop(drivers))

    def text(self, function: PureFunction) -> str:
        """Both kernels of a function."""
        from ferryvm_backends.opencl.text import COPIED, dialect

        of = dialect(self.device, COPIED)
        used = {function_name(function)}
        ours = function_definitions(of, used)
        type_ = of.types[function.result]
        names = "xy"[: len(function.parameters)]
        shared = {
            "parameters": ", ".join(f"__global const {type_} *restrict {name}" for name in names),
            "type": type_,
            "repeated": REPEATED,
            "arguments": ", ".join(f"{name}[n * get_global_size(0) + place]" for name in names),
        }
        own = _KERNEL.format(name="ours", function=function_name(function), **shared)
        theirs = function.name.partition(".")[2]
        drivers = _KERNEL.format(name="drivers", function=theirs, **shared)
        return "\n".join([of.prelude, *of.definitions(used), *ours, own, drivers])
