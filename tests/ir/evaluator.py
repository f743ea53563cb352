# SPDX-License-Identifier: Apache-2.0
"""Runs the region IR on a machine, in Python: what its operations mean, without a compiler.

Arithmetic is the reference backend's own. Leaving writes what a state says, each body its own
frame, as docs/ir.md demands of compilers.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
from typing import Any

from ferryvm.ir.graph import Body, Constant, Edge, FrameState, Module, Operation, Value
from ferryvm.ir.operation import element_bytes
from ferryvm.isa import Trap
from ferryvm.isa.atomic import updated
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.numeric import canonical
from ferryvm.isa.object import ROW_WORDS
from ferryvm.isa.type import I32, I64, WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine

_ENDS = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
    "throw": Status.LEAVE,
}


@dataclasses.dataclass
class _Frame:
    """One body while it runs."""

    body: Body
    at: int
    """The number of the first word of its frame."""
    values: dict[Value, int]


class _LeftError(Exception):
    """Control has left; frames and registers are being written."""


class _ThrownError(_LeftError):
    """An exception is on its way, and no caller has caught it yet."""

    def __init__(self, tag: int, at: int) -> None:
        """`at`: the word of the stack where its values begin."""
        super().__init__()
        self.tag, self.at = tag, at


class Evaluator(PythonArithmetic):
    """One run of a module from its entry."""

    def __init__(self, module: Module, machine: Machine, polls: int = 200) -> None:
        """`polls`: places where the interrupt flag is looked at before it is found set."""
        self.module, self.machine, self.polls = module, machine, polls
        self.tags: Any = ()
        """The tags that the operation in hand catches, if it is a call."""
        self.control, self.memory = machine.control, machine.memory
        self.loads = self.header_loads = self.operations = 0
        """How many loads from the heap or of elements, of header words, and operations at all, have
        been done."""
        self.caught = 0
        """The number of the tag, from 1, that the last call has thrown; 0: it returned."""
        self.values = 0
        """The word of the stack where the values of the last exception begin."""
        self.told: list[tuple[int, int]] = []
        """Versions of nests that were run: the nest, and 0 for the fast one or why not."""

    def run(self) -> Status:
        """Run until control leaves the region; the status says why."""
        body = self.module.root
        frame = _Frame(body, self.control.fp - body.parameters, {})
        try:
            results = self._body(frame, [])
        except _LeftError:
            return Status(self.control.status)
        stack, control = self.memory.stack, self.control
        header = frame.at + frame.body.parameters
        control.pc, distance = stack[header], stack[header + 1]
        for place, result in enumerate(results):
            stack[frame.at + place] = result
        control.fp, control.sp = header - distance, frame.at + len(results)
        control.status = Status.LEAVE
        return Status.LEAVE

    def begin(self) -> None:
        """Begin an operation."""
        self.operations += 1

    def canonical(self, t: Type, a: int) -> int:
        """`a`, or the canonical NaN if it is any NaN."""
        return canonical(self, t, a)

    def _body(self, frame: _Frame, arguments: list[int]) -> list[int]:
        block = frame.body.blocks[0]
        frame.values.update(zip(block.parameters, arguments, strict=True))
        while True:
            for operation, following in itertools.zip_longest(
                block.operations, block.operations[1:]
            ):
                self.begin()
                self.tags = following.static[0] if following and following.name == "caught" else ()
                special = getattr(self, f"_do_{operation.name}", None)
                values = [self._value(frame, a) for a in operation.arguments]
                if special is not None:
                    result = special(frame, operation, *values)
                else:
                    result = getattr(self, operation.name)(*operation.static, *values)
                if operation.type is not None:
                    frame.values[operation] = result
            end = block.end
            values = [self._value(frame, a) for a in end.arguments]
            if end.name == "return":
                return values
            if end.name in _ENDS:
                if end.name == "trap":
                    self.control.trap = end.static[0]  # type: ignore[assignment]  # verified
                if end.name == "host":
                    self.control.exit_id = end.static[0]  # type: ignore[assignment]  # verified
                assert end.state is not None
                try:
                    self._leave(frame, end.state, _ENDS[end.name])
                except _LeftError:
                    if end.name != "throw":
                        raise
                    tag, first = end.fact(0, int), end.fact(1, int)
                    raise _ThrownError(tag, frame.at + first) from None
            edge: Edge = end.edges[0]
            if end.name == "branch" and not values[0]:
                edge = end.edges[1]
            if end.name == "switch":
                edge = end.edges[min(values[0], len(end.edges) - 1)]
            passed = [self._value(frame, a) for a in edge.arguments]
            block = edge.block
            frame.values.update(zip(block.parameters, passed, strict=True))

    def _value(self, frame: _Frame, value: Value) -> int:
        if isinstance(value, Constant):
            return value.bits
        if value not in frame.values and isinstance(value, Operation):
            assert value.name == "canonical"  # only states name what has no place
            (t,) = value.static
            assert isinstance(t, Type)
            return self.canonical(t, self._value(frame, value.arguments[0]))
        return frame.values[value]

    # --- leaving ----------------------------------------------------------------------------

    def _leave(self, frame: _Frame, state: FrameState, status: Status) -> None:
        self._write(frame, state)
        control = self.control
        control.fuel += state.unpaid
        control.pc, control.sp = state.pc, frame.at + len(state.words)
        control.fp = frame.at + frame.body.header_of(state)
        control.status = status
        raise _LeftError

    def _write(self, frame: _Frame, state: FrameState) -> None:
        for index, word in enumerate(state.words):
            if word is not None:
                self.memory.stack[frame.at + index] = self._value(frame, word)
        for number, value in state.statics:
            self.memory.statics[number] = self._value(frame, value)
        if state.heap_pointer is not None:
            self.control.hp = self._value(frame, state.heap_pointer)

    def _leave_if(self, frame: _Frame, operation: Operation, p: int, status: Status) -> None:
        if p:
            assert operation.state is not None
            self._leave(frame, operation.state, status)

    def _do_trap_if(self, frame: _Frame, operation: Operation, p: int) -> None:
        if p:
            (trap,) = operation.static
            assert isinstance(trap, Trap)
            self.control.trap = trap
        self._leave_if(frame, operation, p, Status.TRAP)

    def _do_grow_if(self, frame: _Frame, operation: Operation, p: int, wanted: int) -> None:
        if p:
            self.control.wanted = wanted
        self._leave_if(frame, operation, p, Status.GROW)

    def _do_allocate_if(
        self, frame: _Frame, operation: Operation, p: int, wanted: int, type_: int
    ) -> None:
        if p:
            self.control.wanted, self.control.wanted_type = wanted, type_
        self._leave_if(frame, operation, p, Status.ALLOCATE)

    def _do_continue_launch_if(self, frame: _Frame, operation: Operation, p: int) -> None:
        self._leave_if(frame, operation, p, Status.LAUNCH)

    def _do_launch_word(self, frame: _Frame, operation: Operation) -> int:
        address = self.control.launches + WORD_BYTES * self._number(operation)
        return ctypes.c_uint64.from_address(address).value

    def _do_parallel_if(self, frame: _Frame, operation: Operation, p: int) -> None:
        self._leave_if(frame, operation, p, Status.PARALLEL)

    def _do_guard(self, frame: _Frame, operation: Operation, p: int) -> None:
        self._leave_if(frame, operation, p, Status.LEAVE)

    def _do_poll(self, frame: _Frame, operation: Operation) -> None:
        self.polls -= 1
        self._leave_if(frame, operation, self.polls < 0, Status.INTERRUPTED)

    def _do_check_entry(self, frame: _Frame, operation: Operation) -> None:
        self._do_poll(frame, operation)

    def _do_call_host(self, frame: _Frame, operation: Operation, *_arguments: int) -> None:
        """Leave for the engine, as where no native function is bound."""
        self.control.exit_id = operation.static[0]  # type: ignore[assignment]  # a number
        self._leave_if(frame, operation, 1, Status.HOST)

    def _do_pay(self, frame: _Frame, operation: Operation) -> None:
        count, wanted = operation.static
        assert isinstance(count, int)
        assert isinstance(wanted, int)
        self._leave_if(frame, operation, self.control.fuel < wanted, Status.LEAVE)
        self.control.fuel -= count

    # --- memory -----------------------------------------------------------------------------

    def _do_result(self, frame: _Frame, operation: Operation) -> int:
        return self._do_word(frame, operation)

    def _do_word(self, frame: _Frame, operation: Operation) -> int:
        return self._typed(operation, self.memory.stack[frame.at + self._number(operation)])

    @staticmethod
    def _number(operation: Operation) -> int:
        number = operation.static[0]
        assert isinstance(number, int)
        return number

    @staticmethod
    def _typed(operation: Operation, word: int) -> int:
        assert isinstance(operation.type, Type)
        return word & operation.type.mask

    def _do_static(self, frame: _Frame, operation: Operation) -> int:
        return self._typed(operation, self.memory.statics[self._number(operation)])

    def _do_set_static(self, frame: _Frame, operation: Operation, value: int) -> None:
        self.memory.statics[self._number(operation)] = value

    def _do_static_at(self, frame: _Frame, operation: Operation, index: int) -> int:
        return self.memory.statics[index]

    def _do_set_static_at(
        self, frame: _Frame, operation: Operation, index: int, value: int
    ) -> None:
        self.memory.statics[index] = value

    def _bytes(self, operation: Operation, address: int) -> slice:
        size = self._number(operation)
        # The heap pointer may be a value that memory does not have: the capacity is what is there.
        assert 0 <= address <= self.memory.heap_capacity - size, f"heap access at {address}"
        return slice(address, address + size)

    def _do_heap_load(self, frame: _Frame, operation: Operation, address: int) -> int:
        self.loads += 1
        return int.from_bytes(self.memory.heap[self._bytes(operation, address)], "little")

    def _do_heap_store(self, frame: _Frame, operation: Operation, address: int, value: int) -> None:
        place = self._bytes(operation, address)
        size = self._number(operation)
        low = value & ((1 << 8 * size) - 1)
        self.memory.heap[place] = low.to_bytes(size, "little")

    def _do_report_version(self, frame: _Frame, operation: Operation, reason: int) -> None:
        self.told.append((operation.fact(0, int), reason))

    def _do_canonicalise(self, frame: _Frame, operation: Operation, *operands: int) -> None:
        t = operation.fact(0, Type)
        seen = [self.canonical(t, value) for value in operands[1::2]]
        if seen != list(operands[1::2]):
            for address, value in zip(operands[::2], seen, strict=True):
                store = Operation("heap_store", None, (t.bits // 8,))
                self._do_heap_store(frame, store, address, value)

    def _do_heap_pointer(self, frame: _Frame, operation: Operation) -> int:
        return self.control.hp

    def _do_set_heap_pointer(self, frame: _Frame, operation: Operation, value: int) -> None:
        self.control.hp = value

    def _do_heap_capacity(self, frame: _Frame, operation: Operation) -> int:
        return self.memory.heap_capacity

    def _do_frame(self, frame: _Frame, operation: Operation) -> int:
        return WORD_BYTES * frame.at

    def _do_stack_limit(self, frame: _Frame, operation: Operation) -> int:
        return WORD_BYTES * self.memory.stack_words

    def _do_function_field(self, frame: _Frame, operation: Operation, number: int) -> int:
        return self.machine.descriptors[number][self._number(operation)]

    def _do_table_function(self, frame: _Frame, operation: Operation, index: int) -> int:
        return self.machine.program.table[index]

    # --- exceptions -------------------------------------------------------------------------

    def _do_caught(self, frame: _Frame, operation: Operation) -> int:
        return self.caught

    def _do_thrown(self, frame: _Frame, operation: Operation) -> int:
        return self._typed(operation, self.memory.stack[self.values + self._number(operation)])

    # --- objects ----------------------------------------------------------------------------

    def _do_object_top(self, frame: _Frame, operation: Operation) -> int:
        return self.control.object_top

    def _do_set_object_top(self, frame: _Frame, operation: Operation, value: int) -> None:
        self.control.object_top = value

    def _do_object_end(self, frame: _Frame, operation: Operation) -> int:
        return self.control.object_end

    def _do_prepared_place(self, frame: _Frame, operation: Operation) -> int:
        return self.control.prepared

    def _do_prepared_bytes(self, frame: _Frame, operation: Operation) -> int:
        return self.control.prepared_bytes

    def _do_clear_prepared(self, frame: _Frame, operation: Operation) -> None:
        self.control.prepared = 0

    def _do_cast(self, frame: _Frame, operation: Operation, reference: int) -> int:
        return reference

    def _do_type_word(self, frame: _Frame, operation: Operation, type_: int, word: int) -> int:
        return _word(self.control.types + WORD_BYTES * (ROW_WORDS * type_ + word))

    def _in_object(self, reference: int, word: int) -> int:
        assert not reference % WORD_BYTES, f"{reference} is no object"
        return self.control.objects + reference + WORD_BYTES * word

    def _do_header_word(self, frame: _Frame, operation: Operation, reference: int) -> int:
        self.header_loads += 1
        return _word(self._in_object(reference, self._number(operation)))

    def _do_set_header_word(
        self, frame: _Frame, operation: Operation, reference: int, value: int
    ) -> None:
        _set_word(self._in_object(reference, self._number(operation)), value)

    def _do_field_load(self, frame: _Frame, operation: Operation, reference: int) -> int:
        assert reference
        return _word(self._in_object(reference, 1 + operation.fact(1, int)))

    def _do_field_store(
        self, frame: _Frame, operation: Operation, reference: int, value: int
    ) -> None:
        _set_word(self._in_object(reference, 1 + operation.fact(1, int)), value)

    def _element(self, place: int, offset: int) -> int:
        return (self.control.objects + place + offset) & I64.mask

    @staticmethod
    def _size(operation: Operation) -> int:
        elements = operation.static[0]
        assert isinstance(elements, Element | int)
        return element_bytes(elements)

    def _do_element_load(self, frame: _Frame, operation: Operation, place: int, at: int) -> int:
        self.loads += 1
        address = self._element(place, at)
        return int.from_bytes(ctypes.string_at(address, self._size(operation)), "little")

    def _do_element_store(
        self, frame: _Frame, operation: Operation, place: int, at: int, value: int
    ) -> None:
        self._do_fill_elements(frame, operation, place, at, 1, value)

    def _do_update_element(
        self, frame: _Frame, operation: Operation, place: int, at: int, operand: int
    ) -> int:
        old = self._do_element_load(frame, operation, place, at)
        t = I64 if self._size(operation) == WORD_BYTES else I32
        new = updated(self, t, operation.fact(1, Atomic), old, operand)
        self._do_fill_elements(frame, operation, place, at, 1, new)
        return old

    def _do_compare_exchange_element(
        self,
        frame: _Frame,
        operation: Operation,
        place: int,
        at: int,
        expected: int,
        value: int,
    ) -> int:
        old = self._do_element_load(frame, operation, place, at)
        if old == expected:
            self._do_fill_elements(frame, operation, place, at, 1, value)
        return old

    def _do_canonicalise_elements(
        self, frame: _Frame, operation: Operation, *operands: int
    ) -> None:
        t = operation.fact(0, Element).type
        seen = [self.canonical(t, value) for value in operands[2::3]]
        if seen != list(operands[2::3]):
            for place, at, value in zip(operands[::3], operands[1::3], seen, strict=True):
                self._do_fill_elements(frame, operation, place, at, 1, value)

    def _do_fill_elements(
        self, frame: _Frame, operation: Operation, place: int, at: int, count: int, value: int
    ) -> None:
        size = self._size(operation)
        low = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        ctypes.memmove(self._element(place, at), low * count, size * count)

    def _do_move_elements(
        self,
        frame: _Frame,
        operation: Operation,
        to_place: int,
        to_offset: int,
        from_place: int,
        from_offset: int,
        size: int,
    ) -> None:
        source = self._element(from_place, from_offset)
        ctypes.memmove(self._element(to_place, to_offset), source, size)

    def _do_elements_from_heap(
        self, frame: _Frame, operation: Operation, place: int, at: int, address: int, size: int
    ) -> None:
        content = bytes(self.memory.heap[address : address + size])
        ctypes.memmove(self._element(place, at), content, size)

    def _do_elements_to_heap(
        self, frame: _Frame, operation: Operation, address: int, place: int, at: int, size: int
    ) -> None:
        content = ctypes.string_at(self._element(place, at), size)
        self.memory.heap[address : address + size] = content

    # --- calls ------------------------------------------------------------------------------

    def _do_call(self, frame: _Frame, operation: Operation, *arguments: int) -> int | None:
        number, base = operation.static
        return self._call(frame, operation, number, base, arguments)

    def _do_call_indirect(
        self, frame: _Frame, operation: Operation, number: int, *arguments: int
    ) -> int | None:
        candidates, base = operation.static
        assert isinstance(candidates, tuple)
        assert number in candidates
        return self._call(frame, operation, number, base, arguments)

    def _call(
        self, frame: _Frame, operation: Operation, number: Any, base: Any, arguments: Any
    ) -> int | None:
        callee, tags = _Frame(self.module.functions[number], frame.at + base, {}), self.tags
        self.caught = 0
        try:
            results = self._body(callee, list(arguments))
            self.caught = 0
        except _LeftError as left:
            if isinstance(left, _ThrownError) and left.tag in tags:
                self.caught, self.values = tags.index(left.tag) + 1, left.at
                self.control.fuel -= self.module.counting
                return 0
            assert operation.state is not None
            self._write(frame, operation.state)
            raise
        for later, result in enumerate(results[1:], 1):
            self.memory.stack[callee.at + callee.body.place_of(later)] = result
        return results[0] if results else None


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _set_word(address: int, value: int) -> None:
    ctypes.c_uint64.from_address(address).value = value
