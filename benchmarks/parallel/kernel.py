# SPDX-License-Identifier: Apache-2.0
"""The hand-written OpenCL C twins, run by pyopencl on the device that the backend opencl uses.

On a device that shares the host's memory buffers are the arrays themselves; on another one arrays are
sent before, and results fetched after, what is timed: the kernels alone.
"""

from __future__ import annotations

from typing import Any

import numpy

from benchmarks.benchmark import BenchmarkError
from benchmarks.parallel.program import Argument, Twin, Work
from benchmarks.parallel.task import Task
from benchmarks.peers.peer import MissingError
from ferryvm.backend import BackendError


def hand_written(twin: Twin, work: Work) -> Task:
    """The work by kernels. Raises MissingError where there is no device, or no twin."""
    if not twin.path("cl").exists():
        raise MissingError(f"no twin {twin.path('cl').name}")
    try:
        import pyopencl

        from ferryvm_backends.opencl.device import find

        device = find()
    except (ImportError, BackendError) as error:
        raise MissingError(str(error)) from None
    if not device.has_f64:
        raise MissingError(f"{device} has no f64")
    try:
        return _Kernels(pyopencl, device.handle, device.shares_memory, twin, work).task()
    except pyopencl.Error as error:
        raise BenchmarkError(str(error)) from error


class _Kernels:
    def __init__(self, cl: Any, device: Any, shares_memory: bool, twin: Twin, work: Work) -> None:
        self.cl, self.work = cl, work
        context = cl.Context([device])
        self.queue = cl.CommandQueue(context)
        flags = cl.mem_flags
        how = flags.USE_HOST_PTR if shares_memory else flags.COPY_HOST_PTR
        self.buffers: dict[int, tuple[Any, Any]] = {
            id(array): (cl.Buffer(context, flags.READ_WRITE | how, hostbuf=array), array)
            for array in work.arguments
            if isinstance(array, numpy.ndarray)
        }
        text = twin.path("cl").read_text(encoding="utf-8")
        self.kernel = cl.Kernel(cl.Program(context, text).build(), "item")
        first = work.arguments[0]
        assert isinstance(first, int)
        self.range = twin.range(first)
        self.launches = [
            [self._passed(argument) for argument in arguments] for arguments in twin.kernels(work)
        ]

    def task(self) -> Task:
        """The kernels as work."""
        return Task(self._run, self._send, self._fetch)

    def _passed(self, argument: Argument) -> Any:
        if isinstance(argument, numpy.ndarray):
            return self.buffers[id(argument)][0]
        return numpy.int64(argument) if isinstance(argument, int) else numpy.float64(argument)

    def _run(self) -> None:
        try:
            for arguments in self.launches:
                self.kernel(self.queue, self.range, None, *arguments)
            self.queue.finish()
        except self.cl.Error as error:
            raise BenchmarkError(str(error)) from error

    def _copy(self, is_back: bool) -> None:
        for position in self.work.results:
            buffer, array = self.buffers[id(self.work.arguments[position])]
            to, source = (array, buffer) if is_back else (buffer, array)
            self.cl.enqueue_copy(self.queue, to, source)
        self.queue.finish()

    def _send(self) -> None:
        self._copy(is_back=False)

    def _fetch(self) -> None:
        self._copy(is_back=True)
