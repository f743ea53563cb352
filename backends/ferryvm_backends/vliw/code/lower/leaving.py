# SPDX-License-Identifier: Apache-2.0
"""Exits of the code: write the machine's state, and return control.

An exit that has to write state does so in an exit stub of its own, off the hot path.
"""

from __future__ import annotations

from ferryvm.ir.graph import FrameState, Operation, Value, Virtual
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Operand,
    Register,
    Segment,
)

CALLS_BYTES = 64 << 10
"""Bytes that recursion may take for what its calls note."""


class Leaving(Emission):
    """Machine code that can be left."""

    def __init__(self, code: MachineCode, frame: Register, base: Register, parameters: int) -> None:
        """`frame`: address of the running frame on the program's stack; `base`: of what the running
        function notes; `parameters`: words of the frame in front of its header."""
        super().__init__(code)
        self.frame, self.base, self.parameters = frame, base, parameters

    def _stop(self) -> None:
        """Give control back."""
        self._emit(MachineOperation("stop"))

    def _do_trap_if(self, operation: Operation, p: Operand) -> None:
        trap = int(operation.fact(0, Trap))
        self._leave_if(operation, p, Status.TRAP, trap=trap)

    def _do_grow_if(self, operation: Operation, p: Operand, wanted: Operand) -> None:
        self._leave_if(operation, p, Status.GROW, wanted=wanted)

    def _do_guard(self, operation: Operation, p: Operand) -> None:
        number = self.code.guards.index(operation.fact(0, int))
        self._leave_if(operation, p, Status.GUARD, exit_id=number)

    def _do_poll(self, operation: Operation) -> None:
        self._leave_on(operation, "exit_expired", (), Status.INTERRUPTED)

    def _do_check_entry(self, operation: Operation) -> None:
        self._do_poll(operation)
        if operation.fact(0, bool):
            limit = (I64, Condition.GT_U)
            is_full = self._do("compare", limit, (self.base, CALLS_BYTES))
            self._leave_if(operation, is_full, Status.LEAVE)

    def _do_pay(self, operation: Operation) -> None:
        paid, wanted = operation.fact(0, int), operation.fact(1, int)
        fuel = self._read_field("fuel")
        is_short = self._do("compare", (I64, Condition.LT_S), (fuel, wanted))
        self._leave_if(operation, is_short, Status.LEAVE)
        if paid:
            self._write_field("fuel", self._do("sub", (I64,), (fuel, paid)))

    def _leave_if(
        self, operation: Operation, p: Operand, status: Status, **fields: Operand
    ) -> None:
        if p != 0:
            self._leave_on(operation, "exit", (p,), status, **fields)

    def _leave_on(
        self,
        operation: Operation,
        name: str,
        operands: tuple[Operand, ...],
        status: Status,
        **fields: Operand,
    ) -> None:
        """Leave by way of a block of its own."""
        assert operation.state is not None
        here = self.block
        cold = MachineBlock(f"leave{len(self.cold)}", is_cold=True)
        self._emit(MachineOperation(name, (), operands, None, None, cold))
        self._open(cold)
        self._leave(operation.state, status, fields)
        self.block = here

    def _leave(self, state: FrameState, status: Status, fields: dict[str, Operand]) -> None:
        """Restore a frame state and return control."""
        self._write(state)
        if state.unpaid:
            more = self._do("add", (I64,), (self._read_field("fuel"), state.unpaid))
            self._write_field("fuel", more)
        at = self._do("shr_u", (I64,), (self.frame, 3))
        sp = self._do("add", (I64,), (at, len(state.words)))
        everything: dict[str, Operand] = {
            "pc": state.pc,
            "sp": sp,
            "fp": self._header(at),
            "status": int(status),
        }
        for name, operand in {**everything, **fields}.items():
            self._write_field(name, operand)
        self._stop()

    def _header(self, first: Operand) -> Operand:
        """The number of the word where the frame's header is; `first`: of its first word."""
        if not self.parameters:
            return first
        return self._do("add", (I64,), (first, self.parameters))

    def _write(self, state: FrameState) -> None:
        """Store the words of a frame state."""
        for place, word in enumerate(state.words):
            if word is not None:
                self._store(Segment.STACK, self.frame, WORD_BYTES * place, self._in_state(word))
        for number, value in state.statics:
            self._store(Segment.STATICS, 0, WORD_BYTES * number, self._in_state(value))
        if state.heap_pointer is not None:
            self._write_field("hp", self._value(state.heap_pointer))

    def _in_state(self, value: Value) -> Operand:
        if isinstance(value, Virtual):
            assert isinstance(value.type, Type)
            return self._canonical(value.type, value.raw, self._value(value.raw))
        return self._value(value)
