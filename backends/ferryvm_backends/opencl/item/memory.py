# SPDX-License-Identifier: Apache-2.0
"""A machine's memory for the items of a launch: where the device finds it, wrapped or copied."""

from __future__ import annotations

import abc
import ctypes
import dataclasses
import functools
import time
from collections.abc import Container, Hashable, Mapping, Sequence

from ferryvm.backend import BackendError
from ferryvm.ir.operation import LENGTH, PLACE
from ferryvm.isa.object import PLACE_OFFSET, is_object
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.residency import Residency
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.array_copy import AccessedArrays
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.copied import Residents, residents
from ferryvm_backends.opencl.host_memory import CHUNK
from ferryvm_backends.opencl.item import ItemShape
from ferryvm_backends.opencl.item.prepared import PreparedRange, State, WholeRange
from ferryvm_backends.opencl.item.resident_range import ResidentRange
from ferryvm_backends.opencl.item.saved import Saved, SavedOnDevice, SavedOnHost
from ferryvm_backends.opencl.item.suspension import Suspended
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.resident import Copied, Needs
from ferryvm_backends.opencl.segment import view
from ferryvm_backends.opencl.wrapped import memories

_MASK = (1 << 64) - 1

Written = Mapping[int, int]
"""Arrays of which items overwrite all elements: addresses of these, and bytes of one."""


class ItemMemory(abc.ABC):
    """A way to give a device a machine's memory."""

    wraps: bool

    def __init__(self, session: Session, needs: Needs) -> None:
        self.session, self.needs = session, dataclasses.replace(needs, frames=False)
        self.traffic = Traffic()

    @property
    def deferral(self) -> Hashable | None:
        """See `ferryvm.item_range.RangeRunner`."""
        return None

    def is_ahead(self, control: ControlBlock) -> bool:
        """True if the device has results that the host lacks."""
        return False

    def push_ahead(
        self,
        control: ControlBlock,
        marks: bool,
        written: Container[int],
        arrays: AccessedArrays | None,
    ) -> list[BufferOffset]:
        """As `push`; until `pull` nothing on the host reads or writes what items may have
        stored."""
        return self.push(control, marks, written, arrays)

    @abc.abstractmethod
    def push(
        self,
        control: ControlBlock,
        marks: bool,
        written: Container[int],
        arrays: AccessedArrays | None = None,
    ) -> list[BufferOffset]:
        """Let the device see what items may read: the places of statics and heap, then of copied
        objects and their tables; `marks`: items may set dirty marks; `written`: addresses of arrays
        that they overwrite unseen, if all are done; `arrays`: all that they access, if these are
        known. Raises BackendError, cl.Error."""

    @property
    def has_others(self) -> bool:
        """True if there is much to copy that the items of the last `push` do not access."""
        return False

    def copy_others(self) -> None:
        """Begin to copy that, beside a kernel that runs items. Raises BackendError, cl.Error."""
        return

    def push_resident(
        self, control: ControlBlock, marks: bool, written: Mapping[int, int], residency: Residency
    ) -> list[BufferOffset]:
        """As `push`, where the device has elements that the host lacks."""
        raise BackendError("opencl: nothing remains on a device that works in the host's memory")

    def leave(
        self, control: ControlBlock, residency: Residency, stored: Container[int] | None
    ) -> None:
        """Let results remain on the device: `pull` does not copy them. `stored`: addresses of all
        arrays that items may have stored into, if these are known. Raises BackendError,
        cl.Error."""
        raise BackendError("opencl: nothing remains on a device that works in the host's memory")

    @property
    def unsent(self) -> Sequence[int]:
        """Addresses of those of them whose elements the device does not have."""
        return ()

    def elements(self, control: ControlBlock, reference: int) -> int:
        """The host's address of the elements of an array."""
        place = control.objects + reference + PLACE_OFFSET
        return (control.objects + ctypes.c_uint64.from_address(place).value) & _MASK

    def accessed(
        self, shape: ItemShape, control: ControlBlock, words: Sequence[int]
    ) -> AccessedArrays | None:
        """All arrays that items access; `words`: which they share; None if they may access
        others."""
        if shape.arrays is None:
            return None
        objects = frozenset(words[n] for n in shape.arrays if is_object(words[n]))
        return AccessedArrays(frozenset(self.elements(control, one) for one in objects), objects)

    def check_apart(self, shape: ItemShape, control: ControlBlock, words: Sequence[int]) -> None:
        """Raise BackendError if what comes back from the device may have more in it than what items
        have stored."""
        return

    def overwritten(
        self,
        shape: ItemShape,
        control: ControlBlock,
        words: Sequence[int],
        items: tuple[int, int],
        is_part: bool,
    ) -> dict[int, int]:
        """Arrays of which a range of items stores all elements and that they do not read: addresses
        of the elements, and bytes of one. `is_part`: nothing but what these items have stored comes
        back, and no other launch follows on the device; then it is enough that they store whole
        chunks."""
        found: dict[int, int] = {}
        read = {words[number] for number in shape.read}
        first, limit = items
        for one in shape.stored:
            reference = words[one.argument]
            if one.argument not in shape.overwritten or reference in read:
                continue
            ends = limit == self.header_word(control, reference, LENGTH)
            is_whole = ends and not first
            is_in_chunks = not first % CHUNK and (ends or not limit % CHUNK)
            if is_whole or (is_part and is_in_chunks):
                found[self.elements(control, reference)] = one.bytes
        return found

    def header_word(self, control: ControlBlock, reference: int, word: int) -> int:
        """A word of an object's header as the device has it; 0 where there is no object."""
        if not is_object(reference):
            return 0
        address = control.objects + reference + WORD_BYTES * word
        return ctypes.c_uint64.from_address(address).value

    def prepare(
        self,
        state: State,
        control: ControlBlock,
        whole: WholeRange,
        buffers: Suspended,
        written: Written,
    ) -> PreparedRange | None:
        """The range that has just run, prepared to run again; None if it cannot."""
        return None

    def prepare_resident(
        self,
        control: ControlBlock,
        whole: WholeRange,
        accessed: AccessedArrays | None,
        stored: Container[int] | None,
        residency: Residency,
        buffers: Suspended,
    ) -> ResidentRange | None:
        """The range that has just run with arrays that remain on the device, prepared to run again;
        None if it cannot. `accessed`, `stored`: all arrays that items access, and may store into."""
        return None

    def has(self, prepared: PreparedRange, control: ControlBlock) -> bool:
        """True if a range is prepared for this machine's memory, which is that of the last `push`
        then."""
        return False

    @abc.abstractmethod
    def save(self, control: ControlBlock, reference: int, size: int) -> Saved:
        """A copy of the elements of an array as the device has them, between `push` and `pull`;
        `size`: bytes of an element. Raises BackendError, cl.Error."""

    @abc.abstractmethod
    def mark(self, control: ControlBlock, reference: int, start: int, end: int) -> None:
        """Mark bytes of the elements of an array as changed by the device."""

    @abc.abstractmethod
    def pull(self, control: ControlBlock) -> None:
        """Let the machine see what items have stored. Raises cl.Error; then it is as before."""

    @abc.abstractmethod
    def drop(self, control: ControlBlock) -> None:
        """Forget what the device has: it is not known any more."""


