# SPDX-License-Identifier: Apache-2.0
"""Calls: VM functions call each other as native ones, and leave together."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.graph import Operation
from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends.llvm.context import INT32, llvm_type
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.side_exit import SideExits


class Calls:
    """Lowers calls."""

    def __init__(self, function: FunctionContext, exits: SideExits) -> None:
        self.function, self.exits, self.builder = function, exits, function.builder

    def do_call(self, operation: Operation, *arguments: ir.Value) -> ir.Value | None:
        number, base = operation.fact(0, int), operation.fact(1, int)
        return self._unwind(operation, self._call(number, base, arguments))

    def _call(self, number: int, base: int, arguments: Sequence[ir.Value]) -> ir.Value:
        frame = self.builder.add(self.function.frame, word(WORD_BYTES * base), flags=("nuw",))
        callee = self.function.variant.calls[number]
        return self.builder.call(callee, [self.function.control, frame, *arguments], cconv="fastcc")

    def _unwind(self, operation: Operation, returned: ir.Value) -> ir.Value | None:
        """The result of a call that returned; where it left, leave too."""
        exit_flag = self.builder.extract_value(returned, 1) if operation.type else returned
        has_exited = self.builder.icmp_unsigned("!=", exit_flag, ir.Constant(INT32, 0))
        with self.function.rarely(has_exited, "unwind"):
            self.exits.leave_with_callee(self.exits.exit_state(operation))
        return self.builder.extract_value(returned, 0) if operation.type else None

    def do_call_indirect(
        self, operation: Operation, function: ir.Value, *arguments: ir.Value
    ) -> ir.Value | None:
        candidates, base = operation.fact(0, tuple), operation.fact(1, int)
        if not candidates:  # the check of the signature has trapped
            return ir.Constant(llvm_type(operation.type), ir.Undefined) if operation.type else None
        none = self.function.block("no.such.function")
        joined = self.function.block("called")
        switch = self.builder.switch(function, none)
        self.builder.position_at_end(none)
        self.builder.unreachable()
        found = []
        for number in candidates:
            block = self.function.block(f"call.f{number}")
            switch.add_case(word(number), block)
            self.builder.position_at_end(block)
            found.append((self._call(number, base, arguments), block))
            self.builder.branch(joined)
        self.builder.position_at_end(joined)
        returned = self.builder.phi(found[0][0].type)
        for value, block in found:
            returned.add_incoming(value, block)
        return self._unwind(operation, returned)
