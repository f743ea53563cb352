# SPDX-License-Identifier: Apache-2.0
"""Frames, calls and returns: what a callee may see is stored for it, and loaded again after it."""

from __future__ import annotations

from ferryvm.ir.graph import Body, Constant, Operation, Terminator, Value
from ferryvm.ir.instruction import InstructionLifter
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.table import Flow
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm.region.effect import Effects, function_effects


class CallLifter(InstructionLifter):
    """Lifts what has to do with frames. An address in the running frame stands for a word there."""

    body: Body
    """What is being lifted."""

    def frame_pointer(self) -> Value:
        return self.invariant("frame", (), (), I64)

    def stack_pointer(self) -> Value:
        offset = self.constant(I64, WORD_BYTES * len(self.variables.words))
        return self.add(I64, self.frame_pointer(), offset)

    def stack_limit(self) -> Value:
        return self.invariant("stack_limit", (), (), I64)

    def _word_at(self, address: Value) -> int:
        """Which word of the frame is at an address."""
        if not isinstance(address, Operation) or address.name != "add":
            return 0
        offset = address.arguments[1]
        assert isinstance(offset, Constant)
        return offset.bits // WORD_BYTES

    def word(self, address: Value) -> Value:
        value = self.variables.words[self._word_at(address)]
        return self.to_slot(value.word_type, value)

    def set_word(self, address: Value, slot: Value) -> None:
        self.variables.words[self._word_at(address)] = slot

    def clear_words(self, address: Value, count: Value) -> None:
        """Nothing: the callee's locals are values of the callee's body, and zero there."""

    def next_pc(self) -> Value:
        return self.constant(I64, self.pc + 1)

    def function(self, function: Value, field: FunctionField) -> Value:
        if self.flow is Flow.CALL:
            return self.constant(I64, self._field(self.immediate, field))
        if field is FunctionField.PARAMETERS:  # the signature has been checked
            return self.constant(I64, len(self.program.signatures[self.immediate].parameters))
        return self.invariant("function_field", (field,), (function,), I64)

    def _field(self, number: int, field: FunctionField) -> int:
        function = self.program.functions[number]
        match field:
            case FunctionField.ENTRY:
                return function.entry
            case FunctionField.PARAMETERS:
                return len(self.program.signature(number).parameters)
            case FunctionField.LOCALS:
                return len(function.locals)
            case FunctionField.FRAME:
                return self.verified.frame_words[number]
            case FunctionField.SIGNATURE:
                return function.signature

    def table_size(self) -> Value:
        return self.constant(I64, len(self.program.table))

    def table_function(self, index: Value) -> Value:
        return self.invariant("table_function", (), (index,), I64)

    def enter(self, function: Value, frame: Value, stack: Value) -> None:
        v = self.variables
        base = self._word_at(frame)
        arguments = tuple(v.words[base + HEADER_WORDS :])
        del v.words[base + HEADER_WORDS :]
        name: str
        static: tuple[object, ...]
        if self.flow is Flow.CALL:
            callees = [self.immediate]
            signature = self.program.signature(self.immediate)
            name, static = "call", (self.immediate, base)
        else:
            table = sorted(set(self.program.table))
            functions = self.program.functions
            callees = [n for n in table if functions[n].signature == self.immediate]
            signature = self.program.signatures[self.immediate]
            name, static = "call_indirect", (tuple(callees), base)
            arguments = (function, *arguments)
        seen = [function_effects(self.verified, number) for number in callees]
        self._store_for(seen)
        # What the callee changes is in memory when it leaves; the rest is stored then. What it has
        # not completed is its own affair.
        state = v.state(self.pc, unpaid=0)
        results = signature.results
        result = results[0] if results else None
        call = self.emit(Operation(name, result, static, arguments, state))
        del v.words[base:]
        if results:
            v.words.append(call)
        self._load_after(seen)

    def _store_for(self, seen: list[Effects]) -> None:
        """Store what callees may see."""
        v = self.variables
        for number in sorted(v.dirty):
            if any(number in e.statics_read or number in e.statics_written for e in seen):
                self._store_static(number)
        if v.is_pointer_dirty and any(e.reads_heap_pointer for e in seen):
            self._store_pointer()

    def _load_after(self, seen: list[Effects]) -> None:
        """Load what callees may have changed."""
        v = self.variables
        for number in self.statics:
            if any(number in e.statics_written for e in seen):
                v.statics[number] = self._load_static(number)
        if v.pointer is not None and any(e.allocates for e in seen):
            v.pointer = self._load_pointer()

    def resume(self, pc: Value, frame: Value, stack: Value) -> None:
        self.is_open = False
        v = self.variables
        # The result, if there is one, has been put where the header was.
        values = (self.from_slot(self.body.result, v.words[0]),) if self.body.result else ()
        for number in sorted(v.dirty):
            self._store_static(number)
        if v.is_pointer_dirty:
            self._store_pointer()
        self.close(Terminator("return", (), values))
