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
import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.host_stack import floor
from ferryvm.machine.state import Machine
from ferryvm.residency import DeviceElements, RepeatedRange
from ferryvm.traffic import SPACE, Traffic
from ferryvm_backends.opencl.array_copy import AccessedArrays, object_ranges
from ferryvm_backends.opencl.copied import SLICE, Residents
from ferryvm_backends.opencl.item.kernel import HEAD
from ferryvm_backends.opencl.item.native_range import NativeRange
from ferryvm_backends.opencl.item.prepared import WholeRange, header
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.launch import RangeStatus
from ferryvm_backends.opencl.left_elements import LeftElements
from ferryvm_backends.opencl.object_copy import Sent

if TYPE_CHECKING:
    from typing import Any

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
        slots: Any,
    ) -> None:
        """`accessed`: all arrays that items access, whose elements all are `LeftElements`; `stored`:
        addresses of those that they may store into; `slots`: the buffer that begins with the
        head."""
        copied = residents.copied(control)
        objects = copied.objects
        self.copied, self._residents = copied, residents
        self._address, self._whole, self._slots = ctypes.addressof(control), whole, slots
        self.arrays = sorted(accessed.elements)
        first, end, _, _ = whole.given
        self.items = end - first
        copies = map(objects.copy_of, self.arrays)
        self._copies = [(one, one.place, one.address in stored) for one in copies if one]
        self._version, self._rows = objects.version, objects.rows
        self._bound, self._launch = whole.kernel.bound, whole.kernel.launch
        self._headers = [(one, header(control, one)) for one in sorted(accessed.objects)]
        self._is_done = ctypes.c_uint64()
        self._changed: list[LeftElements] = []
        """Elements that look at that word still, if an exception has come behind the last run."""
        self._head = np.zeros(1, HEAD)
        self.seconds = 0.0
        """Seconds of the last run that was waited for; 0: none was."""
        self._sent: list[Sent] = []
        self._native: NativeRange | None = None
        self._is_forgotten = False
        copied.users.add(self)

    def forget(self) -> None:
        """Fit nothing, and refer to no memory."""
        self._is_forgotten, self._native = True, None
        self._sent, self._copies = [], []

    @property
    def changes_at_once(self) -> bool:
        """True if there is no other copy of elements while it runs: no item can leave."""
        return not self._whole.can_leave

    def drop(self) -> None:
        """Release the memory of the machine, whose content is not known."""
        self._residents.drop(ControlBlock.from_address(self._address))

    def fits(self, elements: Sequence[LeftElements], slots: Any) -> bool:
        """True if the device's memory, the kernel, and the places of elements are as they were."""
        if self._is_forgotten or self.seconds > SLICE or self.copied.is_unknown:
            return False
        control, objects = ControlBlock.from_address(self._address), self.copied.objects
        return (
            self._residents.copied(control) is self.copied
            and self._slots is slots
            and self._version == objects.version
            and self._rows is objects.rows
            and self._whole.kernel.bound is self._bound
            and not (objects.is_ahead or objects.may_be_marked or objects.has_pending)
            and all(
                objects.copy_of(copy.address) is copy and copy.place is place
                for copy, place, _ in self._copies
            )
            and all(one.is_there and one.memory is self._residents for one in elements)
        )

    def run(self, elements: Sequence[LeftElements], traffic: Traffic) -> RangeStatus:
        """Run it, if it fits; DONE: the elements of stored arrays have their home in the machine's
        copy; UNLIKE: nothing has happened; LOST: they are lost, if it `changes_at_once`. Raises
        BackendError, cl.Error if it has not begun, and the exceptions of signal handlers: at any
        moment elements are where they say."""
        whole, native = self._whole, self._native
        if native is None:
            native = self._native = self._planned(traffic)
        self._settle()
        changed, can_leave = list[LeftElements](), whole.can_leave
        self._is_done.value = 0
        self._changed = changed
        for (copy, _, is_stored), one in zip(self._copies, elements, strict=True):
            copy.take(one)
            if is_stored:
                changed.append(one)
                if can_leave:
                    one.change_once(copy, self._is_done)
                else:
                    one.change_in(copy)
        whole.kernel.give_again(self._launch)
        ControlBlock.from_address(self._address).host_stack = floor()
        residents, began = self._residents, time.perf_counter()
        is_first = not residents.seconds_ahead
        is_awaited = can_leave or not self.seconds or residents.seconds_ahead + self.seconds > SLICE
        status = RangeStatus(native.run(is_awaited))
        if is_awaited:
            residents.seconds_ahead = 0.0
            if is_first:
                self.seconds = time.perf_counter() - began
        else:
            residents.seconds_ahead += self.seconds
        if status is RangeStatus.DONE:
            native.count_sent(self._sent, traffic)
        elif status is RangeStatus.LOST and not can_leave:
            for one in changed:
                one.lose()
        self._settle()
        return status

    def _settle(self) -> None:
        """Let elements look at the word, which may begin anew then, and retain none."""
        for one in self._changed:
            one.home  # noqa: B018 - which looks at it
        self._changed = []

    def _planned(self, traffic: Traffic) -> NativeRange:
        """The native call."""
        native, control = NativeRange(), ControlBlock.from_address(self._address)
        native.expect_control(self._address, {name: getattr(control, name) for name in _FIELDS})
        for one, found in self._headers:
            native.expect(control.objects + one, found)
        space = self.copied.objects.space
        ranges = object_ranges(
            control.objects, len(space.mirror), [one for one, _ in self._headers]
        )
        self._sent = [(space, ranges, traffic.of_array(0, SPACE))]
        native.send_part(space, ranges)
        head = self._head.ctypes.data, self._head.nbytes
        first, end, block, local = self._whole.given
        kernel = self._whole.kernel
        sizes = kernel.sizes(end - first, block, local)
        at, queue = BufferOffset(self._slots), self.copied.session.queue
        reads = [(at.buffer.int_ptr, at.offset, head[1], head[0])] if self._whole.can_leave else []
        copies = [(ctypes.addressof(self._is_done), native.word(1), WORD_BYTES)]
        stack_at = self._address + vars(ControlBlock)["host_stack"].offset
        native.complete(stack_at, queue, kernel.handle, sizes, reads, head, copies)
        return native


class RepeatedItems(RepeatedRange):
    """A resident range with the function that runs it, of the runner that has prepared it."""

    def __init__(
        self,
        prepared: ResidentRange,
        run: Callable[[ResidentRange, Machine, Sequence[LeftElements]], bool],
    ) -> None:
        self._prepared, self._run = prepared, run
        self.arrays, self.items = prepared.arrays, prepared.items

    def run(self, machine: Machine, elements: Sequence[DeviceElements]) -> bool:
        if not all(type(one) is LeftElements for one in elements):
            return False
        return self._run(self._prepared, machine, elements)  # type: ignore[arg-type]  # all are
