# SPDX-License-Identifier: Apache-2.0
"""Random programs as kernels on Oclgrind, which sees what no device tells: accesses outside of
buffers, races, values that nobody set.

    python -m tests.backends.opencl.grind SEED FIRST COUNT [--without-bounds] [--objects]

Run with an .icd file of Oclgrind in OCL_ICD_VENDORS. Prints how many programs there were and how
many kernels were entered, and fails on a state that is not the reference's. What Oclgrind finds it
writes to OCLGRIND_LOG. `--without-bounds`: leave the checks of the heap's bounds out of the
kernels. `--objects`: run the programs of `test_objects` besides. `--launches`: run launches alone.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyopencl as cl
from tests.ir.comparison import visits

import ferryvm
from ferryvm.backend import Options, RefusalError
from ferryvm.engine import Engine
from ferryvm.ir.c import side_exit
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.difference import register_difference
from ferryvm.machine.memory_difference import memory_difference
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify
from ferryvm_backends import opencl
from ferryvm_backends.opencl import build, device
from ferryvm_backends.opencl.item import pooled, suspension
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.kernel import Kernel
from ferryvm_backends.reference import BACKEND as REFERENCE

from .entering import enter
from .test_items import launch, outcome
from .test_objects import PROGRAMS

OBJECTS = ("outside", "mixed", "arrays of u16")
"""Programs of `test_objects`."""

FUEL = 20_000
"""Instructions of a program, at most: Oclgrind interprets."""


def _find(name: str = "") -> device.Device:
    """Oclgrind, which computes f32 on the host's processor and so as it should."""
    (found,) = (d for d in device.devices() if d.platform == "Oclgrind")
    return dataclasses.replace(found, has_exact_f32=True)


def _build(
    where: device.Device, source: str, arguments: int | None = None, is_quick: bool = False
) -> bytes:
    """Nothing: it is built where it is loaded, for Oclgrind neither hangs nor crashes."""
    return b""


def _loaded(where: device.Device, source: str, payload: bytes, is_quick: bool = False) -> Any:
    context = build.session(where).context
    return cl.Program(context, source).build(["-cl-std=CL1.2", "-cl-opt-disable"])


_copy = cl.enqueue_copy


def _whole_copy(queue: Any, to: Any, source: Any, **options: Any) -> Any:
    """Write a buffer as a whole where a part of it is to be written.

    Oclgrind 21.10 notes what the host sets as if it stood at the buffer's beginning.
    """
    offset = options.get("dst_offset", 0)
    if not isinstance(to, cl.Buffer) or isinstance(source, cl.Buffer):
        return _copy(queue, to, source, **options)
    values = np.zeros(to.size, np.uint8)
    _copy(queue, values, to)
    values[offset : offset + source.nbytes] = source.view(np.uint8)
    return _copy(queue, to, values)


def _fill(queue: Any, buffer: Any, pattern: Any, offset: int, size: int) -> None:
    """Write what is to be filled: Oclgrind takes filled memory for memory that nobody set."""
    _whole_copy(queue, buffer, np.full(size, int(pattern[0]), np.uint8), dst_offset=offset)


def _without_bounds() -> None:
    check = side_exit.SideExits.do_trap_if

    def left_out(self: Any, each: Any, p: str) -> None:
        if each.static[0] not in (Trap.MEMORY_OUT_OF_BOUNDS, Trap.INDEX_OUT_OF_BOUNDS):
            check(self, each, p)

    side_exit.SideExits.do_trap_if = left_out  # type: ignore[method-assign]  # a planted fault


def main() -> None:
    """Run."""
    seed, first, count = map(int, sys.argv[1:4])
    is_broken = "--without-bounds" in sys.argv
    if is_broken:
        _without_bounds()
    device.find = _find  # type: ignore[assignment]  # for this process
    build.build, build.loaded = _build, _loaded  # the same
    cl.enqueue_fill_buffer = _fill  # type: ignore[assignment]  # the same
    cl.enqueue_copy = _whole_copy  # the same
    Kernel.run_dry = lambda self, queue: False  # type: ignore[method-assign]  # the same
    if "--launches" in sys.argv:
        print(count, _launches())
        return
    backend = opencl.OpenClBackend()
    kernels = 0
    programs = [generate(seed, n, ProgramKind.BYTECODE) for n in range(first, first + count)]
    if "--objects" in sys.argv:
        programs += [ferryvm.assemble(PROGRAMS[name]) for name in OBJECTS]
    for program in programs:
        for region, machine in visits(verify(program), times=1):
            kernels += _enter(backend, region, machine.copy(), is_broken)
    print(count, kernels)


class _NoPool:
    """A pool that has no threads: Oclgrind knows the thread alone that has made the queue."""

    def start(self, threads: int) -> None:
        """Start none."""

    def submit(self, actions: Sequence[Callable[[], None]]) -> None:
        """Run the actions."""
        for action in actions:
            action()


def _launches() -> int:
    """Run ranges of items, each to the state of the loop; their number."""
    ItemKernel.run_dry = lambda self, queue: False  # type: ignore[method-assign]  # as for Kernel
    pooled.pool = _NoPool  # type: ignore[assignment]  # for this process
    suspension.SLICE, suspension._ENOUGH = 64, dict.fromkeys((True, False), 4)
    backend = opencl.OpenClBackend(wraps=False)
    for case in LAUNCHES:
        region, execution = launch(case)
        code = backend.compile(region, Options(cache=False))
        assert code.ranges is not None
        code.ranges.run(execution.machine, 0, case[0])
        expected = outcome(Engine("threaded").start(region.verified.program))[0]
        found = outcome(execution)[0]
        if found != expected:
            raise AssertionError(f"{case}: {found}, not {expected}")
    return len(LAUNCHES)


LAUNCHES = [(50, 0, 2, 0), (50, 1, 10, 3), (50, 2, 99, 20), (50, 3, 7, 1), (50, 4, 30, 5)]
"""Cases of `test_items`."""


def _enter(backend: opencl.OpenClBackend, region: Region, machine: Machine, broken: bool) -> bool:
    """Run a region's kernel once; fail if the reference does not come to the same state."""
    try:
        code = backend.compile(region, Options(counting=True, cache=False))
    except RefusalError:
        return False
    twin = machine.copy()
    machine.control.fuel = FUEL
    status = enter(code, machine)
    done = twin.control.fuel = FUEL - machine.control.fuel
    if broken:
        return True
    if status is Status.LOST:
        raise AssertionError(f"{region}: {code.lost}")
    if done:
        REFERENCE.prepare(region.verified).enter(twin, counting=True)
    wrong = register_difference(twin.control, machine.control) or memory_difference(
        twin, twin.snapshot(), machine.snapshot()
    )
    if wrong is not None:
        raise AssertionError(f"{region}: after {done} instructions {wrong}")
    return True


if __name__ == "__main__":
    main()