class WrappedMemory(ItemMemory):
    """The machine's own memory."""

    wraps = True

    def push(
        self,
        control: ControlBlock,
        marks: bool,
        written: Container[int],
        arrays: AccessedArrays | None = None,
    ) -> list[BufferOffset]:
        _, statics, _, heap = memories(self.session).wrapped(control).places
        return [statics, heap]

    def save(self, control: ControlBlock, reference: int, size: int) -> Saved:
        length = self.header_word(control, reference, LENGTH)
        return SavedOnHost(view(self.elements(control, reference), size * length))

    def mark(self, control: ControlBlock, reference: int, start: int, end: int) -> None:
        """There is one copy."""

    def pull(self, control: ControlBlock) -> None:
        """The kernel has stored there."""

    def drop(self, control: ControlBlock) -> None:
        """There is no other copy."""


class CopiedMemory(ItemMemory):
    """Memory of the device's own, to which changes are copied."""

    wraps = False
    _memory: Copied
    _arrays: AccessedArrays | None = None
    """All arrays that items access, if they are known."""

    @property
    def deferral(self) -> Hashable | None:
        needs = self.needs
        is_objects_alone = needs.objects is not None and needs.objects.stores
        if not is_objects_alone or needs.writes_heap or needs.writes_statics:
            return None
        return self._residents

    @functools.cached_property
    def _residents(self) -> Residents:
        return residents(self.session)

    def prepare(
        self,
        state: State,
        control: ControlBlock,
        whole: WholeRange,
        buffers: Suspended,
        written: Written,
    ) -> PreparedRange | None:
        needs, arrays = self.needs, self._arrays
        if arrays is None or needs.statics or needs.heap or needs.writes_heap:
            return None
        if not PreparedRange.can_be(self._memory.objects):
            return None
        memory = self._memory
        return PreparedRange(state, control, whole, arrays, memory, buffers, written, self.traffic)

    def prepare_resident(
        self,
        control: ControlBlock,
        whole: WholeRange,
        accessed: AccessedArrays | None,
        stored: Container[int] | None,
        residency: Residency,
        buffers: Suspended,
    ) -> ResidentRange | None:
        needs, objects = self.needs, self._memory.objects
        if accessed is None or stored is None or needs.statics or needs.heap or needs.writes_heap:
            return None
        are_there = accessed.elements <= residency.retained & {*residency.given, *residency.left}
        if not are_there or not all(map(objects.is_apart, accessed.elements)):
            return None
        return ResidentRange(
            control, whole, accessed, stored, self._residents, buffers, self.traffic
        )

    def has(self, prepared: PreparedRange, control: ControlBlock) -> bool:
        found = self._residents.copied(control) is prepared.copied
        if found:
            self._memory = prepared.copied
        return found

    def is_ahead(self, control: ControlBlock) -> bool:
        return self._residents.is_ahead(control)

    def push_ahead(
        self,
        control: ControlBlock,
        marks: bool,
        written: Container[int],
        arrays: AccessedArrays | None,
    ) -> list[BufferOffset]:
        self._residents.copied(control).objects.run_ahead()
        return self.push(control, marks, written, arrays)

    @property
    def unsent(self) -> Sequence[int]:
        return self._memory.objects.unsent

    def push(
        self,
        control: ControlBlock,
        marks: bool,
        written: Container[int],
        arrays: AccessedArrays | None = None,
    ) -> list[BufferOffset]:
        memory = self._memory = self._residents.copied(control)
        self._arrays = arrays
        memory.push(control, self.needs, self.traffic, marks, written, arrays)
        objects = [] if self.needs.objects is None else [*memory.objects.places]
        return [memory.statics.place, memory.heap.place, *objects]

    def check_apart(self, shape: ItemShape, control: ControlBlock, words: Sequence[int]) -> None:
        objects = self._memory.objects
        stored = (words[one.argument] for one in shape.stored)
        if not all(objects.is_apart(self.elements(control, word)) for word in stored if word):
            raise BackendError(
                "opencl: items store into a small array, which is copied with others"
            )

    @property
    def has_others(self) -> bool:
        return self._arrays is not None and self._memory.objects.has_others(self._arrays.elements)

    def copy_others(self) -> None:
        if self._arrays is not None:
            began = time.perf_counter()
            self._memory.objects.copy_others(self._arrays.elements, self.traffic)
            self.traffic.seconds_to_device += time.perf_counter() - began

    def push_resident(
        self, control: ControlBlock, marks: bool, written: Mapping[int, int], residency: Residency
    ) -> list[BufferOffset]:
        objects = self._residents.copied(control).objects
        objects.residency = residency
        try:
            return self.push(control, marks, (*residency.wanted, *written))
        finally:
            objects.residency = None

    def leave(
        self, control: ControlBlock, residency: Residency, stored: Container[int] | None
    ) -> None:
        of = self._residents
        for address in residency.wanted:
            residency.left[address] = of.leave(control, address)
        for address in filter(self._memory.objects.is_apart, residency.retained):
            is_changed = stored is None or address in stored
            if is_changed or address not in residency.given:
                residency.left[address] = of.leave(control, address, is_changed=is_changed)

    def header_word(self, control: ControlBlock, reference: int, word: int) -> int:
        found = super().header_word(control, reference, word)
        return self._memory.objects.device_place(found) if word == PLACE else found

    def save(self, control: ControlBlock, reference: int, size: int) -> Saved:
        space, _ = self._memory.objects.places
        place = space.offset + self.header_word(control, reference, PLACE)
        length = self.header_word(control, reference, LENGTH)
        return SavedOnDevice(self.session, BufferOffset(space.buffer, place), size * length)

    def mark(self, control: ControlBlock, reference: int, start: int, end: int) -> None:
        if reference:
            place = super().header_word(control, reference, PLACE)
            self._memory.objects.mark(place, start, end)

    def pull(self, control: ControlBlock) -> None:
        returned = ControlBlock()
        ctypes.memmove(
            ctypes.addressof(returned), ctypes.addressof(control), ctypes.sizeof(control)
        )
        self._memory.pull(returned, control.sp, self.needs, self.traffic)
        self._memory.objects.catch_up()

    def drop(self, control: ControlBlock) -> None:
        self._residents.drop(control)
