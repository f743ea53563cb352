# SPDX-License-Identifier: Apache-2.0
"""Direct threading: each handler ends in a tail call of the next one.

Handlers share one signature of the six machine registers under a calling convention that passes
them all in processor registers, so a dispatch is a load and a jump. A cell's first word is the
address of its handler; a target immediate is the address of the target's cell, so that control
moves from one cell to the next with one load. A function immediate is the address of a descriptor
that belongs to the form of the code and whose entry is a cell: calls are bound by how long it takes
to know the next cell, and without a shift and two loads of bases fib(32) takes a tenth less time.
"""

from __future__ import annotations

import dataclasses

from ferryvm.isa.emitter import FunctionField
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.cell import CellHandlerBuilder
from ferryvm_backends._llvm.handler import POINTER, Registers

HANDLER = ir.FunctionType(ir.VoidType(), [POINTER] * 6)
CONVENTION = "preserve_nonecc"


def call_handler(
    builder: ir.IRBuilder, address: ir.Value, registers: Registers, tail: bool = True
) -> None:
    """Call the handler at `address` and return; a `tail` call needs a handler as its caller."""
    arguments = [getattr(registers, field.name) for field in dataclasses.fields(Registers)]
    builder.call(
        ir.Callee(address, HANDLER),
        arguments,
        cconv=CONVENTION,
        tail="musttail" if tail else "notail",
    )
    builder.ret_void()


class ThreadedHandlerBuilder(CellHandlerBuilder):
    """Weaves one handler a function."""

    _callee: ir.Value | None = None
    """The function immediate of the instruction being woven: the address of a descriptor."""

    def __init__(self, counting: bool, exits: dict[Status, ir.Function]) -> None:
        self.counting = counting
        self.exits = exits

    def _dispatch(self, registers: Registers) -> None:
        self._run_original(registers, registers.ip)

    def _run_original(self, registers: Registers, address: ir.Value) -> None:
        handler = self.builder.load(address, typ=POINTER, align=8)
        call_handler(self.builder, handler, registers)

    def _exit(self, registers: Registers, status: Status) -> None:
        call_handler(self.builder, self.exits[status], registers)

    def _object_base(self) -> ir.Value:
        # A handler is a function of its own: no collection comes between two accesses in one.
        return self._load(self._control_address("objects"), invariant=True)

    def _target_cell(self, target: ir.Value) -> ir.Value:
        return self._pointer(target)

    def _function_immediate(self, raw: ir.Value) -> ir.Value:
        self._callee = raw
        return raw

    def _descriptor(self, function: ir.Value) -> ir.Value:
        return (
            self._pointer(function) if function is self._callee else super()._descriptor(function)
        )

    def enter(self, function: ir.Value, frame: ir.Value, stack: ir.Value) -> None:
        if function is not self._callee:  # the machine's descriptor, found by number
            super().enter(function, frame, stack)
            return
        entry = self.function(function, FunctionField.ENTRY)
        self._continue_at(self._pointer(entry), frame, stack)
