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
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_memory import ObjectMemory, objects_at
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
        self._in_entry = 0
        """Calls of `run_in_entry` with a prepared range."""

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        prepared = self._prepared
        control, objects = machine.control, machine.objects
        if prepared is not None and self._run_at_once(prepared, control, objects, first, limit):
            seconds = prepared.seconds * self._threads if self._shape.is_block else None
            return RangeOutcome(limit - first, 0, seconds, bool(machine.control.interrupt))
        return super().run(machine, first, limit)

    def run_in_entry(self, control: ControlBlock, first: int, limit: int) -> bool:
        prepared = self._prepared
        if prepared is None or self.note is None or not self._may_be_at_once:
            return False
        self._in_entry += 1
        if not self._in_entry & (self._in_entry - 1):  # the engine may know better by now
            return False
        try:
            objects = objects_at(prepared.address)
            if self._run_at_once(prepared, control, objects, first, limit):
                self.note(limit - first, prepared.seconds)
                return True
        except (BackendError, cl.Error):  # nothing has happened
            return False
        except BaseException as error:  # noqa: BLE001  # a signal handler's
            self.raised = error
        return False

    def _run_at_once(
        self,
        prepared: PreparedRange,
        control: ControlBlock,
        objects: ObjectMemory | None,
        first: int,
        limit: int,
    ) -> bool:
        """True if a range that is as the last one has run, by one native call in this thread. An
        exception of a signal handler leaves an exact state: it comes in front of the call or behind
        it. Raises BackendError, with the machine as before."""
        memory, buffers, copied = self._memory, self._buffers, prepared.copied
        if objects is None or objects.gathered is not None or control.interrupt or is_inside():
            return False
        if not self._may_be_at_once:
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
                return False
        is_done = status is RangeStatus.DONE
        self.entries += is_done
        self.seconds += prepared.seconds * is_done
        return is_done

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
