# SPDX-License-Identifier: Apache-2.0
"""The storage half of the emitter protocol over a machine's memory views.

It is strict: a meaning that has an effect before it is done with traps, or memory that is not as
the verifier promised, is a `Violation`, an error of ferryvm and not of the program.
"""

from __future__ import annotations

from ferryvm.isa import Trap
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm_backends.reference.object import ObjectEmitter, Violation

_NEGATIVE = 1 << 63
"""The bits of the least i64: parameters, below the frame, have such numbers."""


class ReferenceEmitter(PythonArithmetic, ObjectEmitter):
    """Runs meanings on a machine, one instruction at a time."""

    def __init__(self, machine: Machine) -> None:
        self.control = machine.control
        self.memory = machine.memory
        self.stack = machine.memory.stack
        self.statics = machine.memory.statics
        self.functions = machine.descriptors
        self.table = machine.program.table
        self.conforming = set()
        self.pc = self.sp = self.fp = 0
        self.next = 0
        """The next instruction."""
        self.jumped = False
        """True if control reaches it by a jump, call or return."""
        self.changed = False
        """True if this instruction has had an effect."""

    # --- leaving ----------------------------------------------------------------------------

    def trap_if(self, p: int, kind: Trap) -> None:
        if p:
            self.control.trap = kind
        self._leave_if(p, Status.TRAP)

    def trap(self, kind: Trap) -> None:
        self.trap_if(True, kind)

    def grow_if(self, p: int, wanted: int) -> None:
        if p:
            self.control.wanted = wanted
        self._leave_if(p, Status.GROW)

    def continue_launch_if(self, p: int) -> None:
        self._leave_if(p, Status.LAUNCH)

    def halt(self) -> None:
        self._leave_if(True, Status.HALT)

    def host(self, number: int) -> None:
        self.control.exit_id = number
        self._leave_if(True, Status.HOST)

    def throw(self) -> None:
        self._leave_if(True, Status.THROW)

    # --- storage ----------------------------------------------------------------------------

    def local(self, index: int) -> int:
        return self.stack[self.fp + (index if index < _NEGATIVE else signed(I64, index))]

    def set_local(self, index: int, slot: int) -> None:
        self.changed = True
        self.stack[self.fp + (index if index < _NEGATIVE else signed(I64, index))] = slot

    def static(self, index: int) -> int:
        return self.statics[index]

    def set_static(self, index: int, slot: int) -> None:
        self.changed = True
        self.statics[index] = slot

    def static_count(self) -> int:
        return len(self.statics)

    def heap_load(self, bytes_: int, address: int) -> int:
        self._check_heap(bytes_, address)
        return int.from_bytes(self.memory.heap[address : address + bytes_], "little")

    def heap_store(self, bytes_: int, address: int, value: int) -> None:
        self._check_heap(bytes_, address)
        self.changed = True
        low = value & ((1 << 8 * bytes_) - 1)
        self.memory.heap[address : address + bytes_] = low.to_bytes(bytes_, "little")

    def heap_pointer(self) -> int:
        return self.control.hp

    def set_heap_pointer(self, value: int) -> None:
        if not self.control.hp <= value <= self.control.heap_capacity:
            raise Violation(f"pc {self.pc}: heap pointer {value}")
        self.changed = True
        self.control.hp = value

    def heap_capacity(self) -> int:
        return self.control.heap_capacity

    # --- control ----------------------------------------------------------------------------

    def jump(self, target: int) -> None:
        self.next, self.jumped = target, True

    def jump_if(self, p: int, target: int) -> None:
        if p:
            self.jump(target)

    def skip(self, count: int) -> None:
        self.next = self.pc + 1 + count

    # --- frames -----------------------------------------------------------------------------

    def frame_pointer(self) -> int:
        return WORD_BYTES * self.fp

    def stack_pointer(self) -> int:
        return WORD_BYTES * self.sp

    def stack_limit(self) -> int:
        return WORD_BYTES * self.memory.stack_words

    def word(self, address: int) -> int:
        return self.stack[address // WORD_BYTES]

    def set_word(self, address: int, slot: int) -> None:
        self.changed = True
        self.stack[address // WORD_BYTES] = slot

    def clear_words(self, address: int, count: int) -> None:
        self.changed = True
        start = address // WORD_BYTES
        self.stack[start : start + count] = memoryview(bytes(WORD_BYTES * count)).cast("Q")

    def move_results(self, to: int, end: int, count: int) -> None:
        self.changed = True
        first, last = to // WORD_BYTES, end // WORD_BYTES
        self.stack[first : first + count] = memoryview(
            self.stack[last - count : last].tobytes()
        ).cast("Q")

    def push_words(self, slot: int, address: int, count: int) -> None:
        self.changed = True
        at = address // WORD_BYTES
        for word in (slot, *self.stack[at : at + count].tolist()):
            self.stack[self.sp] = word
            self.sp += 1

    def next_pc(self) -> int:
        return self.pc + 1

    def function(self, function: int, field: FunctionField) -> int:
        return self.functions[function][field]

    def table_size(self) -> int:
        return len(self.table)

    def table_function(self, index: int) -> int:
        return self.table[index]

    def enter(self, function: int, frame: int, stack: int) -> None:
        self.resume(self.functions[function][FunctionField.ENTRY], frame, stack)

    def resume(self, pc: int, frame: int, stack: int) -> None:
        self.fp, self.sp = frame // WORD_BYTES, stack // WORD_BYTES
        self.jump(pc)
