# SPDX-License-Identifier: Apache-2.0
"""An instruction as operations: its meaning, run against an emitter that knows the variables."""

from __future__ import annotations

import abc

from ferryvm.ir.graph import FrameState, Operation, Terminator, Value
from ferryvm.ir.object_lifter import ObjectLifter
from ferryvm.ir.region_order import RegionOrder
from ferryvm.ir.variable import Variables
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Trap, Type
from ferryvm.isa.frame import HEADER_WORDS, number_of
from ferryvm.isa.table import Variable
from ferryvm.isa.type import I64, as_number
from ferryvm.region.barrier import waiting
from ferryvm.region.effect import Effects, code_effects, function_effects
from ferryvm.region.launch import out_of_order
from ferryvm.verify import Verified


class InstructionLifter(ObjectLifter):
    """Lifts instructions one after another, as far as they need the running frame only."""

    variables: Variables
    """The present values of the variables."""
    unpaid = 0
    """Instructions of the last payment that have not completed."""

    def __init__(self, verified: Verified, order: RegionOrder) -> None:
        super().__init__()
        self.verified, self.program, self.order = verified, verified.program, order
        self.types = verified.types
        self.own: Effects = code_effects(verified, order.pcs)
        promoted = self._promoted_statics()
        self.statics = sorted(promoted)
        """Statics that are SSA values here; the others are in memory."""
        self.written = self.own.statics_written & promoted
        self.frame_types = self.program.frame_types(order.function)
        self.parameters = len(self.program.signature(order.function).parameters)

    def _promoted_statics(self) -> frozenset[int]:
        """The statics that it accesses; none with computed numbers, and none that other items may
        have changed: behind a barrier they are read again, and a function that items call out of
        order stores those alone that it writes on its path."""
        if self.own.all_read or self.own.all_written:
            return frozenset()
        functions = out_of_order(self.verified) | waiting(self.verified).keys()
        accessed = self.own.statics_read | self.own.statics_written
        if self.order.function not in functions or not accessed:
            return accessed
        others = [function_effects(self.verified, number) for number in functions]
        if any(each.all_written for each in others):
            return frozenset()
        return accessed.difference(*(each.statics_written for each in others))

    @abc.abstractmethod
    def end(self, name: str, arguments: tuple[Value, ...], targets: tuple[int, ...]) -> None:
        """Terminate the block with a jump, branch or switch to instructions of the function."""

    def row(self, pc: int) -> Instruction:
        """The row of the instruction table for the instruction at a pc."""
        return INSTRUCTIONS[self.program.code.opcodes[pc]]

    def instruction(self, pc: int) -> bool:
        """Lift one instruction; True if control reaches its end."""
        row = self.row(pc)
        immediate = self.program.code.immediates[pc]
        self.pc, self.of, self.immediate, self.flow = pc, row, immediate, row.flow
        self._is_static = row.immediate is Immediate.STATIC
        self._before = None
        self._words_before = [*self.variables.words]
        self.is_open = True
        arguments: list[Value] = []
        if row.immediate is not Immediate.NONE:
            arguments.append(self.constant(row.immediate.literal or I64, immediate))
        bound: dict[str, Type] = {}
        if row.immediate is Immediate.LOCAL:
            bound["t"] = self._local_type()
        elif row.immediate is Immediate.STATIC:
            bound["t"] = self._static_type(immediate)
        elif row.immediate is Immediate.FIELD:
            bound["t"] = self.field_type()
        words = self.variables.words
        popped = words[len(words) - len(row.pops) :]
        del words[len(words) - len(row.pops) :]
        operands = []
        for t, value in zip(row.pops, popped, strict=True):
            if isinstance(t, Variable):
                bound[t.name] = value.word_type
                value = self.to_slot(value.word_type, value)
            operands.append(value)
        result = row.meaning(self, *arguments, *operands)
        if not self.is_open:
            return False
        if row.immediate is Immediate.TYPE and row.pops and result is operands[0]:
            result = self.cast(operands[0])
        if result is not None:
            results = result if isinstance(result, tuple) else (result,)
            for t, value in zip(row.pushes, results, strict=True):
                if isinstance(t, Variable):
                    value = self.from_slot(bound.get(t.name, I64), value)
                self.variables.words.append(value)
        if self.unpaid:
            self.unpaid -= 1
        return True

    # --- leaving ----------------------------------------------------------------------------

    _before: FrameState | None
    """The state before the instruction, created on demand."""

    def _here(self) -> FrameState:
        if self._before is None:
            self._before = self.variables.state(self.pc, self.unpaid, self._words_before)
        return self._before

    def trap_if(self, p: Value, kind: Trap) -> None:
        self._check("trap_if", (kind,), (p,))

    def _check(self, name: str, static: tuple[object, ...], arguments: tuple[Value, ...]) -> None:
        p = arguments[0]
        if p is not self.constant(p.type, 0):
            self.emit(Operation(name, None, static, arguments, self._here()))

    def grow_if(self, p: Value, wanted: Value) -> None:
        self._check("grow_if", (), (p, wanted))

    def continue_launch_if(self, p: Value) -> None:
        self._check("continue_launch_if", (), (p,))

    def _stop(self, name: str, *static: object) -> None:
        self.is_open = False
        self.close(Terminator(name, static, (), self._here()))

    def trap(self, kind: Trap) -> None:
        self._stop("trap", kind)

    def halt(self) -> None:
        self._stop("halt")

    def host(self, number: Value) -> None:
        if self.order.leaves_for_host(self.pc):
            self._stop("host", self.immediate)
            return
        signature, words = self.program.hosts[self.immediate].signature, self.variables.words
        first = len(words) - len(signature.parameters)
        arguments = tuple(words[first:])
        del words[first:]
        result = as_number(signature.results[0]) if signature.results else None
        call = Operation("call_host", result, (self.immediate,), arguments, self._here())
        self.emit(call)
        if result is not None:
            words.append(call)

    # --- storage ----------------------------------------------------------------------------

    def local(self, index: Value) -> Value:
        return self.to_slot(self._local_type(), self.variables.words[self._local_place()])

    def set_local(self, index: Value, slot: Value) -> None:
        self.variables.words[self._local_place()] = self.from_slot(self._local_type(), slot)

    def _local_number(self) -> int:
        """The number of the local that the immediate names."""
        number = number_of(self.immediate, self.parameters)
        assert number is not None  # the verifier guarantees it
        return number

    def _local_type(self) -> Type:
        return as_number(self.frame_types[self._local_number()])

    def _static_type(self, number: int) -> Type:
        return as_number(self.program.statics[number].type)

    def _local_place(self) -> int:
        """Its number among the words of the frame, which begin with the first parameter."""
        number = self._local_number()
        return number if number < self.parameters else number + HEADER_WORDS

    def _load_static(self, number: int) -> Operation:
        return self.emit(Operation("static", self._static_type(number), (number,)))

    def _store_static(self, number: int) -> None:
        v = self.variables
        self.emit(Operation("set_static", None, (number,), (v.statics[number],)))
        v.dirty -= {number}

    def static(self, index: Value) -> Value:
        if not self._is_static:
            return self.emit(Operation("static_at", I64, (), (index,)))
        t = self._static_type(self.immediate)
        if self.immediate in self.variables.statics:
            return self.to_slot(t, self.variables.statics[self.immediate])
        return self.to_slot(t, self._load_static(self.immediate))

    def set_static(self, index: Value, slot: Value) -> None:
        if not self._is_static:
            self.emit(Operation("set_static_at", None, (), (index, slot)))
            return
        value = self.from_slot(self._static_type(self.immediate), slot)
        if self.immediate in self.variables.statics:
            self.variables.statics[self.immediate] = value
            self.variables.dirty |= {self.immediate}
        else:
            self.emit(Operation("set_static", None, (self.immediate,), (value,)))

    def static_count(self) -> Value:
        return self.constant(I64, len(self.program.statics))

    def heap_load(self, bytes_: int, address: Value) -> Value:
        return self.emit(Operation("heap_load", I64, (bytes_,), (address,)))

    def heap_store(self, bytes_: int, address: Value, value: Value) -> None:
        self.emit(Operation("heap_store", None, (bytes_,), (address, value)))

    def _load_pointer(self) -> Operation:
        return self.emit(Operation("heap_pointer", I64))

    def _store_pointer(self) -> None:
        self.emit(Operation("set_heap_pointer", None, (), (self.heap_pointer(),)))
        self.variables.is_pointer_dirty = False

    def heap_pointer(self) -> Value:
        assert self.variables.pointer is not None
        return self.variables.pointer

    def set_heap_pointer(self, value: Value) -> None:
        self.variables.pointer, self.variables.is_pointer_dirty = value, True

    def heap_capacity(self) -> Value:
        return self.invariant("heap_capacity", (), (), I64)

    # --- control ----------------------------------------------------------------------------

    def jump(self, target: Value) -> None:
        self.end("jump", (), (self.immediate,))

    def jump_if(self, p: Value, target: Value) -> None:
        taken, onward = self.immediate, self.pc + 1
        seen = self.order.taken(self.pc, (taken, onward))
        if len(seen) == 1 and taken != onward:
            self._check("guard", (self.pc,), (self.none(p) if seen == (taken,) else p,))
            self.end("jump", (), seen)
            return
        self.end("branch", (p,), (taken, onward))

    def skip(self, count: Value) -> None:
        targets = tuple(range(self.pc + 1, self.pc + 2 + self.immediate))
        self.end("switch", (count,), targets)
