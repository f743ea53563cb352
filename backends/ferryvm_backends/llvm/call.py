# SPDX-License-Identifier: Apache-2.0
"""Calls: VM functions call each other as native ones, and leave together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ferryvm.ir.graph import Operation
from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends.llvm.context import FIRST_TAG, INT32, RETURNED, THROWN, llvm_type
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.side_exit import SideExits


class Calls:
    """Lowers calls."""

    def __init__(self, function: FunctionContext, exits: SideExits) -> None:
        self.function, self.exits, self.builder = function, exits, function.builder
        self._catching = (
            {
                call: following
                for block in function.body.blocks
                for call, following in itertools.pairwise(block.operations)
                if following.name == "caught"
            }
            if function.shared.catches
            else {}
        )
        """The `caught` behind a call."""
        self._caught: dict[Operation, ir.PhiInstr] = {}
        """The numbers of the tags that the last call has thrown."""

    def do_call(self, operation: Operation, *arguments: ir.Value) -> ir.Value | None:
        number, base = operation.fact(0, int), operation.fact(1, int)
        return self._unwind(operation, self._call(number, base, arguments))

    def _call(self, number: int, base: int, arguments: Sequence[ir.Value]) -> ir.Value:
        frame = self.builder.add(self.function.frame, word(WORD_BYTES * base), flags=("nuw",))
        callee = self.function.variant.calls[number]
        return self.builder.call(callee, [self.function.control, frame, *arguments], cconv="fastcc")

    def _unwind(self, operation: Operation, returned: ir.Value) -> ir.Value | None:
        """The result of a call that returned; where it left, leave too, unless its exception is
        caught here."""
        how = self.builder.extract_value(returned, 1) if operation.type else returned
        has_exited = self.builder.icmp_unsigned("!=", how, ir.Constant(INT32, RETURNED))
        before, caught = self.builder.block, self._catching.get(operation)
        with self.function.rarely(has_exited, "unwind") as onward:
            numbers = [] if caught is None else self._catch(caught, how, onward)
            self.exits.leave_with_callee(self.exits.exit_state(operation), how)
        if caught is not None:
            self._caught[caught] = self.builder.phi(WORD)
            for number, block in [(0, before), *numbers]:
                self._caught[caught].add_incoming(word(number), block)
        return self.builder.extract_value(returned, 0) if operation.type else None

    def _catch(
        self, caught: Operation, how: ir.Value, onward: ir.Block
    ) -> list[tuple[int, ir.Block]]:
        """Continue after a call that threw a tag which is caught, for each tag in a block of its
        own, with the number of the tag. Otherwise lowering continues here."""
        builder, storage, control = self.builder, self.function.storage, self.function.control
        otherwise = self.function.block("uncaught")
        switch, numbers = builder.switch(how, otherwise), []
        for number, tag in enumerate(caught.fact(0, tuple), 1):
            block = self.function.block(f"tag{tag}")
            switch.add_case(ir.Constant(INT32, FIRST_TAG + tag), block)
            builder.position_at_end(block)
            if self.function.shared.options.counting:  # it was saved for the throw
                fuel = builder.sub(storage.field(control, "fuel"), word(1))
                storage.set_field(control, "fuel", fuel)
            builder.branch(onward)
            numbers.append((number, block))
        builder.position_at_end(otherwise)
        return numbers

    def do_caught(self, operation: Operation) -> ir.Value:
        return self._caught.pop(operation)

    def do_thrown(self, operation: Operation) -> ir.Value:
        storage = self.function.storage
        where = storage.load(storage.offset(self.function.control, THROWN), "control")
        place = storage.offset(storage.pointer(where), WORD_BYTES * operation.fact(0, int))
        return self.function.arithmetic.from_slot(operation.word_type, storage.load(place, "stack"))

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
