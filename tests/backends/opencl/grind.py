# SPDX-License-Identifier: Apache-2.0
"""Random programs as kernels on Oclgrind, which sees what no device tells: accesses outside of
buffers, races, values that nobody set.

    python -m tests.backends.opencl.grind SEED FIRST COUNT [--without-bounds]

Run with an .icd file of Oclgrind in OCL_ICD_VENDORS. Prints how many programs ran and how many
kernels were entered, and fails on a state that is not the reference's. What Oclgrind finds it writes
to OCLGRIND_LOG. `--without-bounds`: leave the checks of the heap's bounds out of the kernels.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import Options, RefusalError
from ferryvm.engine import Engine
from ferryvm.ir.c import operation
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.region.region import regions
from ferryvm.testing.generate import Kind, generate
from ferryvm.verify import verify
from ferryvm_backends import opencl
from ferryvm_backends.opencl import build, device

from .entering import enter

LIMITS = Limits(stack=16 << 10, heap=1 << 18, first_heap=1 << 16)
FUEL = 20_000
"""Instructions of a program, at most: Oclgrind interprets."""


def _find(name: str = "") -> device.Device:
    """Oclgrind, which computes f32 on the host's processor and so as it should."""
    (found,) = (d for d in device.devices() if d.platform == "Oclgrind")
    return dataclasses.replace(found, has_exact_f32=True)


def _build(where: device.Device, source: str, is_kept: bool) -> tuple[Any, bool]:
    """Build here and now: Oclgrind neither hangs nor crashes."""
    context = build.session(where).context
    return cl.Program(context, source).build(["-cl-std=CL1.2", "-cl-opt-disable"]), False


def _fill(queue: Any, buffer: Any, pattern: Any, offset: int, size: int) -> None:
    """Write what is to be filled: Oclgrind takes filled memory for memory that nobody set."""
    values = np.full(size, int(pattern[0]), np.uint8)
    cl.enqueue_copy(queue, buffer, values, dst_offset=offset)


def _without_bounds() -> None:
    check = operation.OperationPrinter._do_trap_if

    def left_out(self: Any, each: Any, p: str) -> None:
        if each.static[0] not in (Trap.MEMORY_OUT_OF_BOUNDS, Trap.INDEX_OUT_OF_BOUNDS):
            check(self, each, p)

    operation.OperationPrinter._do_trap_if = left_out  # type: ignore[method-assign]  # a planted fault


def main() -> None:
    """Run."""
    seed, first, count = map(int, sys.argv[1:4])
    is_broken = "--without-bounds" in sys.argv
    if is_broken:
        _without_bounds()
    device.find, build.build = _find, _build  # type: ignore[assignment]  # for this process
    cl.enqueue_fill_buffer = _fill  # type: ignore[assignment]  # the same
    backend = opencl.OpenClBackend()
    programs = kernels = 0
    for number in range(first, first + count):
        program = verify(generate(seed, number, Kind.BYTECODE))
        reference = Engine("reference", limits=LIMITS, output=lambda _: None)
        programs += 1
        stays = 0
        for region in regions(program):
            if stays > 4:
                break
            code = None
            execution = reference.start(program.program)
            if region.entry != execution.machine.control.pc:
                continue
            try:
                code = backend.compile(region, Options(counting=True))
            except RefusalError:
                continue
            machine = Machine(program, LIMITS)
            machine.control.fuel = FUEL
            status = enter(code, machine)
            kernels += 1
            stays += 1
            if not is_broken:
                _compare(program, machine, status, number)
    print(programs, kernels)


def _compare(program: Any, machine: Machine, status: Status, number: int) -> None:
    """Fail unless the machine is where the reference is after as many instructions."""
    if status is Status.LOST:
        raise AssertionError(f"program {number}: lost")
    done = FUEL - machine.control.fuel
    execution = Engine("reference", limits=LIMITS).start(program.program)
    if done:
        execution.run(done)
    found, expected = machine.snapshot(), execution.machine.snapshot()
    same = dataclasses.replace(found, status=expected.status, trap=expected.trap)
    if same != expected:
        raise AssertionError(f"program {number}: another state after {done} instructions")


if __name__ == "__main__":
    main()
