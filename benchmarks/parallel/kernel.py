# SPDX-License-Identifier: Apache-2.0
"""The hand-written OpenCL C twins, run by pyopencl on the device that the backend opencl uses.

On a device that shares the host's memory buffers are the arrays themselves; on another one arrays
are sent before, and results fetched after, what is timed: the kernels alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.benchmark import BenchmarkError
from benchmarks.parallel.program import Argument, Call, Twin, Work
from benchmarks.parallel.task import Task
from benchmarks.peers.peer import MissingError
from ferryvm.backend import BackendError

Note = Callable[[Any], object]
"""What is told the event of each kernel."""


def hand_written(
    twin: Twin,
    work: Work,
    *,
    copies: bool = False,
    device_name: str = "",
    note: Note = lambda _event: None,
) -> Task:
    """The work by kernels, on the default device unless one is named; `copies`: copies of all
    arrays to the device, and of results back, are part of what is timed. Raises MissingError where
    there is no device, or no twin, or nothing to copy."""
    if not twin.path("cl").exists():
        raise MissingError(f"no twin {twin.path('cl').name}")
    try:
        import pyopencl

        from ferryvm_backends.opencl.device import find

        device = find(device_name)
    except (ImportError, BackendError) as error:
        raise MissingError(str(error)) from None
    if not device.has_f64:
        raise MissingError(f"{device} has no f64")
    if copies and (device.shares_memory or twin.makes):
        raise MissingError("nothing is copied" if device.shares_memory else "it makes its array")
    try:
        kernels = _Kernels(pyopencl, device.handle, device.shares_memory, twin, work, note)
        return Task(kernels.run_with_copies) if copies else kernels.task()
    except pyopencl.Error as error:
        raise BenchmarkError(str(error)) from error


class _Kernels:
    def __init__(
        self, cl: Any, device: Any, shares_memory: bool, twin: Twin, work: Work, note: Note
    ) -> None:
        self.cl, self.work, self.note = cl, work, note
        context = cl.Context([device])
        self.queue = cl.CommandQueue(context)
        flags = cl.mem_flags
        how = flags.USE_HOST_PTR if shares_memory else flags.COPY_HOST_PTR
        self.context, self.flags = context, flags.READ_WRITE | how
        self.buffers: dict[int, tuple[Any, Any]] = {}
        self.program, self.twin = cl.Program(context, twin.source("cl")).build(), twin
        self.launches = [] if twin.makes else self._launches()

    def task(self) -> Task:
        """The kernels as work."""
        return Task(self._run, self._send, self._fetch)

    def _launches(self) -> list[tuple[Any, Call, list[Any]]]:
        """The kernels with their calls and arguments; the array that is made is made now."""
        calls = self.twin.kernels(self.work)
        if self.twin.makes:
            made = calls[-1].arguments[-1]
            assert isinstance(made, numpy.ndarray)
            self.work.made.append(made)
        return [
            (
                self.cl.Kernel(self.program, call.kernel),
                call,
                [self._passed(argument) for argument in call.arguments],
            )
            for call in calls
        ]

    def _passed(self, argument: Argument) -> Any:
        if isinstance(argument, numpy.ndarray):
            if id(argument) not in self.buffers:
                made = self.cl.Buffer(self.context, self.flags, hostbuf=argument)
                self.buffers[id(argument)] = made, argument
            return self.buffers[id(argument)][0]
        return numpy.int64(argument) if isinstance(argument, int) else numpy.float64(argument)

    def _run(self) -> None:
        try:
            launches = self._launches() if self.twin.makes else self.launches
            for kernel, call, arguments in launches:
                self.note(kernel(self.queue, call.range, call.local, *arguments))
            self.queue.finish()
        except self.cl.Error as error:
            raise BenchmarkError(str(error)) from error

    def run_with_copies(self) -> None:
        """Send all arrays, run the kernels, fetch the results."""
        for buffer, array in self.buffers.values():
            self.cl.enqueue_copy(self.queue, buffer, array, is_blocking=False)
        self._run()
        self._copy(is_back=True)

    def _copy(self, is_back: bool) -> None:
        arrays = [self.work.arguments[position] for position in self.work.results]
        for array in [*arrays, *self.work.made]:
            buffer, _ = self.buffers[id(array)]
            to, source = (array, buffer) if is_back else (buffer, array)
            self.cl.enqueue_copy(self.queue, to, source)
        self.queue.finish()

    def _send(self) -> None:
        if self.twin.makes:  # they are made anew
            self.buffers.clear()
        self._copy(is_back=False)

    def _fetch(self) -> None:
        self._copy(is_back=True)
