# SPDX-License-Identifier: Apache-2.0
"""Ranges that run by one native call, in the thread that launches.

as the last one, and short ─> one native call ─┬─ done
      └─ no ─> a thread of the pool            └─ left, failed: nobody knows what the device has;
                                                  all is sent again, by a thread of the pool
"""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm_backends.opencl.item import ItemShape
from ferryvm_backends.opencl.item.memory import ItemMemory
from ferryvm_backends.opencl.item.pooled import PooledRanges, is_inside, lock
from ferryvm_backends.opencl.item.prepared import PreparedRange
from ferryvm_backends.opencl.item.resident_range import ResidentRange
from ferryvm_backends.opencl.launch import RangeStatus
from ferryvm_backends.opencl.left_elements import LeftElements


class AtOnceRanges(PooledRanges):
    """Runs ranges that are as earlier ones by native calls."""

    def __init__(self, memory: ItemMemory, shape: ItemShape) -> None:
        super().__init__(memory, shape)
        self.entries = 0
        self.seconds = 0.0
        """In kernels."""
        self._prepared: PreparedRange | None = None
        """The range that has run last, if another one may be as that."""
        self._may_be_at_once = True
        """False since items have left a range that ran by one native call: all was sent again."""

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        prepared = self._prepared if self._may_be_at_once else None
        if prepared is not None and self._run_at_once(prepared, machine, first, limit):
            self.entries += 1
            self.seconds += prepared.seconds
            seconds = prepared.seconds * self._threads if self._shape.is_block else None
            return RangeOutcome(limit - first, 0, seconds, bool(machine.control.interrupt))
        return super().run(machine, first, limit)

    def _run_at_once(
        self, prepared: PreparedRange, machine: Machine, first: int, limit: int
    ) -> bool:
        """True if a range that is as the last one has run, by one native call in this thread. An
        exception of a signal handler leaves an exact state: it comes in front of the call or behind
        it. Raises BackendError, with the machine as before."""
        control, memory, buffers = machine.control, self._memory, self._buffers
        objects, copied = machine.objects, prepared.copied
        if objects is None or objects.gathered is not None or control.interrupt or is_inside():
            return False
        with lock:
            if not prepared.is_short(control, first, limit, buffers.slots):
                return False
            if buffers.is_unknown or copied.is_unknown or not memory.has(prepared, control):
                return False
            buffers.is_unknown = copied.is_unknown = True  # if a signal handler raises behind it
            status = prepared.run_at_once(memory.session.queue, memory.traffic)
            if status in (RangeStatus.DONE, RangeStatus.UNLIKE):
                buffers.is_unknown = copied.is_unknown = False
            else:  # the range runs again from its beginning, and may do so by the other path
                prepared.forget()
                self._may_be_at_once = False
        return status is RangeStatus.DONE

    def run_again(
        self, prepared: ResidentRange, machine: Machine, elements: Sequence[LeftElements]
    ) -> bool:
        """True if a range whose arrays remain on the device has run again, see
        `ferryvm.residency.RepeatedRange.run`."""
        buffers, objects = self._buffers, machine.objects
        if objects is None or objects.gathered is not None or is_inside():
            return False
        with lock:
            if buffers.is_unknown or not prepared.fits(elements, buffers.slots):
                return False
            status: RangeStatus | None = None
            try:
                status = prepared.run(elements, self._memory.traffic)
            except (BackendError, cl.Error):  # no memory for elements: the range has not begun
                return False
            finally:
                is_exact = status in (RangeStatus.DONE, RangeStatus.UNLIKE)
                if not (is_exact or (status is None and prepared.changes_at_once)):
                    prepared.forget()
                    buffers.is_unknown = True
                    prepared.drop()
        if status is RangeStatus.LOST and prepared.changes_at_once:
            raise BackendError(f"opencl: {self._device} failed with elements that were there alone")
        self.entries += status is RangeStatus.DONE
        return status is RangeStatus.DONE
