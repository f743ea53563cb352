# SPDX-License-Identifier: Apache-2.0
"""Calls between the functions of a region, and how a callee that leaves has its callers do so."""

from __future__ import annotations

from ferryvm.ir.graph import BOOLEAN, Body, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm_backends.vliw.code.call_liveness import live_across_calls
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.lower.returns import Calling
from ferryvm_backends.vliw.code.lower.side_exit import SideExits
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind


class Calls:
    """Lowers calls."""

    def __init__(self, emission: Emission, exits: SideExits, calling: Calling, body: Body) -> None:
        self.emission, self.exits, self.calling = emission, exits, calling
        self.across = live_across_calls(body)
        self.slots: dict[Value, int] = {}
        """Words that hold values during calls; the first is the return address's."""
        for values in self.across.values():
            for value in values:
                self.slots.setdefault(value, len(self.slots) + 1)
        self.size = WORD_BYTES * (len(self.slots) + 1)
        calling.size += self.size

    def do_call(self, operation: Operation, *given: Operand) -> Operand:
        return self._call(operation, [(None, operation.fact(0, int))], given)

    def do_call_indirect(self, operation: Operation, number: Operand, *given: Operand) -> Operand:
        candidates = operation.fact(0, tuple)
        return self._call(operation, [(number, each) for each in candidates], given)

    def _call(
        self,
        operation: Operation,
        candidates: list[tuple[Operand | None, int]],
        given: tuple[Operand, ...],
    ) -> Operand:
        """Call one of some functions, which the number before it selects."""
        calling, words = self.calling, WORD_BYTES * operation.fact(1, int)
        back = MachineBlock(f"{self.emission.block.label}.back{self.emission.code.registers}")
        saved = [v for v in self.across[operation] if isinstance(self.emission.values[v], Register)]
        for value in saved:
            self._store_saved(value)
        self.emission.store(Segment.CALLS, self.emission.base, self.size, back)
        if words:
            self.emission.set(self.emission.frame, "add", (I64,), (self.emission.frame, words))
        self.emission.set(self.emission.base, "add", (I64,), (self.emission.base, self.size))
        if not candidates:  # the check before the call leaves
            self.emission.emit(MachineOperation("stop"))
        for place, (number, callee) in enumerate(candidates):
            calling.returns[callee].append(back)
            to = calling.entries[callee]
            wanted = list(zip(calling.parameters[callee], given, strict=True))
            if place + 1 < len(candidates):
                assert number is not None
                is_it = self.emission.compute("compare", (I64, Condition.EQ), (number, callee))
                here, stub = self.emission.block, MachineBlock(f"{back.label}.to{callee}")
                self.emission.emit(MachineOperation("exit", (), (is_it,), target=stub))
                self.emission.open(stub)
                self.emission.move(wanted)
                self.emission.emit(MachineOperation("jump", target=to))
                self.emission.block = here
            else:
                self.emission.move(wanted)
                self.emission.emit(MachineOperation("jump", target=to))
        self.emission.open(back)
        self.emission.set(self.emission.base, "sub", (I64,), (self.emission.base, self.size))
        if words:
            self.emission.set(self.emission.frame, "sub", (I64,), (self.emission.frame, words))
        result = self.emission.code.register(FileKind.INTEGER)
        self.emission.set(result, "move", (), (calling.result,))
        for value in saved:
            self._restore_saved(value)
        self._unwind_if_exited(operation)
        return result

    def _store_saved(self, value: Value) -> None:
        operand = self.emission.value(value)
        if value.type is BOOLEAN:
            operand = self.emission.compute("select", (), (operand, 1, 0))
        self.emission.store(
            Segment.CALLS, self.emission.base, WORD_BYTES * self.slots[value], operand
        )

    def _restore_saved(self, value: Value) -> None:
        register = self.emission.values[value]
        assert isinstance(register, Register)
        place = MemoryOperand(Segment.CALLS, WORD_BYTES * self.slots[value])
        if value.type is BOOLEAN:
            word = self.emission.code.register(FileKind.INTEGER)
            self.emission.emit(MachineOperation("load", (), (self.emission.base,), word, place))
            self.emission.set(register, "compare", (I64, Condition.NE), (word, 0))
        else:
            self.emission.emit(MachineOperation("load", (), (self.emission.base,), register, place))

    def _unwind_if_exited(self, operation: Operation) -> None:
        """If the callee has left write the frame, and have the caller do so, too."""
        assert operation.state is not None
        here = self.emission.block
        cold = MachineBlock(f"unwind{self.emission.code.registers}", is_cold=True)
        self.emission.emit(MachineOperation("exit", (), (self.calling.has_exited,), target=cold))
        self.emission.open(cold)
        self.exits.write(operation.state)
        self.exits.returns.stop()
        self.emission.block = here
