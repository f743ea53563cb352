# SPDX-License-Identifier: Apache-2.0
"""The contenders on kernels of groups: launches by backends of ferryvm, and OpenCL C by drivers, in
one process.

A contender of ferryvm that does not end in time is stopped and takes no part: where a backend does
not form regions between barriers, the engine passes control to each item after each of them.
"""

from __future__ import annotations

import dataclasses
import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

from benchmarks.groups.sample import Call, Sample, Sizes, Work
from benchmarks.parallel.contender import launching
from benchmarks.parallel.kernel import Note, hand_written
from benchmarks.parallel.task import Make, Task
from benchmarks.peers.peer import MissingError
from ferryvm.backend import BackendError, RefusalError
from ferryvm.engine.instance import Instance
from ferryvm.engine.result import ProgramInterrupted

POCL, INTEL = "Portable Computing Language:pthread", "Intel(R) OpenCL:"
"""The devices, by name."""

LLVM, OPENCL, OPENCL_C = "llvm", "opencl", "OpenCL C"
"""On all cores; on the device, by the backend opencl and by kernels written by hand."""
INTEL_OPENCL, INTEL_C = "opencl on Intel", "OpenCL C on Intel"
NAMES = (LLVM, OPENCL, OPENCL_C, INTEL_OPENCL, INTEL_C)


@dataclasses.dataclass(frozen=True)
class Subject:
    """A kernel of one size, in the place of a program that all data-parallel work is measured
    with."""

    sample: Sample
    sizes: Sizes
    makes: bool = False

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.sample.name

    def size(self, _name: str) -> Sizes:
        """The sizes."""
        return self.sizes

    def make(self, sizes: Sizes) -> Work:
        """The arguments."""
        return self.sample.make(sizes)

    def path(self, suffix: str) -> Path:
        """Where the kernel is in another language."""
        return self.sample.path(suffix)

    def source(self, suffix: str) -> str:
        """The kernel in OpenCL C, with its constants."""
        constants = ((name, value) for name, value in self.sizes.items() if name.isupper())
        lines = "".join(f"#define {name} {value}\n" for name, value in constants)
        return lines + self.path(suffix).read_text(encoding="utf-8")

    def kernels(self, work: Work) -> list[Call]:
        """The calls of the kernels in OpenCL C. Raises MissingError if there are none."""
        if self.sample.kernels is None:
            raise MissingError(f"{self.name} is not written in OpenCL C")
        return self.sample.kernels(work, self.sizes)


def contenders(device: str, limit: float) -> Mapping[str, Make]:
    """All contenders by name; `device`: of those that are not Intel's; `limit`: seconds of
    processor time after which a run of ferryvm is stopped."""
    return {
        LLVM: lambda subject, work: _ferry(subject, work, "llvm", "", limit),
        OPENCL: lambda subject, work: _ferry(subject, work, "opencl", device, limit),
        OPENCL_C: lambda subject, work: written(subject, work, device),
        INTEL_OPENCL: lambda subject, work: _ferry(subject, work, "opencl", INTEL, limit),
        INTEL_C: lambda subject, work: written(subject, work, INTEL),
    }


def written(subject: Subject, work: Work, device: str, note: Note = lambda _event: None) -> Task:
    """The kernel in OpenCL C on a device; `note`: is told the event of each run. Raises
    MissingError."""
    if subject.sample.kernels is None:
        raise MissingError(f"no twin {subject.path('cl').name}")
    return hand_written(subject, work, device_name=device, note=note)


def _ferry(subject: Subject, work: Work, backend: str, device: str, limit: float) -> Task:
    if device:
        from ferryvm_backends.opencl.device import find

        try:
            find(device)
        except BackendError as error:
            raise MissingError(str(error)) from None
    engine = launching(backend, threads=0 if backend == LLVM else 1, device=device)
    instance = engine.instantiate(subject.sample.program(subject.sizes))
    call = instance.exports["work"]

    watcher = _Watcher(instance)

    def run() -> None:
        watcher.end = time.process_time() + limit
        try:
            call(*work.arguments)
        except RefusalError as error:
            raise MissingError(str(error)) from None
        except ProgramInterrupted:
            raise MissingError(f"it takes more than {limit:g} s of processor time") from None
        finally:
            watcher.end = None

    return Task(run)


class _Watcher:
    """Interrupts calls that take too long. Its thread begins before any call, so that no call pays
    for it."""

    end: float | None = None
    """The processor time at which a call is to have ended, which other work of the machine does not
    lengthen; None: there is no call."""

    def __init__(self, instance: Instance) -> None:
        self._instance = weakref.ref(instance)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while (instance := self._instance()) is not None:
            if self.end is not None and time.process_time() > self.end:
                instance.interrupt()
            del instance
            time.sleep(0.05)
