# SPDX-License-Identifier: Apache-2.0
"""Calls between the functions of a region, and how a callee that leaves has its callers do so."""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Body, Module, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm_backends.vliw.code.call_liveness import live_across_calls
from ferryvm_backends.vliw.code.lower.leaving import Leaving
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind


class Calling:
    """The calling convention, shared by all functions.

    Nothing is kept in registers across a call: the caller stores what it needs later, and loads it
    again. The callee's parameters are registers that the caller sets.
    """

    def __init__(self, module: Module, code: MachineCode) -> None:
        word, predicate = FileKind.INTEGER, FileKind.BOOLEAN
        self.frame = code.register(word)
        """Address of the running frame on the program's stack, where its parameters begin."""
        self.base = code.register(word)
        """Address of what the running function notes."""
        self.result = code.register(word)
        self.has_left = code.register(predicate)
        """True if the callee has left, and its caller has to."""
        self.entries = {number: MachineBlock(f"f{number}") for number in module.functions}
        self.parameters = {
            number: [code.register(word) for _ in body.blocks[0].parameters]
            for number, body in module.functions.items()
        }
        self.returns: dict[int, list[MachineBlock]] = {number: [] for number in module.functions}
        """Where each function may return to."""
        self.size = 0
        """Bytes that all functions note, each once."""


class Calls(Leaving):
    """Machine code that can call, and be called."""

    def __init__(self, body: Body, code: MachineCode, calling: Calling, number: int | None) -> None:
        """`number`: of the function; None for the region's own body."""
        super().__init__(code, calling.frame, calling.base, body.parameters)
        self.calling, self.number = calling, number
        self.across = live_across_calls(body)
        self.slots: dict[Value, int] = {}
        """Words in which values are kept during calls; the first is the return address's."""
        for values in self.across.values():
            for value in values:
                self.slots.setdefault(value, len(self.slots) + 1)
        self.size = WORD_BYTES * (len(self.slots) + 1)
        calling.size += self.size
        self.ends: list[MachineOperation] = []
        """Jumps to the caller."""

    def finish(self) -> None:
        """Say where the function may return to, when all calls are known."""
        for operation in self.ends:
            assert self.number is not None
            operation.others = tuple(self.calling.returns[self.number])

    def _do_call(self, operation: Operation, *given: Operand) -> Operand:
        return self._call(operation, [(None, operation.fact(0, int))], given)

    def _do_call_indirect(self, operation: Operation, number: Operand, *given: Operand) -> Operand:
        candidates = operation.fact(0, tuple)
        return self._call(operation, [(number, each) for each in candidates], given)

    def _call(
        self,
        operation: Operation,
        candidates: list[tuple[Operand | None, int]],
        given: tuple[Operand, ...],
    ) -> Operand:
        """Call one of some functions: which one the number in front of it says."""
        calling, words = self.calling, WORD_BYTES * operation.fact(1, int)
        back = MachineBlock(f"{self.block.label}.back{self.code.registers}")
        kept = [v for v in self.across[operation] if isinstance(self.values[v], Register)]
        for value in kept:
            self._store_kept(value)
        self._store(Segment.CALLS, self.base, self.size, back)
        if words:
            self._set(self.frame, "add", (I64,), (self.frame, words))
        self._set(self.base, "add", (I64,), (self.base, self.size))
        if not candidates:  # the check in front of the call leaves
            self._emit(MachineOperation("stop"))
        for place, (number, callee) in enumerate(candidates):
            calling.returns[callee].append(back)
            to = calling.entries[callee]
            wanted = list(zip(calling.parameters[callee], given, strict=True))
            if place + 1 < len(candidates):
                assert number is not None
                is_it = self._do("compare", (I64, Condition.EQ), (number, callee))
                here, way = self.block, MachineBlock(f"{back.label}.to{callee}")
                self._emit(MachineOperation("exit", (), (is_it,), target=way))
                self._open(way)
                self._move(wanted)
                self._emit(MachineOperation("jump", target=to))
                self.block = here
            else:
                self._move(wanted)
                self._emit(MachineOperation("jump", target=to))
        self._open(back)
        self._set(self.base, "sub", (I64,), (self.base, self.size))
        if words:
            self._set(self.frame, "sub", (I64,), (self.frame, words))
        result = self.code.register(FileKind.INTEGER)
        self._set(result, "move", (), (calling.result,))
        for value in kept:
            self._load_kept(value)
        self._unwind_if_left(operation)
        return result

    def _store_kept(self, value: Value) -> None:
        operand = self._value(value)
        if value.type is BOOLEAN:
            operand = self._do("select", (), (operand, 1, 0))
        self._store(Segment.CALLS, self.base, WORD_BYTES * self.slots[value], operand)

    def _load_kept(self, value: Value) -> None:
        register = self.values[value]
        assert isinstance(register, Register)
        place = MemoryOperand(Segment.CALLS, WORD_BYTES * self.slots[value])
        if value.type is BOOLEAN:
            word = self.code.register(FileKind.INTEGER)
            self._emit(MachineOperation("load", (), (self.base,), word, place))
            self._set(register, "compare", (I64, Condition.NE), (word, 0))
        else:
            self._emit(MachineOperation("load", (), (self.base,), register, place))

    def _unwind_if_left(self, operation: Operation) -> None:
        """If the callee has left write the frame, and have the caller do so, too."""
        assert operation.state is not None
        here = self.block
        cold = MachineBlock(f"unwind{self.code.registers}", is_cold=True)
        self._emit(MachineOperation("exit", (), (self.calling.has_left,), target=cold))
        self._open(cold)
        self._write(operation.state)
        self._stop()
        self.block = here

    def _stop(self) -> None:
        """Give control back, or to the caller, which does so."""
        if self.number is None:
            super()._stop()
        else:
            self._to_caller(has_left=True)

    def _to_caller(self, has_left: bool) -> None:
        self._set(self.calling.has_left, "any", (), (int(has_left), 0))
        back = self._load(Segment.CALLS, self.base, 0)
        self.ends.append(MachineOperation("jump_to", (), (back,)))
        self._emit(self.ends[-1])
