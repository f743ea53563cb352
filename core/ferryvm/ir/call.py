# SPDX-License-Identifier: Apache-2.0
"""Frames, calls and returns: words visible to a callee are stored before the call, and loaded again
after it."""

from __future__ import annotations

import abc

from ferryvm.ir.graph import Body, Constant, Operation, Terminator, Value
from ferryvm.ir.instruction import InstructionLifter
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.table import Flow, Immediate
from ferryvm.isa.type import I64, WORD_BYTES, as_number
from ferryvm.program import Signature
from ferryvm.region.effect import Effects, function_effects


class CallLifter(InstructionLifter):
    """Lifts operations on frames. Addresses in the running frame denote its words."""

    body: Body
    """The body that is being lifted."""

    def frame_pointer(self) -> Value:
        return self._address_of(self.parameters)

    def stack_pointer(self) -> Value:
        return self._address_of(len(self.variables.words))

    def _address_of(self, place: int) -> Value:
        """The address of a word of the frame, counted from its first parameter."""
        frame = self.invariant("frame", (), (), I64)
        return self.add(I64, frame, self.constant(I64, WORD_BYTES * place))

    def stack_limit(self) -> Value:
        return self.invariant("stack_limit", (), (), I64)

    def _word_at(self, address: Value) -> int:
        """The word of the frame at an address."""
        if not isinstance(address, Operation) or address.name != "add":
            return 0
        offset = address.arguments[1]
        assert isinstance(offset, Constant)
        return offset.bits // WORD_BYTES

    def word(self, address: Value) -> Value:
        value = self.variables.words[self._word_at(address)]
        return self.to_slot(value.word_type, value)

    def set_word(self, address: Value, slot: Value) -> None:
        words, at = self.variables.words, self._word_at(address)
        words[at : at + 1] = [slot]  # a callee's header comes right after the arguments

    def clear_words(self, address: Value, count: Value) -> None:
        """No operation: the callee's locals are values of the callee's body, and zero there."""

    def move_results(self, to: Value, end: Value, count: Value) -> None:
        assert isinstance(count, Constant)
        words, at, past = self.variables.words, self._word_at(to), self._word_at(end)
        words[at : at + count.bits] = words[past - count.bits : past]

    def push_words(self, slot: Value, address: Value, count: Value) -> None:
        assert isinstance(count, Constant)
        words, at = self.variables.words, self._word_at(address)
        words += [slot, *words[at : at + count.bits]]

    def next_pc(self) -> Value:
        return self.constant(I64, self.pc + 1)

    def function(self, function: Value, field: FunctionField) -> Value:
        if self.of.immediate in (Immediate.FUNCTION, Immediate.ITEM):
            return self.constant(I64, self._field(self.immediate, field))
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
        signature = self._signature()
        base = self._word_at(frame) - len(signature.parameters)
        arguments = tuple(v.words[base:-HEADER_WORDS])
        words = [*v.words[:base], *(None for _ in arguments), *v.words[-HEADER_WORDS:]]
        del v.words[base:]
        name: str
        static: tuple[object, ...]
        if self.flow is Flow.CALL:
            callees = [self.immediate]
            name, static = "call", (self.immediate, base)
        else:
            table = sorted(set(self.program.table))
            functions = self.program.functions
            callees = [n for n in table if functions[n].signature == self.immediate]
            name, static = "call_indirect", (tuple(callees), base)
            arguments = (function, *arguments)
        seen = [function_effects(self.verified, number) for number in callees]
        self._store_for(seen)
        # Changes by the callee are in memory when it leaves; the rest is stored then. Its
        # incomplete work is in its own state.
        state = v.state(self.pc, 0, words)
        results = tuple(map(as_number, signature.results))
        result = results[0] if results else None
        call = self.emit(Operation(name, result, static, arguments, state))
        self._catch(callees)
        if results:
            v.words.append(call)
        # `Body.place_of` in the callee's frame; its arguments are the state's last words but two.
        v.words += [
            self.emit(Operation("result", t, (len(words) + at,)))
            for at, t in enumerate(results[1:])
        ]
        self._load_after(seen)

    @abc.abstractmethod
    def _catch(self, callees: list[int]) -> None:
        """Record after a call of one of these functions that clauses catch its exceptions."""

    def _signature(self) -> Signature:
        """The signature of the called function."""
        if self.flow is Flow.CALL:
            return self.program.signature(self.immediate)
        return self.program.signatures[self.immediate]

    def _store_for(self, seen: list[Effects]) -> None:
        """Store the words that callees may see."""
        v = self.variables
        for number in sorted(v.dirty):
            if any(number in e.statics_read or number in e.statics_written for e in seen):
                self._store_static(number)
        if v.is_pointer_dirty and any(e.reads_heap_pointer for e in seen):
            self._store_pointer()

    def _load_after(self, seen: list[Effects]) -> None:
        """Load the words that callees may have changed."""
        v = self.variables
        for number in self.statics:
            if any(number in e.statics_written for e in seen):
                v.statics[number] = self._load_static(number)
        if v.pointer is not None and any(e.allocates for e in seen):
            v.pointer = self._load_pointer()

    def resume(self, pc: Value, frame: Value, stack: Value) -> None:
        self.is_open = False
        v = self.variables
        values = tuple(v.words[: len(self.body.results)])  # they have been moved to its start
        for number in sorted(v.dirty):
            self._store_static(number)
        if v.is_pointer_dirty:
            self._store_pointer()
        self.close(Terminator("return", (), values))
