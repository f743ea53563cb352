# SPDX-License-Identifier: Apache-2.0
"""Ranges that run by one native call, in the thread that launches.

as the last one, and short ─> one native call ─┬─ done
      └─ no ─> a thread of the pool            └─ left, failed: nobody knows what the device has;
                                                  all is sent again, by a thread of the pool

Once that has been so, native code that comes to the launch makes the call itself, as long as
nothing changes what it relies on (`ferryvm_backends.opencl.launch.gate`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_memory import ObjectMemory, objects_at
from ferryvm.machine.state import Machine
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.item import ItemShape
from ferryvm_backends.opencl.item.memory import ItemMemory
from ferryvm_backends.opencl.item.pooled import PooledRanges, is_inside, lock
from ferryvm_backends.opencl.item.prepared import PreparedRange
from ferryvm_backends.opencl.item.resident_range import ResidentRange
from ferryvm_backends.opencl.launch import ItemRecord, RangeStatus
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
        self._repeated = weakref.WeakSet[ResidentRange]()
        self._may_be_at_once = True
        """False since items have left a range that ran by one native call: all was sent again."""
        self._entry: ItemRecord | None = None
        """Of the native code that comes to the launch, if there is some."""
        self._settled = 0, 0, 0
        """Times, items and nanoseconds of its ranges that `settle` has noted."""

    @property
    def traffic(self) -> Traffic:
        """Copies for items."""
        for each in (self._prepared, *self._repeated):
            if each is not None:
                each.count()
        return self._memory.traffic

    def settle(self) -> None:
        entry = self._entry
        if entry is None or entry.times == self._settled[0]:
            return
        before, self._settled = self._settled, (entry.times, entry.items, entry.nanoseconds)
        times, items, nanoseconds = (a - b for a, b in zip(self._settled, before, strict=True))
        self.entries += times
        self.seconds += 1e-9 * nanoseconds
        if self.note is not None:
            self.note(times, items, 1e-9 * nanoseconds)

    def enter_by(self, entry: ItemRecord) -> None:
        """Let native code run ranges that comes to the launch."""
        entry.gate, self._entry = self._gate.address, entry

    def _replace(self, prepared: PreparedRange | None) -> None:
        """Let a range run again in the place of the present one."""
        before = self._prepared
        if before is not None:
            before.forget()
        self._prepared = prepared

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        prepared = self._prepared
        control, objects = machine.control, machine.objects
        if prepared is not None and self._run_at_once(prepared, control, objects, first, limit):
            seconds = prepared.seconds * self._threads if self._shape.is_block else None
            return RangeOutcome(limit - first, 0, seconds, bool(machine.control.interrupt))
        return super().run(machine, first, limit)

    def run_in_entry(
        self, control: ControlBlock, first: int, limit: int, status: RangeStatus
    ) -> bool:
        """As `run`, for code that has just come to the launch: True if all items are done, False if
        the code is to leave for the engine, also if that has to raise an exception. `status`: the
        outcome of native code that has tried. Raises nothing."""
        prepared = self._prepared
        try:
            if prepared is None or self.note is None or not self._is_exact(prepared, status):
                return False
            objects = objects_at(prepared.address)
            if self._run_at_once(prepared, control, objects, first, limit):
                self.note(1, limit - first, prepared.seconds)
                return True
        except (BackendError, cl.Error):  # nothing has happened
            return False
        except BaseException as error:  # noqa: BLE001  # a signal handler's
            self.raised = error
        return False

    def _is_exact(self, prepared: PreparedRange, status: RangeStatus) -> bool:
        """True if a range has run, or nothing has been done. Else it runs again from its beginning,
        and may do so by the other path."""
        if status in (RangeStatus.DONE, RangeStatus.UNLIKE):
            return True
        self._may_be_at_once = False
        prepared.forget()
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
            if not prepared.is_short(control, first, limit):
                return False
            if buffers.unknown.value or copied.unknown.value or not memory.has(prepared, control):
                return False
            status = prepared.run_at_once()
            if not self._is_exact(prepared, status):
                return False
            is_done = status is RangeStatus.DONE
            if is_done and self._entry is not None and self.note is not None:
                prepared.enter_by(self._entry)
        self.entries += is_done
        self.seconds += prepared.seconds * is_done
        return is_done

    def run_again(
        self, prepared: ResidentRange, machine: Machine, elements: Sequence[LeftElements]
    ) -> bool:
        """True if a range whose arrays remain on the device has run again, see
        `ferryvm.residency.RepeatedRange.run`."""
        objects = machine.objects
        if objects is None or objects.gathered is not None or is_inside():
            return False
        with lock:
            if not prepared.fits(elements):
                return False
            status: RangeStatus | None = None
            try:
                status = prepared.run(elements)
            except (BackendError, cl.Error):  # no memory for elements: the range has not begun
                return False
            finally:
                if prepared.is_unknown:
                    prepared.drop()
        if status is RangeStatus.LOST and prepared.changes_at_once:
            raise BackendError(f"opencl: {self._device} failed with elements that were there alone")
        self.entries += status is RangeStatus.DONE
        return status is RangeStatus.DONE
