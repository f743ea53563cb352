# SPDX-License-Identifier: Apache-2.0
"""A range whose arrays remain on a device, prepared to run again there.

    elements ── elsewhere? ─> copied to the machine's arena ─┐
          └── have their home in it ────────────────────────>│ kernel ─> have their home in it
                                          items may leave ─> elements before it are in an area

The first run, by another path, has found out which arrays items access and store into, and what the
kernel is given. A further one is one native call, in which nothing is looked up. Where no item can
leave, nobody is_awaited for it, either, unless much has been started by then.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Container, Sequence

from ferryvm.float_environment import ours
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.host_stack import floor
from ferryvm.traffic import SPACE, Traffic
from ferryvm_backends.opencl.array_copy import AccessedArrays, object_ranges
from ferryvm_backends.opencl.copied import SLICE, Residents
from ferryvm_backends.opencl.item.kernel import HEAD
from ferryvm_backends.opencl.item.native_range import NO_HEAD, NativeRange
from ferryvm_backends.opencl.item.prepared import WholeRange, header
from ferryvm_backends.opencl.item.suspension import Suspended
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.launch import RangeStatus
from ferryvm_backends.opencl.left_elements import LeftElements
from ferryvm_backends.opencl.object_copy import Sent

_FIELDS = ("objects", "types", "hp", "stack", "stack_end")
"""Fields of the control block that the kernel is given, or that say where headers are."""


class ResidentRange:
    """A range that has just run, as its arrays and its kernel are; see the module."""

    def __init__(
        self,
        control: ControlBlock,
        whole: WholeRange,
        accessed: AccessedArrays,
        stored: Container[int],
        residents: Residents,
        buffers: Suspended,
        traffic: Traffic,
    ) -> None:
        """`accessed`: all arrays that items access, whose elements all are `LeftElements`; `stored`:
        addresses of those that they may store into; `buffers`: whose slots begin with the head;
        `traffic`: receives the copies, see `count`."""
        copied = residents.copied(control)
        objects = copied.objects
        self.copied, self._residents = copied, residents
        self._address, self._whole = ctypes.addressof(control), whole
        self._control = ControlBlock.from_address(self._address)
        self._is_forgotten = False
        self._buffers, self._slots = buffers, buffers.slots
        self.arrays = sorted(accessed.elements)
        first, end, _, _ = whole.given
        self.items = end - first
        copies = [one for one in map(objects.copy_of, self.arrays) if one]
        self._copies, self._places = copies, [one.place for one in copies]
        self._stored = [number for number, one in enumerate(copies) if one.address in stored]
        self._version, self._rows = objects.version, objects.rows
        self._bound, self._launch = whole.kernel.bound, whole.kernel.launch
        self._headers = [(one, header(control, one)) for one in sorted(accessed.objects)]
        self._is_done = ctypes.c_uint64()
        self._changed: list[LeftElements] = []
        """Elements that look at that word still, if an exception has come behind the last run."""
        self.seconds = 0.0
        """Seconds of the last run that was waited for; 0: none was."""
        space = objects.space
        references = [one for one, _ in self._headers]
        ranges = object_ranges(control.objects, len(space.mirror), references)
        self._sent: list[Sent] = [(space, ranges, traffic.of_array(0, SPACE))]
        self._native, self._traffic = self._planned(control), traffic
        self._last_count = weakref.finalize(self, self._native.count, self._sent, (), traffic)
        self._last_count.atexit = False
        copied.users.add(self)

    def forget(self) -> None:
        """Fit nothing, and refer to no memory."""
        self.copied.session.gate.shut()
        self._last_count()
        self._is_forgotten = True
        self._sent, self._copies = [], []

    def count(self) -> None:
        """Count the copies of runs since the last call."""
        if not self._is_forgotten:
            self._native.count(self._sent, (), self._traffic)

    @property
    def changes_at_once(self) -> bool:
        """True if there is no other copy of elements while it runs: no item can leave."""
        return not self._whole.can_leave

    @property
    def is_unknown(self) -> bool:
        """True if nobody knows what the device has."""
        return bool(self.copied.unknown.value or self._buffers.unknown.value)

    def drop(self) -> None:
        """Release the memory of the machine, whose content is not known."""
        self._residents.drop(ControlBlock.from_address(self._address))

    def fits(self, elements: Sequence[LeftElements]) -> bool:
        """True if the device's memory, the kernel, and the places of elements are as they were."""
        residents = self._residents
        for one in elements:  # if one is not there any more, `run` finds it
            if one.memory is not residents:
                return False
        if self._native.is_armed and self.seconds <= SLICE:
            return not self._is_forgotten
        if self._is_forgotten or self.seconds > SLICE or not self._is_there():
            return False
        self._native.arm()
        return True

    def _is_there(self) -> bool:
        """True if all that the native call does not compare is as it was."""
        if self.is_unknown:
            return False
        control, objects = ControlBlock.from_address(self._address), self.copied.objects
        return (
            self._residents.copied(control) is self.copied
            and self._slots is self._buffers.slots
            and self._version == objects.version
            and self._rows is objects.rows
            and self._whole.kernel.bound is self._bound
            and not (objects.is_ahead or objects.may_be_marked or objects.has_pending)
            and all(
                objects.copy_of(copy.address) is copy and copy.place is place
                for copy, place in zip(self._copies, self._places, strict=True)
            )
        )

    def run(self, elements: Sequence[LeftElements]) -> RangeStatus:
        """Run it, if it fits; DONE: the elements of stored arrays have their home in the machine's
        copy; UNLIKE: nothing has happened; LOST: they are lost, if it `changes_at_once`. Raises
        BackendError, cl.Error if it has not begun, and the exceptions of signal handlers: at any
        moment elements are where they say."""
        copies, can_leave = self._copies, self._whole.can_leave
        if self._changed:
            self._settle()
        for copy, one in zip(copies, elements, strict=True):
            if not one.is_at(copy):
                with ours():
                    copy.take(one)
        if can_leave:
            self._is_done.value = 0
            self._changed = [elements[n] for n in self._stored]
            with ours():
                for n in self._stored:
                    elements[n].change_once(copies[n], self._is_done)
        else:
            for n in self._stored:
                elements[n].change_in(copies[n])
        self._control.host_stack = floor()
        status = self._run_natively(can_leave)
        if can_leave:
            self._settle()
        elif status is RangeStatus.LOST:
            for n in self._stored:
                elements[n].lose()
        return status

    def _run_natively(self, can_leave: bool) -> RangeStatus:
        """Run it, and wait for its end where items can leave, or too much is under way."""
        residents, seconds = self._residents, self.seconds
        ahead = residents.seconds_ahead
        is_awaited = can_leave or not seconds or ahead + seconds > SLICE
        status = self._native.run_apart(is_awaited)
        if not is_awaited:
            residents.seconds_ahead = ahead + seconds
            return status
        residents.seconds_ahead = 0.0
        if not ahead and status is RangeStatus.DONE:
            self.seconds = self._native.seconds
        return status

    def _settle(self) -> None:
        """Let elements look at the word, which may begin anew then, and retain none."""
        for one in self._changed:
            one.home  # noqa: B018 - which looks at it
        self._changed = []

    def _planned(self, control: ControlBlock) -> NativeRange:
        """The native call."""
        native, whole = NativeRange(self.copied.session), self._whole
        native.expect_control(self._address, {name: getattr(control, name) for name in _FIELDS})
        for one, found in self._headers:
            native.expect(control.objects + one, found)
        for space, ranges, _ in self._sent:
            native.send_part(space, ranges)
        at, staging = BufferOffset(self._slots), self.copied.residence.staging
        reads = [(at.buffer.int_ptr, at.offset, HEAD.itemsize, staging)] if whole.can_leave else []
        head = (staging, HEAD.itemsize) if whole.can_leave else NO_HEAD
        first, end, block, local = whole.given
        native.complete(
            self._address + vars(ControlBlock)["host_stack"].offset,
            whole.kernel,
            self._launch,
            whole.kernel.sizes(end - first, block, local),
            reads,
            head,
            [(ctypes.addressof(self._is_done), native.word(1), WORD_BYTES)],
            [self._buffers.unknown, self.copied.unknown],
        )
        return native
