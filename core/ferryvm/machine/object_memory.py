# SPDX-License-Identifier: Apache-2.0
"""The objects of a machine: their space bound to its control block, roots, allocation, copies.

    ALLOCATE ──> collect ──> does it fit? ──> enlarge the budget ──> still not: the limit forbids it
                                └──> elements of a large array: prepare a block outside

Everything that looks at the objects of a state (a comparison, a copy, a saved file) collects first:
then offsets follow from the state alone. A collection changes nothing that a program can see.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import mmap
import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm import record
from ferryvm.isa.declared_type import RowKind, TypeHierarchy
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FIRST_OFFSET,
    LARGEST_TRANSFER,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    ROW_KIND,
    ROW_SIZE_SHIFT,
    ROW_WORDS,
    outside_bytes,
    type_number,
)
from ferryvm.isa.type import I31REF, WORD_BYTES, Reference
from ferryvm.machine.ahead import ElementsAhead
from ferryvm.machine.collection import SHAPE_WORDS, Request, collect
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.element_transfer import LONG, TRANSFERS, ElementTransfer, Stops
from ferryvm.machine.handle import Handles
from ferryvm.machine.host_stack import NotYetError
from ferryvm.machine.memory import RESERVED, AddressSpaceError, Memory, why_refused
from ferryvm.machine.object_shape import ReferenceMap, Shapes
from ferryvm.machine.object_space import Collector, ObjectSpace
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Program
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.machine.item_map import ItemMap
    from ferryvm.machine.sparse import Sparse

Buffer = bytes | memoryview

_ARRAYS = (RowKind.NUMBERS, RowKind.REFERENCES)

_MASK = (1 << 64) - 1


@record.dataclass(frozen=True)
class ObjectImage:
    """The objects of a state in canonical order, without addresses."""

    space: Sparse
    """The bytes of the object space in use; an array whose elements are outside has place 0."""
    elements: tuple[Sparse, ...]
    """The elements outside, in the order of their arrays."""


class OutsideArray(NamedTuple):
    """Elements outside of the object space."""

    address: int
    size: int
    """Bytes."""
    type: int | None
    """The type number of their array; None if it was made since the last collection."""


class _Facts:
    """Tables that follow from a program."""

    def __init__(self, verified: Verified) -> None:
        self.map = ReferenceMap(verified)
        self.shapes = Shapes(verified.program)
        self.type_rows = array("Q", verified.types.rows())
        self._verified = verified

    @functools.cached_property
    def items(self) -> ItemMap:
        """Few programs suspend items."""
        from ferryvm.machine.item_map import ItemMap

        return ItemMap(self._verified, self.map)


Gathered = tuple[int, Sequence[Any]]
"""The limit of a range of a launch, and what is left of it, see `ferryvm.machine.launch.Left`."""

_MANY_BYTES = 1 << 20
"""Bytes of objects from which on a collection waits for native code: Python takes longer."""

_facts: weakref.WeakKeyDictionary[Verified, _Facts] = weakref.WeakKeyDictionary()


_by_control: weakref.WeakValueDictionary[int, ObjectMemory] = weakref.WeakValueDictionary()


def objects_at(address: int) -> ObjectMemory | None:
    """The objects of the machine whose control block is at an address, for code that is given no
    more than that; None if its program has no references."""
    return _by_control.get(address)


def native_collector(address: int) -> Collector:
    """The native function at an address as a collector."""
    # A pause is short, and other threads must not see a state in the middle: it keeps the GIL.
    function = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(Request))(address)
    return lambda request: int(function(ctypes.byref(request)))


def _slots(words: int) -> mmap.mmap:
    """Memory for as many words as the stack has, of which a collection accesses as many as there
    are references, from the end on. Raises AddressSpaceError: there must be some when it is wanted,
    for then memory is short."""
    size = WORD_BYTES * words
    try:
        return mmap.mmap(-1, size, flags=RESERVED)
    except (OSError, OverflowError, ValueError) as error:
        message = f"cannot reserve {size >> 20} MiB of address space for collections"
        raise AddressSpaceError(
            f"{message} ({why_refused(error)}); lower the stack limit (--stack-limit, Limits.stack)"
        ) from None


class ObjectMemory:
    """The object space of a machine, and the buffers of collections."""

    def __init__(self, verified: Verified, memory: Memory) -> None:
        """Raises AddressSpaceError."""
        self._verified, self._memory = verified, memory
        self._control = memory.control
        found = _facts.get(verified)
        if found is None:
            found = _facts[verified] = _Facts(verified)
        self._facts = found
        self.space = ObjectSpace(memory.limits.objects)
        self._collector: Collector = collect
        self._offer: Callable[[], tuple[int | None, str]] | None = None
        self.is_native = False
        """True if native code performs collections."""
        self.reason = "no backend has run"
        """The reason that it does not."""
        self._offered_writer: Callable[[], int | None] | None = None
        self._writer: Callable[..., int] | None = None
        self.gathered: list[Gathered] | None = None
        """Receives what is left of ranges of a launch while several runners run ranges of it at
        once; there is no collection then. None: each is written into the launch when it is
        known."""
        self.handles = Handles()
        """References that Python holds."""
        self.is_forced = False
        """For tests: each allocation causes a collection, from the next one that does not fit."""
        self._slots = _slots(memory.stack_words)
        self.lacking = 0
        """Bytes for which the system had no memory when the last allocation failed; 0 if it failed
        for the limit."""
        self._transfer = ElementTransfer(memory, self.space, self._facts.shapes)
        self._ahead = ElementsAhead(self.space)
        self._own_top = FIRST_OFFSET
        """The end of the objects that the program itself can reach, after a collection; behind them
        are those that only Python holds."""
        self._control.object_top = FIRST_OFFSET
        _by_control[ctypes.addressof(self._control)] = self

    def bind(self) -> None:
        """Write addresses into the control block."""
        control = self._control
        control.objects = self.space.base
        control.object_end = control.object_top if self.is_forced else self.space.end
        control.types, _ = self._facts.type_rows.buffer_info()
        control.ahead = self._ahead.address

    def extend(self, verified: Verified) -> None:
        """Go on with a program whose code and types begin with this one's."""
        self._verified, self._facts = verified, _facts.setdefault(verified, _Facts(verified))
        self._transfer = ElementTransfer(self._memory, self.space, self._facts.shapes)
        self.bind()

    def offer(self, collector: Callable[[], tuple[int | None, str]]) -> None:
        """Perform collections by a native function, see `Artifact.collector`, from the next one on.

        `collector`: returns its address when it is first needed, or None and the reason that there
        is none. Ignored if collections are native already."""
        if not self.is_native:
            self._offer = collector

    def offer_writer(self, writer: Callable[[], int | None]) -> None:
        """Make pieces of suspended items by a native function, see `Artifact.item_writer`, whose
        address `writer` returns when it is first needed. Ignored if there is one already."""
        if self._writer is None:
            self._offered_writer = writer

    def item_writer(self) -> Callable[..., int] | None:
        """The native function that makes pieces; None if there is none, or as long as it is
        made."""
        if self._offered_writer is not None:
            from ferryvm.machine.item_map import WRITE

            try:
                address, self._offered_writer = self._offered_writer(), None
            except NotYetError:
                return None
            self._writer = None if address is None else WRITE(address)
        return self._writer

    def collect_in_python(self) -> None:
        """For tests: perform collections by the definition from now on."""
        self._collector, self._offer, self.is_native = collect, None, False
        self.reason = "a test asked for it"

    def _chosen(self) -> Collector:
        if self._offer is not None:
            try:
                address, self.reason = self._offer()
            except NotYetError as error:
                self.reason = str(error)
                if self._control.object_top < _MANY_BYTES:
                    return self._collector
                error.work.wait()
                return self._chosen()
            self._offer = None
            if address is not None:
                self.is_native, self._collector = True, native_collector(address)
        return self._collector

    # --- collections --------------------------------------------------------------------------

    def collect_for(self, wanted: int) -> bool:
        """Collect, so that `wanted` more bytes fit; False if the limit forbids it. Raises
        ValueError as `collect`."""
        self.collect()
        return self.enlarge_for(wanted)

    def enlarge_for(self, wanted: int) -> bool:
        """Make `wanted` more bytes fit without a collection; False if the limit forbids it."""
        is_enough = self.space.enlarge(self._control.object_top, wanted)
        self.bind()
        return is_enough

    def collect(self) -> None:
        """Perform a collection. Raises ValueError if the machine is in no state of its program."""
        control, memory, facts = self._control, self._memory, self._facts
        self.discard_prepared()
        pc = control.pc
        if pc >= len(self._verified.program.code) or not self._verified.is_reachable(pc):
            raise ValueError(f"pc is {pc}, which control never gets to")
        if control.object_top == FIRST_OFFSET and not self.space.outside:  # no object at all
            self._own_top = FIRST_OFFSET
            return
        request = Request()
        request.statics = memory.statics_address
        request.static_numbers, request.static_count = facts.map.statics.buffer_info()
        request.stack, request.fp = memory.stack_address, control.fp
        request.row = facts.map.row(pc)
        request.rows, _ = facts.map.rows.buffer_info()
        request.calls, request.pc_count = facts.map.calls.buffer_info()
        request.stops, _ = facts.map.stops.buffer_info()
        request.slots = ctypes.addressof(ctypes.c_char.from_buffer(self._slots)) + len(self._slots)
        self.handles.settle()
        request.handles, request.handle_count = self.handles.words.buffer_info()
        request.shapes, request.shape_count = facts.shapes.rows.buffer_info()[0], facts.shapes.count
        request.offsets, _ = facts.shapes.offsets.buffer_info()
        control.object_top = self.space.collect(request, control.object_top, self._chosen())
        self._own_top = request.own_top
        self.handles.moved()
        self.bind()

    @property
    def has_outside(self) -> bool:
        """True if there are elements outside of the space."""
        return bool(self.space.outside) or any(True for _ in self.space.hosts)

    def outside(self) -> list[OutsideArray]:
        """The elements outside of the space: of arrays, and prepared ones."""
        space = self.space
        words, base, types = space.words, space.base, dict[int, int]()
        for offset in space.large:
            at = offset // WORD_BYTES
            address = (words[at + PLACE_OFFSET // WORD_BYTES] + base) & _MASK
            types[address] = type_number(words[at])
        found = [OutsideArray(one.address, one.size, one.type) for one in space.hosts]
        blocks = space.outside.items()
        return found + [OutsideArray(at, size, types.get(at)) for at, size in blocks]

    @property
    def program(self) -> Program:
        """The program that they belong to."""
        return self._verified.program

    @property
    def control(self) -> ControlBlock:
        """The control block of the machine."""
        return self._control

    @property
    def types(self) -> TypeHierarchy:
        """The types of the program."""
        return self._verified.types

    @property
    def items(self) -> ItemMap:
        """The tables with which native code moves items."""
        return self._facts.items

    @property
    def shapes(self) -> Shapes:
        """The shapes of the program's types."""
        return self._facts.shapes

    def frame_references(self, words: memoryview, pc: int, fp: int, start: int) -> list[int]:
        """Words of a stack with references, from word `start` on: of the frame at `fp`, in which
        control is at `pc`, and of the frames around it that begin there or behind it."""
        found: list[int] = []
        facts = self._facts.map
        row = facts.row(pc)
        while True:
            found += (fp + offset & _MASK for offset in facts.positions(row))
            return_pc, distance = words[fp], words[fp + 1]
            if fp - distance < start:
                return sorted(found)
            fp, row = fp - distance, facts.calls[return_pc - 1]

    # --- allocation ---------------------------------------------------------------------------

    def fits(self) -> bool:
        """True if the instruction that left with ALLOCATE needs nothing of the engine."""
        control = self._control
        if self._is_long():
            return control.wanted <= LARGEST_TRANSFER
        elements = self.outside_of_wanted()
        if elements and (not control.prepared or control.prepared_bytes != elements):
            return False
        return control.object_top + control.wanted - elements <= control.object_end

    def outside_of_wanted(self) -> int:
        """Bytes outside of the space that the allocation that left with ALLOCATE needs."""
        control = self._control
        row = self._facts.type_rows[ROW_WORDS * control.wanted_type + ROW_KIND]
        is_array = row & ((1 << ROW_SIZE_SHIFT) - 1) in _ARRAYS
        return outside_bytes(control.wanted, is_array)

    def is_wanted(self) -> bool:
        """True if the type and the size of what left with ALLOCATE can be."""
        control = self._control
        count = len(self._facts.type_rows) // ROW_WORDS
        is_whole = not control.wanted % WORD_BYTES or self._is_long()
        return control.wanted_type < count and is_whole

    def _is_long(self) -> bool:
        """True if a fill or copy is at pc, which left because it would take long."""
        return self._verified.program.code.opcodes[self._control.pc] in LONG

    def allocate(self, stops: Stops = lambda: False) -> bool:
        """Provide space for the allocation that left with ALLOCATE, with its first values, or do
        most of a long fill or copy; False if the limit forbids it, or the system has no memory.

        `stops`: True if the program is to be interrupted; then there may be more to do. Raises
        ValueError as `collect`, and for operands that the instruction does not leave with."""
        control, space = self._control, self.space
        transfer = TRANSFERS.get(self._verified.program.code.opcodes[control.pc])
        if transfer is not None and self._is_long():
            self._transfer.advance(transfer, stops)
            return True
        self.discard_prepared()
        self.lacking = 0
        elements, wanted = self.outside_of_wanted(), control.wanted
        if self.is_forced or control.object_top + wanted > space.end:
            self.collect()
            is_enough = space.enlarge(control.object_top, wanted)
            control.object_end = space.end
            if not is_enough:
                return False
        if elements:
            place = self.new_block(elements)
            if place is None:
                self.lacking = elements
                space.release_reserve()
                return False
            control.prepared, control.prepared_bytes = place, elements
            if not self.is_forced:
                self._ahead.prepare(elements, space.end - control.object_top - wanted)
            control.object_end = space.end
            if transfer is not None and elements > LARGEST_TRANSFER:
                address = (place + space.base) & _MASK
                if not self._transfer.fill_all(address, transfer, elements, stops):
                    self.discard_prepared()
                    return True
        if self.is_forced:
            control.object_end = control.object_top + wanted - elements
        return True

    def new_block(self, size: int) -> int | None:
        """The place of `size` zero bytes outside of the space; None if the system has no memory for
        them, not even after a collection. Raises ValueError as `collect`."""
        place = self.space.make_block(size)
        if place is None:  # the dead arrays may have some, though none of them was due
            self.collect()
            place = self.space.make_block(size)
        return place

    def force(self) -> None:
        """For tests: have each allocation cause a collection from now on."""
        self.is_forced = True
        self._control.object_end = self._control.object_top

    def discard_prepared(self) -> None:
        """Give back elements that were prepared, and that no array has taken."""
        control = self._control
        is_changed = self._ahead.discard()
        if control.prepared:
            self.space.free_block(control.prepared)
            control.prepared, is_changed = 0, True
        if is_changed:
            self.bind()

    def elements(self, reference: int, most: int | None = None) -> bytes:
        """The bytes of the elements of an array, without padding: all, or the first `most`."""
        words, at, space = self.space.words, reference // WORD_BYTES, self.space
        size = self.shapes.rows[SHAPE_WORDS * type_number(words[at]) + 1]
        size *= words[at + LENGTH_OFFSET // WORD_BYTES]
        size = size if most is None else min(size, most)
        place: int = words[at + PLACE_OFFSET // WORD_BYTES]
        if place == reference + ARRAY_HEADER_BYTES:
            return bytes(space.bytes[place : place + size])
        address = (place + space.base) & _MASK
        return ctypes.string_at(address, min(size, space.bytes_at(address)))

    def is_reference(self, word: int, t: Reference) -> bool:
        """True if a reference of the program, whatever its declared type, is one of this type."""
        number = I31REF.number
        if not word:
            return True
        if not word & 1:
            number = type_number(self.space.words[word // WORD_BYTES])
        return self._verified.types.is_subtype(number, t.number)

    # --- states -------------------------------------------------------------------------------

    def image(self) -> ObjectImage:
        """The objects that the program itself can reach, after a collection. Raises ValueError as
        `collect`."""
        from ferryvm.machine.sparse import Sparse  # it takes NumPy, which few runs need

        self.collect()
        space, top = self.space, self._own_top
        content = bytearray(space.bytes[:top])
        words = memoryview(content).cast("Q")
        elements = []
        for offset in space.large[: bisect.bisect_left(space.large, top)]:
            at = (offset + PLACE_OFFSET) // WORD_BYTES
            elements.append(Sparse.of(bytes(space.block(words[at]))))
            words[at] = 0
        return ObjectImage(Sparse.of(bytes(content)), tuple(elements))

    def take(self, other: ObjectMemory) -> None:
        """Take over copies of another machine's objects, after a collection there; of the
        references to them only those of handles.

        Raises AddressSpaceError if they exceed the limit or there is no memory, ValueError as
        `collect`.
        """
        other.collect()
        source, top = other.space, other._control.object_top
        places = (source.words[(offset + PLACE_OFFSET) // WORD_BYTES] for offset in source.large)
        self.restore(source.bytes[:top], source.large, map(source.block, places))
        self.is_forced, self.space.budget = other.is_forced, min(source.budget, self.space.limit)
        self.bind()
        self._own_top = other._own_top
        self.handles.take(other.handles)
        self._collector, self._offer = other._collector, other._offer
        self._writer, self._offered_writer = other._writer, other._offered_writer
        self.is_native, self.reason = other.is_native, other.reason

    def restore(self, content: Buffer, large: Sequence[int], elements: Iterable[Buffer]) -> None:
        """Make the objects those of an image, which they are known to be.

        `content`: the space; `large`: the offsets of arrays whose `elements` are outside. Raises
        AddressSpaceError if they exceed the limit or there is no memory.
        """
        space, top = self.space, len(content)
        self.discard_prepared()
        space.clear(self._control.object_top)
        self._control.object_top = FIRST_OFFSET
        blocks = [*elements]
        size = sum(map(len, blocks))
        if not space.enlarge(top, size):
            raise AddressSpaceError(
                f"the objects take {top + size} bytes, the limit is {space.limit}"
            )
        space.bytes[:top] = content
        self._control.object_top = top
        for offset, block in zip(large, blocks, strict=True):
            space.words[(offset + PLACE_OFFSET) // WORD_BYTES] = self._filled_block(block)
        space.large = [*large]
        self.bind()

    def _filled_block(self, content: Buffer) -> int:
        """The place of a new block with this content."""
        place = self.space.make_block(len(content))
        if place is None:
            raise AddressSpaceError(f"no memory for an array of {len(content)} bytes")
        self.space.block(place)[:] = content
        return place
