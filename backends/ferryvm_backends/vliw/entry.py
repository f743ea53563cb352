# SPDX-License-Identifier: Apache-2.0
"""Entering a program of the machine: memory there, control, memory back; all in cycles."""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Iterable

import numpy as np

from ferryvm.backend import Activity, BackendError, Code
from ferryvm.failure import described
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm.region.object_access import NO_OBJECTS, ObjectAccess
from ferryvm.verify import Verified
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.local_memory import LocalMemory
from ferryvm_backends.vliw.simulate.simulation import Simulation
from ferryvm_backends.vliw.statistics import ProgramMetrics, Totals

SLICE = 1 << 62
"""Cycles after which a program returns control: never, except in tests. It polls the host's
interrupt flag by itself."""

NEVER = 1 << 62
"""Cycles that no program takes."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)


class VliwCode(Code):
    """A program of the machine, entered through Python."""

    def __init__(
        self,
        program: Program,
        entry: int,
        verified: Verified,
        guard_limit: int,
        device: str,
        recompile_after: int = 0,
        access: ObjectAccess = NO_OBJECTS,
        is_quick: bool = False,
    ) -> None:
        """`access`: the objects that it may access; `entry`: a pc; `device`: the text that selected
        the machine; `recompile_after`: cycles after which it leaves with LONG, each time; 0: never;
        `is_quick`: as for `Simulation`."""
        self.program = program
        self.limited = program.limited
        self.totals = Totals(bundles=np.zeros(len(program.bundles), np.int64))
        self._entry, self._limit = entry, guard_limit
        self._device, self._verified = device, verified
        self._failures = dict.fromkeys(program.guards, 0)
        self._local = LocalMemory(program, verified, access)
        # Code that is replaced where it runs long need not be simulated quickly.
        self._simulation = Simulation(program, is_quick or recompile_after > 0)
        self._lost, self._has_left = "", False
        self._recompile_after = self._left = recompile_after or NEVER
        """`_left`: cycles before it leaves with LONG the next time."""
        self._function = _FUNCTION(self._enter)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    @property
    def lost(self) -> str:
        return self._lost

    @property
    def long(self) -> str:
        return f"it ran {self.totals.cycles} cycles" if self._has_left else ""

    def _enter(self, address: int) -> int:
        control = ControlBlock.from_address(address)
        status = Status.LOST
        try:
            status = self._run(control)
        except BackendError as error:
            self._lost = str(error)
        except BaseException as error:  # noqa: BLE001 - ctypes would print it and return 0
            self._lost = described(error)
        control.status = status
        return int(status)

    def _run(self, control: ControlBlock) -> Status:
        """Run until it leaves; the host's memory is as it was until then."""
        totals = self.totals
        totals.entries += 1
        began = time.perf_counter()
        totals.to_device += self._transfer(self._local.send(control))
        own = self._local.control
        while True:
            counts = self._simulation.run(
                self._local.memory, min(SLICE, max(self._left, 1)), control
            )
            self._left -= counts.cycles
            totals.cycles += counts.cycles
            totals.bundles += counts.bundles
            is_over = own.status == Status.INTERRUPTED
            is_long = is_over and self._left <= 0
            if not is_over or own.pc != self._entry or control.interrupt or is_long:
                break
        totals.to_host += self._transfer(self._local.fetch(control))
        totals.instructions += control.fuel - own.fuel
        ctypes.memmove(ctypes.addressof(control), ctypes.addressof(own), REGISTER_BYTES)
        control.wanted, control.wanted_type = own.wanted, own.wanted_type
        control.object_top = own.object_top
        totals.seconds += time.perf_counter() - began
        if is_long:
            self._left, self._has_left = self._recompile_after, True
        if is_over and not control.interrupt:
            return Status.LONG if is_long else Status.SLICED
        status = Status(own.status)
        return self._guard_failed(own.exit_id) if status is Status.GUARD else status

    def _transfer(self, transfers: Iterable[int]) -> int:
        """Bytes of all transfers, whose cycles are counted."""
        link, total = self.program.machine.transfer, 0
        for size in transfers:
            if size:
                self.totals.transfer_cycles += link.setup + int(-(-size // link.bytes_per_cycle))
                total += size
        return total

    def _guard_failed(self, number: int) -> Status:
        pc = self.program.guards[number]
        self._failures[pc] += 1
        return Status.GUARD if self._failures[pc] >= self._limit else Status.LEAVE

    def metrics(self) -> ProgramMetrics:
        """Its totals as they are now."""
        source = self._verified.program.source_map
        found = {
            pc: source.position(pc) for pc in (self._entry, *(l.pc for l in self.program.loops))
        }
        positions = {pc: position for pc, position in found.items() if position is not None}
        totals = dataclasses.replace(self.totals, bundles=self.totals.bundles.copy())
        arrays = self._local.arrays
        return ProgramMetrics(self.program, self._device, self._entry, positions, totals, arrays)

    def activity(self) -> Activity:
        totals = self.totals
        return Activity(
            totals.entries,
            totals.seconds,
            totals.instructions,
            dict(self._failures),
            totals.to_device,
            totals.to_host,
            arrays=self._local.arrays,
            unfinished=sum(int(totals.bundles[first]) for first in self.program.records),
        )
