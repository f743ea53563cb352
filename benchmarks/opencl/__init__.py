# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the opencl backend, on one device: `python -m benchmarks opencl`.

    whole      the nine programs and looptest, compiled before, against llvm
    forms      looptest plain and mixed, with and without the peephole
    mixed      whole runs of the nine, what is hot to opencl, against the interpreter alone
    entering   entering a kernel and leaving it, against pyopencl's own call
    native     loops that do not fold, against C
    starting   from the cache to the first result, in a new process
    residency  bytes that calls with the same two arrays copy
    overlap    two launches that do not depend on each other, with copies beside kernels
    short      launches of arrays that remain on the device, and of few items, against pyopencl

All is measured in this process, in interleaved rounds, except for C and the last part. The caches
are empty at the start and kept until the end, so what an earlier part has built is found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks import record
from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.opencl import (
    device,
    entering,
    form,
    mixed,
    native,
    overlap,
    residency,
    short,
    starting,
)
from benchmarks.opencl.part import Failed, Part
from benchmarks.opencl.program import PROGRAMS, is_of_nine, named
from ferryvm_backends.opencl.device import Device, devices

__all__ = ["PARTS", "PROGRAMS", "Settings", "as_json", "measure", "named"]

Progress = Callable[[str], None]
_QUICK_TIMES = 200


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured, and how often."""

    benchmarks: Sequence[Benchmark]
    """For the parts that are about several programs."""
    rounds: int
    scale: Scale | None
    """Other sizes than the goals are for."""

    @property
    def of_nine(self) -> list[Benchmark]:
        """Those with twins in other languages."""
        return [benchmark for benchmark in self.benchmarks if is_of_nine(benchmark)]

    @property
    def times(self) -> int:
        """Entries of a kernel that make a measurement."""
        return _QUICK_TIMES if self.scale is Scale.QUICK else entering.TIMES

    @property
    def array_bytes(self) -> int:
        """Bytes of arrays that are passed."""
        return residency.QUICK_BYTES if self.scale is Scale.QUICK else residency.BYTES

    @property
    def chain_sizes(self) -> Sequence[int]:
        """Doubles of the arrays of short launches."""
        return short.QUICK_SIZES if self.scale is Scale.QUICK else short.SIZES

    @property
    def steps(self) -> int:
        """Iterations of an item that computes long."""
        return overlap.QUICK_STEPS if self.scale is Scale.QUICK else overlap.STEPS


PARTS: dict[str, Callable[[Settings, Device, Progress], Part]] = {
    "whole": lambda s, _device, p: native.over_llvm(s.benchmarks, s.rounds, s.scale, p),
    "forms": lambda s, _device, p: form.forms(s.rounds, s.scale, p),
    "mixed": lambda s, _device, p: mixed.mixed(s.of_nine, s.rounds, s.scale, p),
    "entering": lambda s, d, p: entering.entering(d, s.rounds, s.times, p),
    "native": lambda s, _device, p: native.over_gcc(s.rounds, s.scale, p),
    "starting": lambda s, _device, p: starting.starting(s.rounds, p),
    "residency": lambda s, _device, p: residency.residency(s.array_bytes, p),
    "overlap": lambda s, _device, p: overlap.overlap(s.array_bytes // 2, s.steps, s.rounds, p),
    "short": lambda s, d, p: short.short(d, s.chain_sizes, s.rounds, p),
}
"""By the name that --parts takes."""


def measure(
    names: Sequence[str], settings: Settings, on: Device, progress: Progress
) -> Iterator[Part]:
    """The parts as they are done; one that cannot be measured is a fault, and the next one goes
    on."""
    for name in names:
        progress(f"--- {name}")
        try:
            part = PARTS[name](settings, on, progress)
        except BenchmarkError as error:
            part = Failed(name, str(error))
        yield part


def as_json(parts: Sequence[Part], settings: Settings, on: Device) -> dict[str, Any]:
    """All parts, with the device, the machine and the commit."""
    return {
        "schema": record.SCHEMA,
        "kind": "opencl",
        **record.circumstances(),
        "rounds": settings.rounds,
        "device": device.as_json(on),
        "devices": [device.as_json(one) for one in devices()],
        "parts": {part.name: part.as_json() for part in parts},
        "faults": [fault for part in parts for fault in part.faults()],
    }
