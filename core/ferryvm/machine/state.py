# SPDX-License-Identifier: Apache-2.0
"""A machine: the control block and memory of one execution, with methods that read them.

It is the state that backends hand to each other. It does not depend on a backend: each backend sees
the same words at the same addresses, and leaves them as the reference backend would.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.errors import FerryError, Position
from ferryvm.isa import Trap, Type
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES, Reference, format_value
from ferryvm.machine.control import (
    ABI_VERSION,
    DESCRIPTOR_WORDS,
    REGISTER_BYTES,
    Status,
)
from ferryvm.machine.memory import AddressSpaceError, Limits, Memory
from ferryvm.machine.native import NATIVE_WORDS, NativeField, NativeFunction
from ferryvm.machine.raised import Raised
from ferryvm.machine.reference_use import has_objects
from ferryvm.program import Program
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.machine.object_memory import ObjectImage, ObjectMemory
    from ferryvm.machine.sparse import Sparse

__all__ = ["Frame", "Machine", "Snapshot"]


@record.dataclass(frozen=True)
class Frame:
    """One active call."""

    function: str
    pc: int
    """The current instruction of the frame: the stopped one in the innermost frame, a call in
    others."""
    position: Position | None
    skipped: int = 0
    """Number of omitted calls between the previous frame in the list and this one."""
    is_cut: bool = False
    """True for the last frame of a list if there are uncounted outer calls: very many, whose frames
    do not repeat."""

    def __str__(self) -> str:
        return f"{self.function} at {self.position or f'pc {self.pc}'}"


@record.dataclass(frozen=True)
class Snapshot:
    """State of a machine as plain values; equal states have equal snapshots."""

    status: Status
    trap: Trap
    pc: int
    sp: int
    fp: int
    hp: int
    statics: bytes
    stack: bytes
    """Words of the stack in use, little-endian."""
    heap: Sparse
    """Bytes of the heap in use."""
    objects: ObjectImage | None
    """The objects; None for a program that has no references."""


class Machine:
    """State of one execution of a verified program; a new machine is at the program's start."""

    def __init__(self, verified: Verified, limits: Limits | None = None) -> None:
        self.verified = verified
        program = self.program = verified.program
        data_end = max((data.address + len(data.bytes) for data in program.data), default=0)
        self.memory = Memory(len(program.statics), data_end, limits or Limits())
        self.descriptors = descriptors(verified)
        """The words of each function's descriptor."""
        self._descriptors = array("Q", [word for row in self.descriptors for word in row])
        self._table = array("Q", (*program.table, 0))  # an empty array would have no address
        self.natives = array("Q", bytes(WORD_BYTES * NATIVE_WORDS * len(program.hosts)))
        """Rows by host import, see `ferryvm.machine.native`; for a row of zeros, code leaves with
        HOST."""
        self.raised = Raised()
        """Exceptions that host functions raised and the program caught, by their handles."""
        self.torn = ""
        """The event that left the registers in the middle of an instruction; empty where they are
        right."""
        self.control = self.memory.control
        self.objects = _objects(verified, self.memory)
        """The objects; None for a program that has no references."""
        self.bind()
        for number, static in enumerate(program.statics):
            self.memory.statics[number] = static.bits
        for data in program.data:
            self.memory.heap[data.address : data.address + len(data.bytes)] = data.bytes
        control = self.control
        control.hp = -(-data_end // WORD_BYTES) * WORD_BYTES
        control.pc = program.functions[0].entry
        control.sp = HEADER_WORDS + len(program.functions[0].locals)
        if verified.frame_words[0] > self.memory.stack_words:
            control.status, control.trap = Status.TRAP, Trap.STACK_OVERFLOW

    def bind(self) -> None:
        """Write the addresses of this process into the control block."""
        control, memory = self.control, self.memory
        control.abi_version = ABI_VERSION
        control.heap_capacity = memory.heap_capacity
        control.heap_limit = memory.heap_limit
        control.static_count = len(memory.statics)
        control.table_size = len(self.program.table)
        control.statics = memory.statics_address
        control.stack = memory.stack_address
        control.stack_end = memory.stack_address + WORD_BYTES * memory.stack_words
        control.heap = memory.heap_address
        control.functions, _ = self._descriptors.buffer_info()
        control.table, _ = self._table.buffer_info()
        control.natives, _ = self.natives.buffer_info()
        if self.objects is not None:
            self.objects.bind()

    def extend(self, verified: Verified) -> None:
        """Go on with a program whose code, functions, types, statics, hosts and tags begin with
        this one's. All that backends have prepared is for the old program. Raises
        AddressSpaceError."""
        rows, objects = descriptors(verified), self.objects
        if objects is None:
            objects = _objects(verified, self.memory)  # it may raise, so nothing has changed yet
        else:
            objects.extend(verified)
        self.objects, self.descriptors = objects, rows
        self.verified, self.program = verified, verified.program
        self._descriptors = array("Q", [word for row in rows for word in row])
        self._table = array("Q", (*self.program.table, 0))
        self.bind()

    def bind_native(self, number: int, function: NativeFunction, caller: int) -> None:
        """Let native code call `function` for the host import of that number through `caller`, an
        address; with 0 code leaves instead."""
        row = [0] * NATIVE_WORDS
        if caller:
            row[NativeField.FUNCTION], row[NativeField.CALLER] = function.address, caller
            row[NativeField.PARAMETERS] = len(function.signature.parameters)
            row[NativeField.RESULTS] = len(function.signature.results)
        self.natives[NATIVE_WORDS * number : NATIVE_WORDS * (number + 1)] = array("Q", row)

    def inherit(self, earlier: Machine) -> None:
        """Take over an earlier machine's heap, its objects and the values of its statics.

        Raises AddressSpaceError if heap or objects exceed this machine's limits, FerryError if this
        program's types, or the types of its statics, do not begin with the earlier one's, or it has
        initial data.
        """
        count = len(earlier.memory.statics)
        types = [static.type for static in self.program.statics[:count]]
        if types != [static.type for static in earlier.program.statics] or self.program.data:
            raise FerryError(
                "the program does not continue the earlier one: its first statics "
                "differ, or it has data"
            )
        declared = self.program.types[: len(earlier.program.types)]
        if earlier.objects is not None and declared != earlier.program.types:
            raise FerryError("the program does not continue the earlier one: its types differ")
        hp = earlier.control.hp
        if not self.memory.grow(hp):
            limit = self.memory.heap_limit
            raise AddressSpaceError(f"the heap has {hp} bytes, the limit is {limit}; raise it")
        if self.objects is not None and earlier.objects is not None:
            self.objects.take(earlier.objects)
            self.objects.handles.forget()
        self.memory.statics[:count] = earlier.memory.statics
        self.memory.take_heap(earlier.memory, hp)
        self.control.hp = hp
        self.control.heap_capacity = self.memory.heap_capacity

    def copy(self) -> Machine:
        """A new machine in the same state. Raises AddressSpaceError."""
        clone = Machine(self.verified, self.memory.limits)
        clone._take(self)
        return clone

    def _take(self, other: Machine) -> None:
        """Copy the state of a machine with the same limits."""
        memory, new = self.memory, other.memory
        if self.objects is not None and other.objects is not None:
            self.objects.take(other.objects)  # a collection there, before its words are copied
        # The first half is the registers, the second binds the block to this memory.
        ctypes.memmove(self.address, other.address, REGISTER_BYTES)
        if new.heap_capacity > memory.heap_capacity:
            memory.grow(new.heap_capacity)
        self.control.heap_capacity = memory.heap_capacity
        memory.statics[:] = new.statics
        memory.stack[: self.control.sp] = new.stack[: self.control.sp]
        memory.take_heap(new, self.control.hp)
        self.raised = other.raised.copy()

    def adopt(self, clone: Machine) -> None:
        """Restore the state of a copy of this machine; the old state is discarded."""
        self._take(clone)

    def snapshot(self) -> Snapshot:
        """The whole state of the program, for comparisons between backends; after a collection.

        Raises ValueError where the objects are damaged, by a fault of a backend."""
        control, memory = self.control, self.memory
        # First: it changes the references in statics and on the stack.
        image = None if self.objects is None else self.objects.image()
        return Snapshot(
            self.status,
            Trap(control.trap) if control.status == Status.TRAP else Trap.NONE,
            control.pc,
            control.sp,
            control.fp,
            control.hp,
            memory.statics.tobytes(),
            memory.stack[: control.sp].tobytes(),
            self.heap_in_use(),
            image,
        )

    def heap_in_use(self) -> Sparse:
        """The bytes of the heap below the heap pointer."""
        from ferryvm.machine.sparse import Sparse  # imports NumPy, which few runs need

        memory, hp = self.memory, self.control.hp
        parts = tuple((start, bytes(memory.heap[start:end])) for start, end in memory.heap_runs(hp))
        return Sparse(hp, parts)

    @property
    def address(self) -> int:
        """Address of the control block, for native code."""
        return ctypes.addressof(self.control)

    @property
    def status(self) -> Status:
        """The reason that the machine stopped."""
        return Status(self.control.status)

    @property
    def position(self) -> Position | None:
        """Source position of the current instruction."""
        return self.program.source_map.position(self.control.pc)

    def grow(self, wanted: int | None = None) -> bool:
        """Make that many bytes of the heap usable; by default the bytes that the allocation at pc,
        which left with GROW, needs. False if the limit forbids it."""
        grown = self.memory.grow(self.control.wanted if wanted is None else wanted)
        self.control.heap_capacity = self.memory.heap_capacity
        return grown

    def result(self) -> tuple[Type, int] | None:
        """Type and bits of the top operand of the innermost frame; None if there is none, or it is
        a reference."""
        types = self.verified.operand_types(self.control.pc)
        t = types[-1] if types else None
        return (t, self.memory.stack[self.control.sp - 1]) if isinstance(t, Type) else None

    def result_text(self) -> str | None:
        """The top operand of the innermost frame as text, objects with their content; None if there
        is none."""
        types = self.verified.operand_types(self.control.pc)
        if not types:
            return None
        bits: int = self.memory.stack[self.control.sp - 1]
        if not isinstance(types[-1], Reference) or self.objects is None:
            return format_value(types[-1], bits)
        from ferryvm.machine.object_text import object_text  # few programs have objects

        return object_text(self.objects, bits)

    def frames(self, most: int = 12) -> list[Frame]:
        """The active calls, innermost first: at most `most` of them from each end.

        It takes milliseconds for any number of calls; see `ferryvm.machine.frame_chain`."""
        from ferryvm.machine.frame_chain import follow  # which few runs need

        control = self.control
        chain = follow(self.memory.stack, control.pc, control.fp, most)
        frames = [self._frame(pc) for pc in chain.inner + chain.outer]
        if chain.skipped:
            at = len(chain.inner)
            frames[at] = record.replace(frames[at], skipped=chain.skipped)
        if not chain.is_whole:
            frames[-1] = record.replace(frames[-1], is_cut=True)
        return frames

    def _frame(self, pc: int) -> Frame:
        name = self.program.functions[self.verified.owner(pc)].name
        return Frame(name, pc, self.program.source_map.position(pc))


def _objects(verified: Verified, memory: Memory) -> ObjectMemory | None:
    if not has_objects(verified):
        return None
    from ferryvm.machine.object_memory import ObjectMemory  # few programs have objects

    return ObjectMemory(verified, memory)


def descriptors(verified: Verified) -> list[list[int]]:
    """The function descriptors that calls read (see `FunctionField`), DESCRIPTOR_WORDS words
    each."""
    program: Program = verified.program
    parameters = [len(signature.parameters) for signature in program.signatures]
    rest = [0] * (DESCRIPTOR_WORDS - len(FunctionField))
    return [  # in the order of `FunctionField`; items set by field take four times as long
        [f.entry, parameters[f.signature], len(f.locals), words, f.signature, *rest]
        for f, words in zip(program.functions, verified.frame_words, strict=True)
    ]
