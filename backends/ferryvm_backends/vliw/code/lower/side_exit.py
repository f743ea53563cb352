# SPDX-License-Identifier: Apache-2.0
"""Exits of the code: write the machine's state, and return control.

An exit that has to write state does so in an exit stub of its own, off the hot path.
"""

from __future__ import annotations

from ferryvm.ir.graph import Body, FrameState, Operation, Value, Virtual
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm_backends.vliw.code.lower.common_word import CommonWords
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.lower.returns import Returns
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineOperation,
    Operand,
    Segment,
)

CALLS_BYTES = 64 << 10
"""The limit of bytes for the saved words of recursive calls."""


class SideExits:
    """Lowers operations that may leave, and emits exits for other parts."""

    def __init__(self, emission: Emission, returns: Returns, body: Body) -> None:
        self.emission, self.returns, self._body = emission, returns, body
        self._common = CommonWords(body)
        self._ends: dict[tuple[int, MachineBlock | None], MachineBlock] = {}
        """The blocks that write common words, by these and where control goes behind them."""

    def do_trap_if(self, operation: Operation, p: Operand) -> None:
        trap = int(operation.fact(0, Trap))
        self.leave_if(operation, p, Status.TRAP, trap=trap)

    def do_grow_if(self, operation: Operation, p: Operand, wanted: Operand) -> None:
        self.leave_if(operation, p, Status.GROW, wanted=wanted)

    def do_continue_launch_if(self, operation: Operation, p: Operand) -> None:
        self.leave_if(operation, p, Status.LAUNCH)

    def do_parallel_if(self, operation: Operation, p: Operand) -> None:
        self.leave_if(operation, p, Status.PARALLEL)

    def do_guard(self, operation: Operation, p: Operand) -> None:
        number = self.emission.code.guards.index(operation.fact(0, int))
        self.leave_if(operation, p, Status.GUARD, exit_id=number)

    def do_poll(self, operation: Operation) -> None:
        self._leave_on(operation, "exit_expired", (), Status.INTERRUPTED)

    def do_check_entry(self, operation: Operation) -> None:
        self.do_poll(operation)
        if operation.fact(0, bool):
            limit = (I64, Condition.GT_U)
            is_full = self.emission.compute("compare", limit, (self.emission.base, CALLS_BYTES))
            self.leave_if(operation, is_full, Status.LEAVE)

    def do_pay(self, operation: Operation) -> None:
        paid, wanted = operation.fact(0, int), operation.fact(1, int)
        fuel = self.emission.read_field("fuel")
        is_short = self.emission.compute("compare", (I64, Condition.LT_S), (fuel, wanted))
        self.leave_if(operation, is_short, Status.LEAVE)
        if paid:
            self.emission.write_field("fuel", self.emission.compute("sub", (I64,), (fuel, paid)))

    def leave_if(self, operation: Operation, p: Operand, status: Status, **fields: Operand) -> None:
        """Leave if a predicate holds."""
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
        """Leave through a block of its own."""
        assert operation.state is not None
        here = self.emission.block
        cold = MachineBlock(f"leave{len(self.emission.cold)}", is_cold=True)
        self.emission.emit(MachineOperation(name, (), operands, None, None, cold))
        self.emission.open(cold)
        self.leave(operation.state, status, fields)
        self.emission.block = here

    def leave(self, state: FrameState, status: Status, fields: dict[str, Operand]) -> None:
        """Restore a frame state and return control."""
        parts = self._common.parts(state)
        self.write(state, parts[0][1] if parts else 0)
        if state.unpaid:
            more = self.emission.compute(
                "add", (I64,), (self.emission.read_field("fuel"), state.unpaid)
            )
            self.emission.write_field("fuel", more)
        at = self.emission.compute("shr_u", (I64,), (self.emission.frame, 3))
        sp = self.emission.compute("add", (I64,), (at, len(state.words)))
        everything: dict[str, Operand] = {
            "pc": state.pc,
            "sp": sp,
            "fp": self.emission.header(at, state.header),
            "status": int(status),
        }
        for name, operand in {**everything, **fields}.items():
            self.emission.write_field(name, operand)
        behind: MachineBlock | None = None
        if state.phase is not None:
            record = self.returns.record(state.phase, self._body)
            values = [self._in_state(value) for value in state.phase.values]
            self.emission.move(zip(record.parameters, [state.phase.region, *values], strict=True))
            behind = record.entry
        self._end(state, parts, behind)

    def _end(
        self, state: FrameState, parts: list[tuple[int, int, int]], behind: MachineBlock | None
    ) -> None:
        """Write what a state has in common with others, and return control, or go on at a block."""
        if not parts:
            if behind is None:
                self.returns.stop()
            else:
                self.emission.emit(MachineOperation("jump", target=behind))
            return
        (first, past, number), *others = parts
        block = self._ends.get((number, behind))
        is_new = block is None
        if block is None:
            block = MachineBlock(f"words{len(self.emission.cold)}", is_cold=True)
            self._ends[number, behind] = block
        self.emission.emit(MachineOperation("jump", target=block))
        if is_new:
            self.emission.open(block)
            self._write_words(state, first, past)
            self._end(state, others, behind)

    def write(self, state: FrameState, first: int = 0) -> None:
        """Store a frame state, its words from one on."""
        self._write_words(state, first, len(state.words))
        for number, value in state.statics:
            self.emission.store(Segment.STATICS, 0, WORD_BYTES * number, self._in_state(value))
        if state.heap_pointer is not None:
            self.emission.write_field("hp", self.emission.value(state.heap_pointer))

    def _write_words(self, state: FrameState, first: int, past: int) -> None:
        for place, word in enumerate(state.words[first:past], first):
            if word is not None:
                self.emission.store(
                    Segment.STACK, self.emission.frame, WORD_BYTES * place, self._in_state(word)
                )

    def _in_state(self, value: Value) -> Operand:
        if isinstance(value, Virtual):
            assert isinstance(value.type, Type)
            return self.emission.canonical(value.type, value.raw, self.emission.value(value.raw))
        return self.emission.value(value)
